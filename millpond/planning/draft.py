"""Drafts: how plans are cut into operators, before anything of it is in the graph.

What runs already is not drafted: a draft reads the graph and changes nothing in it.
"""

from collections.abc import Iterator, Mapping

from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Dstream,
    Filter,
    HopWindow,
    Istream,
    Join,
    Over,
    Project,
    RangeWindow,
    Rank,
    RelationScan,
    RowsWindow,
    Sample,
    SessionWindow,
    SetOperation,
    StreamScan,
    TimeFilter,
    WithTime,
)
from millpond.cql.needed_functions import functions_of
from millpond.cql.node import Node
from millpond.cql.row_patterns import MatchRecognize
from millpond.errors import MillpondError
from millpond.identities import PARTS, GroupId, OperatorId, QueryName, RelationId, StreamId
from millpond.planning.graph import Addition, Graph, Placed
from millpond.planning.joins import join_under, parents_of
from millpond.planning.nodes import Arrivals, Combine, Match, Moments, Snapshots, Totals
from millpond.planning.physical import (
    SELF,
    AggregateOperator,
    ArrivalsOperator,
    CountOperator,
    DifferenceOperator,
    JoinOperator,
    LinearOperator,
    MatchOperator,
    MomentsOperator,
    Operator,
    OutputOperator,
    OverOperator,
    QueueRead,
    RankOperator,
    RowPatternOperator,
    RowsWindowOperator,
    SessionOperator,
    SnapshotsOperator,
    TimeFilterOperator,
    TotalsOperator,
)
from millpond.planning.properties import is_monotone, is_net, never_retracts


class Draft:
    """The operators that plans to come add to a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._ids: dict[tuple[Operator, int], OperatorId] = {}
        self._made: dict[str, OperatorId] = {}
        self._taken: set[OperatorId] = set()

    def add_query(
        self,
        name: QueryName,
        plan: Node,
        epoch: int = 0,
        *,
        apart: frozenset[Node] = frozenset(),
        numbers: Mapping[str, int] | None = None,
        begins: int | None = None,
    ) -> OperatorId:
        """Drafts the operators of an optimised plan; the id of its output operator.

        The plan may be that of a group of queries of one shape, and the name the group's.
        Selections that are ``apart`` are operators of their own. ``numbers`` has those of joins
        that are not 0. ``begins``: when the changes of a relation begin that had others before.
        """
        build = _Build(self, epoch, plan, name, apart, numbers or {})
        if isinstance(plan, Arrivals):
            output = OutputOperator(build.fragment(plan.input), name, "arrivals")
        elif isinstance(plan, Moments):
            output = OutputOperator(build.fragment(plan.input), name, "moments")
        else:
            mode = "stream" if plan.is_stream else "changes"
            output = OutputOperator(build.fragment(plan), name, mode, is_net(plan), begins)
        return self.add(output, epoch)

    def add(self, operator: Operator, epoch: int) -> OperatorId:
        """The id of an operator, which runs, is drafted already, or is from now on."""
        found = self.graph.find(operator, epoch) or self._ids.get((operator, epoch))
        if found is None:
            found = OperatorId.numbered((self.graph.next_number + len(self._ids)) * PARTS)
            self._ids[operator, epoch] = found
        return found

    def stems_from(self, identity: OperatorId, node: Node) -> None:
        """A node of a plan becomes an operator."""
        self._made[node.digest] = identity

    def take(self) -> Addition:
        """What was drafted since this was last asked."""
        new = {key: each for key, each in self._ids.items() if each not in self._taken}
        self._taken.update(new.values())
        made, self._made = self._made, {}
        placed = tuple(Placed(each, *key) for key, each in new.items())
        return Addition(placed, tuple(made.items()))


def add_query(graph: Graph, name: str, plan: Node, epoch: int = 0) -> OperatorId:
    """Adds the operators of an optimised plan to a graph; the id of its output operator."""
    draft = Draft(graph)
    output = draft.add_query(QueryName(name), plan, epoch)
    graph.add(draft.take())
    return output


class _Build:
    """Cuts one plan into operators and the fragments between them, each node once."""

    def __init__(
        self,
        draft: Draft,
        epoch: int,
        plan: Node,
        name: QueryName,
        apart: frozenset[Node],
        numbers: Mapping[str, int],
    ) -> None:
        self._draft, self._graph = draft, draft.graph
        self._apart = apart
        self._numbers = numbers
        self._epoch = epoch
        self._name = name
        self._parents = parents_of(plan)
        self._fragments: dict[Node, Node] = {}
        self._sampled: set[Node] = set()
        """What is sampled: tuples are drawn by the name of the queue that is read."""
        for node in plan.walk():
            if isinstance(node, Sample):
                self._sampled.update(node.walk())

    def fragment(self, plan: Node) -> Node:
        """The plan as a fragment: linear nodes stay, operators become reads of their queues."""
        stack = [plan]
        while stack:
            waiting = [b for b in self._cut_below(stack[-1]) if b not in self._fragments]
            if waiting:
                stack += reversed(waiting)
            else:
                node = stack.pop()
                if node not in self._fragments:
                    self._fragments[node] = self._fragment(node)
        return self._fragments[plan]

    def _cut_below(self, node: Node) -> tuple[Node, ...]:
        """The nodes whose fragments a node's own is made of, in the order of their operators."""
        join = join_under(node, self._parents)
        if join is not None:
            return join.inputs
        return (*node.movers, node.input) if isinstance(node, Snapshots) else node.inputs

    def _fragment(self, node: Node) -> Node:
        below = tuple(self._fragments[each] for each in self._cut_below(node))
        match node:
            case StreamScan():
                return QueueRead(StreamId(node.name).queue, node.schema, True, True)
            case RelationScan():
                queue = RelationId(node.name).queue(self._epoch)
                return QueueRead(queue, node.schema, False, True)
            case _ if (join := join_under(node, self._parents)) is not None:
                return self._read(node, self._join(node, join, *below))
            case Match():
                return self._read(node, MatchOperator(below[0], GroupId(self._name), node))
            case Filter() | Project() if self._stands_alone(node):
                return self._read(node, LinearOperator(node.with_inputs(below)))
            case Filter() | Project() | Sample() | Combine():
                return node.with_inputs(below)
            case RangeWindow() | HopWindow() | WithTime():
                return node.with_inputs(below)
            case _:
                return self._read(node, self._operator(node, below))

    def _stands_alone(self, node: Node) -> bool:
        """Whether a selection or a projection is an operator of its own."""
        if node in self._apart:
            return True
        if self._graph.linear == "fused" or node in self._sampled:
            return False
        if self._graph.linear == "apart":
            return True
        near = (node, *self._above(node))
        return any(functions_of(each) for each in near if isinstance(each, Filter | Project))

    def _above(self, node: Node) -> Iterator[Node]:
        """What reads a node, behind windows too."""
        for parent in self._parents.get(node, ()):
            yield parent
            if isinstance(parent, RangeWindow | HopWindow | WithTime):
                yield from self._above(parent)

    def _read(self, node: Node, operator: Operator) -> Node:
        identity = self._draft.add(operator, self._epoch)
        self._draft.stems_from(identity, node)
        is_base = isinstance(operator, LinearOperator | MatchOperator) and operator.is_base
        return QueueRead(identity, operator.schema, operator.is_stream, is_base)

    def _operator(self, node: Node, below: tuple[Node, ...]) -> Operator:
        match node:
            case Aggregate():
                append_only = never_retracts(node.input)
                reads_rows = any(each.reads_rows for each in node.aggregates)
                only_come = reads_rows and is_monotone(node.input)
                return AggregateOperator(
                    below[0], node.keys, node.aggregates, node.schema, append_only, only_come
                )
            case Distinct():
                return CountOperator(below[0], None, "distinct")
            case SetOperation():
                rule = node.operation + ("_all" if node.all else "")
                return CountOperator(below[0], below[1], rule)
            case RowsWindow():
                return RowsWindowOperator(below[0], node.rows, node.slide_rows, node.partition)
            case SessionWindow():
                gap = RangeWindow(below[0], node.gap_ticks - 1)
                bounds = (node.tick_microseconds, node.told)
                return SessionOperator(gap, node.gap_ticks, node.partition, *bounds)
            case MatchRecognize():
                within = None if node.within_ticks is None else node.within_ticks - 1
                return RowPatternOperator(
                    RangeWindow(below[0], within),
                    node.pattern,
                    node.partition,
                    node.order,
                    node.definitions,
                    node.slots,
                    node.told,
                    node.within_ticks,
                    node.skip,
                )
            case Rank():
                order = (node.partition, node.order, node.function, node.limit)
                return RankOperator(below[0], *order, is_monotone(node.input))
            case Over():
                return OverOperator(below[0], node.partition, node.order, node.call)
            case TimeFilter(is_rest=False):
                end = (node.until, node.units_a_tick, node.is_inclusive)
                return TimeFilterOperator(below[0], *end)
            case Istream():
                return DifferenceOperator(below[0], 1)
            case Dstream():
                return DifferenceOperator(below[0], -1)
            case Arrivals():
                return ArrivalsOperator(below[0])
            case Moments():
                return MomentsOperator(below[0])
            case Totals():
                return TotalsOperator(below[0], node.sums)
            case Snapshots():
                return SnapshotsOperator(below[-1], tuple(dict.fromkeys(below[:-1])))
            case _:
                raise MillpondError(f"internal: no operator for {node.label()}")

    def _join(self, node: Node, join: Join, left: Node, right: Node) -> JoinOperator:
        number, above = self._numbers.get(node.digest, 0), list[Filter | Project]()
        while isinstance(node, Filter | Project):
            above.append(node)
            node = node.input
        post: Node = QueueRead(SELF, join.schema, False)
        for step in reversed(above):
            post = step.with_inputs((post,))
        return JoinOperator(left, right, join.condition, post, number)
