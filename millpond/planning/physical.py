"""Physical operators as pure data, and the graph they form.

An operator reads *fragments*: trees of linear nodes (Filter, Project, Sample, RangeWindow, Combine)
whose leaves are queues. Nothing is materialised inside a fragment: it is fused into the operator
that reads it. Everything stateful is an operator of its own and writes one queue. So are selections
and projections next to functions of the user, or all in a graph that has linear nodes *apart*, and
those that are cut off (`parts.py`): a queue can stand behind them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Dstream,
    Filter,
    Istream,
    Join,
    Project,
    RangeWindow,
    RelationScan,
    RowsWindow,
    Sample,
    SetOperation,
    StreamScan,
)
from millpond.cql.expressions import AggregateCall, Column, Expression
from millpond.cql.kept import kept
from millpond.cql.needed_functions import functions_of
from millpond.cql.node import Node, canonical, inputs_first, lines_of
from millpond.errors import MillpondError, StateError
from millpond.identities import epoch_of, number_of, relation_queue, stream_queue
from millpond.planning.joins import join_under, parents_of
from millpond.planning.nodes import Arrivals, Combine, Match, Moments, Snapshots, Totals
from millpond.planning.properties import is_net, never_retracts
from millpond.schema import Schema

SELF = "self"
"""The queue name by which a fragment after a join refers to the join's pairs."""


@dataclass(frozen=True, eq=False, repr=False)
class QueueRead(Node):
    """A leaf of a fragment: a queue of stream elements or of relation elements."""

    queue: str
    fields_: Schema
    of_stream: bool
    is_base: bool = False

    @property
    def schema(self) -> Schema:
        return self.fields_

    @property
    def is_stream(self) -> bool:
        return self.of_stream

    def label(self) -> str:
        return f"Read {self.queue}"


def queues_in(fragments: Iterable[Node]) -> tuple[str, ...]:
    """The names of the queues that fragments read, without repetition."""
    nodes = (node for fragment in fragments for node in fragment.walk())
    return tuple(dict.fromkeys(node.queue for node in nodes if isinstance(node, QueueRead)))


@dataclass(frozen=True)
class Operator:
    """What all physical operators share."""

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The fragments the operator reads."""
        values = [getattr(self, f.name) for f in fields(self)]
        return tuple(value for value in values if isinstance(value, Node))

    @property
    def schema(self) -> Schema:
        """The columns the operator writes."""
        return self.inputs[0].schema

    @property
    def is_stream(self) -> bool:
        """Whether it writes stream elements rather than relation elements."""
        return False

    def label(self) -> str:
        """One line for EXPLAIN."""
        return type(self).__name__.removesuffix("Operator")

    @kept
    def _queues(self) -> tuple[str, ...]:
        return queues_in(self.inputs)

    def queues(self) -> tuple[str, ...]:
        """The names of the queues it reads, without repetition."""
        return self._queues


@dataclass(frozen=True)
class LinearOperator(Operator):
    """A selection or a projection that stands alone."""

    input: Node

    @property
    def is_stream(self) -> bool:
        return self.input.is_stream

    @kept
    def is_base(self) -> bool:
        """Whether it writes tuples of a stream as they came, with their numbers."""
        return writes_tuples(self.input)

    def label(self) -> str:
        return self.input.label()


@dataclass(frozen=True)
class MatchOperator(Operator):
    """Rows matched with the constants of a ``group`` of queries of one shape."""

    input: Node
    group: str
    match: Match

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    @property
    def schema(self) -> Schema:
        return self.match.schema

    @property
    def is_stream(self) -> bool:
        return self.input.is_stream and self.match.window is None

    @kept
    def reads_tuples(self) -> bool:
        """Whether it reads tuples of a stream as they came, with their numbers."""
        return writes_tuples(self.input)

    @property
    def is_base(self) -> bool:
        """Whether it writes them like that too."""
        return self.reads_tuples and self.is_stream

    def label(self) -> str:
        return f"{self.match.label()} of {self.group}"


def writes_tuples(fragment: Node) -> bool:
    """Whether what is read are tuples of a stream as they came, with their numbers."""
    leaves = (node for node in fragment.walk() if isinstance(node, QueueRead))
    return fragment.is_stream and all(leaf.is_base for leaf in leaves)


@dataclass(frozen=True)
class JoinOperator(Operator):
    """The inner join of two relations; ``post`` is applied to each pair.

    Joins that are equal but for their ``number`` run apart from one another.
    """

    left: Node
    right: Node
    condition: Expression | None
    post: Node
    number: int = 0

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    @property
    def schema(self) -> Schema:
        return self.post.schema

    def label(self) -> str:
        on = "" if self.condition is None else f" ON {self.condition}"
        return f"Join{on}" + (f" (apart, {self.number})" if self.number else "")


@dataclass(frozen=True)
class AggregateOperator(Operator):
    """Groups and aggregates; ``is_append_only``: no row of the input is ever taken back."""

    input: Node
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    fields_: Schema
    is_append_only: bool

    @property
    def schema(self) -> Schema:
        return self.fields_

    def label(self) -> str:
        by = f" BY {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"Aggregate {', '.join(map(str, self.aggregates))}{by}"


@dataclass(frozen=True)
class CountOperator(Operator):
    """Counts equal rows: DISTINCT, EXCEPT and INTERSECT."""

    left: Node
    right: Node | None
    rule: str

    def label(self) -> str:
        return self.rule.replace("_", " ").capitalize()


@dataclass(frozen=True)
class RowsWindowOperator(Operator):
    """The last rows of a stream, of each partition."""

    input: Node
    rows: int | Column
    slide_rows: int | None
    partition: tuple[Column, ...]

    def label(self) -> str:
        return RowsWindow(
            QueueRead("", self.input.schema, True), self.rows, self.slide_rows, self.partition
        ).label()


@dataclass(frozen=True)
class DifferenceOperator(Operator):
    """Istream (sign +1) and Dstream (sign -1): the net change at each instant."""

    input: Node
    sign: int

    @property
    def is_stream(self) -> bool:
        return True

    def label(self) -> str:
        return "Istream" if self.sign > 0 else "Dstream"


@dataclass(frozen=True)
class ArrivalsOperator(Operator):
    """An Istream that reads no minus: what enters."""

    input: Node

    @property
    def is_stream(self) -> bool:
        return True


@dataclass(frozen=True)
class MomentsOperator(Operator):
    """An Rstream of what lasts one tick: what starts, equal rows summed up."""

    input: Node

    @property
    def is_stream(self) -> bool:
        return True


@dataclass(frozen=True)
class TotalsOperator(Operator):
    """What starts and lasts one tick: few rows that are as many and have the same ``sums``."""

    input: Node
    sums: tuple[int, ...]

    @property
    def is_stream(self) -> bool:
        return True

    def label(self) -> str:
        return Totals(QueueRead("", self.input.schema, False), self.sums).label()


@dataclass(frozen=True)
class SnapshotsOperator(Operator):
    """Rstream: the relation at every instant at which one of ``movers`` moves."""

    input: Node
    movers: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, *self.movers)

    @property
    def is_stream(self) -> bool:
        return True

    def label(self) -> str:
        return "Rstream"


@dataclass(frozen=True)
class OutputOperator(Operator):
    """Delivers a query: ``changes`` of a relation, ``arrivals`` in it, ``moments`` of it, or a
    ``stream``'s elements.

    ``is_net``: no instant takes a row out and puts an equal one in, so nothing has to be summed.
    """

    input: Node
    query: str
    mode: str
    is_net: bool = False
    begins: int | None = field(default=None, compare=False)
    """What was there before this time is put out then: the query has answered otherwise before."""

    @property
    def is_stream(self) -> bool:
        return self.mode != "changes"

    @property
    def is_summed(self) -> bool:
        """Whether equal rows must meet."""
        return self.mode == "moments" or (self.mode == "changes" and not self.is_net)

    def label(self) -> str:
        return f"Output {self.query} ({self.mode})"


@dataclass
class Graph:
    """All operators of all queries; equal operators started at the same time exist once."""

    operators: dict[str, Operator] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    """When each operator began: queries registered later see only what came later."""
    linear: str = "fused"
    """Which selections and projections of queries to come are operators of their own: none
    (fused), those next to functions of the user (functions), or all (apart)."""
    _ids: dict[tuple[Operator, int], str] = field(default_factory=dict)
    _readers: dict[str, list[str]] = field(default_factory=dict)
    _next: int = 1
    fragments: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    """What operators read of which parts are cut off: queues in place of these."""
    settled: dict[str, int] = field(default_factory=dict)
    """From when on operators are as if they were there from the beginning, where that is known."""
    counting: dict[str, int] = field(default_factory=dict)
    """The same of what Rows windows read that settle once they are full of what came since."""
    renamed: dict[str, str] = field(default_factory=dict)
    """The copies of relations whose readers read others."""
    copied: dict[str, int] = field(default_factory=dict)
    """From when on the copies of relations that are read are like these."""
    _added: list[str] = field(default_factory=list)
    _numbers: dict[str, str] | None = None
    """The ids that operators had in an earlier run, by their form, until they all are back."""
    _began: dict[str, int] = field(default_factory=dict)
    """The epochs of those that stand for some of other epochs too."""
    _known: tuple[dict[str, int] | None, dict[str, int] | None] = None, None
    """What was known of those that began late."""
    pairs: int = 0
    """How many operators do what one that came before them does, with the same queues."""
    _twins: dict[Operator, list[str]] = field(default_factory=dict)
    _made: dict[Node, dict[str, None]] = field(default_factory=dict)
    """The operators that nodes of plans have become."""
    _nodes: dict[str, dict[Node, None]] = field(default_factory=dict)
    """The same the other way round."""

    def __post_init__(self) -> None:
        for (operator, _), identity in self._ids.items():
            self._pair(operator, identity)

    def add(self, operator: Operator, epoch: int) -> str:
        """The id of the operator, new or already there."""
        key = (operator, epoch)
        if key not in self._ids:
            identity = self._ids[key] = self._number(operator, epoch)
            if identity not in self.operators:  # else others have become one with it
                self._place(identity, operator, self._began.get(identity, epoch))
                self._added.append(identity)
        return self._ids[key]

    def _place(self, identity: str, operator: Operator, epoch: int) -> None:
        self.operators[identity], self.epochs[identity] = operator, epoch
        self._pair(operator, identity)
        for queue in operator.queues():
            self._readers.setdefault(queue, []).append(identity)

    def _pair(self, operator: Operator, identity: str) -> None:
        twins = self._twins.setdefault(operator, [])
        self.pairs += bool(twins)
        twins.append(identity)

    def called(self, queue: str) -> str:
        """What operators of an earlier run read in place of a copy of a relation."""
        return queue if self._numbers is None else self.renamed.get(queue, queue)

    def take_added(self) -> list[str]:
        """The ids of the operators that were added since this was last asked."""
        added, self._added = self._added, []
        return added

    def _number(self, operator: Operator, epoch: int) -> str:
        if self._numbers is not None:
            identity = self._numbers.pop(form(operator, epoch), None)
            if identity is None:
                raise StateError(f"no earlier run has planned this: {operator.label()}")
            return identity
        self._next += 1
        return f"op{self._next - 1}"

    def numbers(self) -> dict[str, Any]:
        """Which id each operator has, by its form in every query that needs it, and the next one;
        what is known of those that began late."""
        ids: dict[str, str] = {}
        began: dict[str, int] = {}
        outputs = [i for i, each in self.operators.items() if isinstance(each, OutputOperator)]
        for each, epoch in {(i, self.epochs[o]): None for o in outputs for i in self.upstream(o)}:
            operator, own = self.operators[each], self.epochs[each]
            if self._ids.get((operator, own)) == each:  # else it is a part that was cut off
                ids[form(operator, epoch)] = each
                began |= {each: own} if own != epoch else {}
        known = {"settled": dict(self.settled), "counting": dict(self.counting)}
        in_use = set(self.epochs.values()) - {0}
        renamed = {old: new for old, new in self.renamed.items() if epoch_of(old) in in_use}
        return {"operators": ids, "next": self._next, "began": began, "renamed": renamed, **known}

    def restore_numbers(
        self,
        operators: dict[str, str],
        next_: int,
        began: dict[str, int] | None = None,
        renamed: dict[str, str] | None = None,
        settled: dict[str, int] | None = None,
        counting: dict[str, int] | None = None,
    ) -> None:
        """From now on operators get the ids they had, until ``restored``."""
        self._numbers, self._next = dict(operators), next_
        self._began, self.renamed = began or {}, renamed or {}
        self._known = settled, counting

    def restored(self) -> None:
        """Every operator of the earlier run is back."""
        left, self._numbers = self._numbers, None
        if left:
            raise StateError(f"an earlier run has planned {len(left)} operators more")
        self._ids = {(self.operators[i], self.epochs[i]): i for i in self._ids.values()}
        self._began = {}
        settled, counting = self._known
        if settled is not None and counting is not None:  # else it is as they began
            self.settled, self.counting = dict(settled), dict(counting)

    def add_query(
        self,
        name: str,
        plan: Node,
        epoch: int = 0,
        *,
        apart: frozenset[Node] = frozenset(),
        numbers: Mapping[Node, int] | None = None,
        begins: int | None = None,
    ) -> str:
        """Adds the operators of an optimised plan; the id of its output operator.

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

    def remove(self, identity: str) -> list[str]:
        """Removes an output operator and all that nobody else reads; the ids removed."""
        removed, stack = [], [identity]
        while stack:
            removed.append(stack.pop())
            queues = self._forget(removed[-1])
            stack += [q for q in queues if q in self.operators and not self.readers(q)]
        return removed

    def _forget(self, identity: str) -> tuple[str, ...]:
        queues = self.queues_of(identity)
        for queue in queues:
            self._readers[queue].remove(identity)
        self.fragments.pop(identity, None)
        self.settled.pop(identity, None)
        self.counting.pop(identity, None)
        for node in self._nodes.pop(identity, ()):
            del self._made[node][identity]
            if not self._made[node]:
                del self._made[node]
        key = self.operators.pop(identity), self.epochs.pop(identity)
        if self._ids.get(key) == identity:  # a part that was cut off has none
            self._forget_form(identity, *key)
        for queue in queues:
            if not self.readers(queue):
                self.copied.pop(queue, None)
        return queues

    def _forget_form(self, identity: str, operator: Operator, epoch: int) -> None:
        del self._ids[operator, epoch]
        twins = self._twins[operator]
        twins.remove(identity)
        self.pairs -= bool(twins)
        if not twins:
            del self._twins[operator]

    def has(self, operator: Operator) -> bool:
        """Whether there is such an operator, whenever it began."""
        return operator in self._twins

    # -- what plans have become --------------------------------------------------------------

    def stems_from(self, identity: str, node: Node) -> None:
        """A node of a plan has become an operator."""
        self._made.setdefault(node, {})[identity] = None
        self._nodes.setdefault(identity, {})[node] = None

    def made_of(self, node: Node) -> list[str]:
        """The operators that equal nodes of plans have become, the first one first."""
        return sorted(self._made.get(node, ()), key=number_of)

    def joins_in(self, identity: str) -> dict[Node, int]:
        """The nodes that have become the joins an operator is or depends on; their numbers."""
        joins = {each: self.operators[each] for each in self.upstream(identity)}
        return {
            node: operator.number
            for each, operator in joins.items()
            if isinstance(operator, JoinOperator)
            for node in self._nodes.get(each, ())
        }

    # -- operators that become one -----------------------------------------------------------

    def twins(self, identity: str) -> list[str]:
        """The operators that do the same, whenever they began, with the same queues; itself too.

        A part that was cut off has none.
        """
        operator = self.operators[identity]
        found = self._twins.get(operator, [])
        return found if identity in found else []

    def redirect(self, old: str, new: str) -> list[str]:
        """Has those that read a queue read another one with the same content; who they are."""
        readers = list(self.readers(old))
        if old not in self.operators:
            self.renamed[old] = new
            self.copied.pop(old, None)
        for identity in readers:
            operator, epoch = self.operators[identity], self.epochs[identity]
            for queue in operator.queues():
                self._readers[queue].remove(identity)
            self._forget_form(identity, operator, epoch)
            operator = redirected(operator, old, new)
            self._ids[operator, epoch] = identity
            self._place(identity, operator, epoch)
        return readers

    # -- parts of operators that are cut off -----------------------------------------------

    def fragments_of(self, identity: str) -> tuple[Node, ...]:
        """What an operator reads."""
        return self.fragments.get(identity) or self.operators[identity].inputs

    def queues_of(self, identity: str) -> tuple[str, ...]:
        """The names of the queues an operator reads, without repetition."""
        if identity not in self.fragments:
            return self.operators[identity].queues()
        return queues_in(self.fragments[identity])

    def insert(self, identity: str, part: Operator, epoch: int) -> None:
        """A part of an operator becomes one itself; nobody reads it yet."""
        self.operators[identity], self.epochs[identity] = part, epoch
        for queue in part.queues():
            self._readers.setdefault(queue, []).append(identity)

    def rewire(self, identity: str, fragments: tuple[Node, ...]) -> None:
        """An operator reads other fragments from now on, with the same meaning."""
        for queue in self.queues_of(identity):
            self._readers[queue].remove(identity)
        self.fragments[identity] = fragments
        if fragments == self.operators[identity].inputs:
            del self.fragments[identity]
        for queue in self.queues_of(identity):
            self._readers.setdefault(queue, []).append(identity)

    def take_out(self, identity: str) -> None:
        """What was inserted, and nobody reads any more, is gone."""
        self._forget(identity)

    def readers(self, queue: str) -> list[str]:
        """The operators that read a queue."""
        return self._readers.get(queue, [])

    def queries(self, identity: str) -> list[str]:
        """The queries, or groups of them, that depend on an operator."""
        found: dict[str, None] = {}
        seen, waiting = {identity}, [identity]
        while waiting:
            operator = self.operators[waiting[-1]]
            readers = self.readers(waiting.pop())
            if isinstance(operator, OutputOperator):
                found[operator.query] = None
            waiting += [each for each in reversed(readers) if each not in seen]
            seen.update(readers)
        return list(found)

    def serves(self, identity: str) -> int:
        """How many queries, or groups of them, depend on an operator."""
        return len(self.queries(identity))

    def describe(
        self,
        wanted: set[str] | None = None,
        running: set[str] | None = None,
        parts: Callable[[str], Mapping[Node, str]] = lambda identity: {},
    ) -> str:
        """The operators as text, sources first, with the names that parts of them have."""
        lines = []
        for identity, operator in self.operators.items():
            if wanted is not None and identity not in wanted:
                continue
            shared = " (already running)" if running and identity in running else ""
            lines.append(f"{identity}: {operator.label()}{shared}")
            fragments = self.fragments_of(identity)
            is_linear = isinstance(operator, LinearOperator)
            for fragment in fragments[0].inputs if is_linear else fragments:
                names = parts(identity)
                lines += ["    " + line for line in lines_of(fragment, names)]
            if isinstance(operator, JoinOperator) and not isinstance(operator.post, QueueRead):
                lines.append("    then " + " over ".join(n.label() for n in _path(operator.post)))
        return "\n".join(lines)

    def copy(self) -> Graph:
        """The same once more, to try something out."""
        readers = {queue: list(operators) for queue, operators in self._readers.items()}
        operators, epochs, ids = dict(self.operators), dict(self.epochs), dict(self._ids)
        known = dict(self.settled), dict(self.counting), dict(self.renamed), dict(self.copied)
        given = ids, readers, self._next, dict(self.fragments)
        return Graph(operators, epochs, self.linear, *given, *known)

    def of_group(self, output: str) -> dict[str, tuple[bool, ...]]:
        """The operators above the matches of a group that is put out there, and which of their
        inputs are rows of its queries."""
        found: dict[str, tuple[bool, ...]] = {}
        for identity in sorted(self.upstream(output), key=number_of):
            operator = self.operators[identity]
            inputs = tuple(
                any(
                    name in found or isinstance(self.operators.get(name), MatchOperator)
                    for name in queues_in([each])
                )
                for each in operator.inputs
            )
            if any(inputs):
                found[identity] = inputs
        return found

    def upstream(self, identity: str) -> set[str]:
        """The operator and all it depends on."""
        found, stack = {identity}, [identity]
        while stack:
            queues = set(self.queues_of(stack.pop())) & self.operators.keys() - found
            found |= queues
            stack += queues
        return found


def form(operator: Operator, epoch: int) -> str:
    """The canonical plan of an operator and when it began, shortened."""
    return hashlib.sha256(f"{canonical(operator)}@{epoch}".encode()).hexdigest()[:16]


Reading = TypeVar("Reading", bound=Operator)


def redirected(operator: Reading, old: str, new: str) -> Reading:
    """The same operator with one queue in place of another one."""
    changed: dict[str, Any] = {}
    for each in fields(operator):
        value = getattr(operator, each.name)
        if isinstance(value, Node):
            changed[each.name] = _redirected(value, old, new)
        elif isinstance(value, tuple) and any(isinstance(part, Node) for part in value):
            changed[each.name] = tuple(_redirected(part, old, new) for part in value)
    return replace(operator, **changed)


def _redirected(fragment: Node, old: str, new: str) -> Node:
    made: dict[Node, Node] = {}
    for node in inputs_first(fragment):
        if isinstance(node, QueueRead) and node.queue == old:
            made[node] = replace(node, queue=new)
        else:
            made[node] = node.with_inputs(tuple(made[each] for each in node.inputs))
    return made[fragment]


def _path(node: Node) -> list[Node]:
    return [part for part in node.walk() if not isinstance(part, QueueRead)]


class _Build:
    """Cuts one plan into operators and the fragments between them, each node once."""

    def __init__(
        self,
        graph: Graph,
        epoch: int,
        plan: Node,
        name: str,
        apart: frozenset[Node],
        numbers: Mapping[Node, int],
    ) -> None:
        self._graph = graph
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
                return QueueRead(stream_queue(node.name), node.schema, True, True)
            case RelationScan():
                queue = self._graph.called(relation_queue(node.name, self._epoch))
                return QueueRead(queue, node.schema, False, True)
            case _ if (join := join_under(node, self._parents)) is not None:
                return self._read(node, self._join(node, join, *below))
            case Match():
                return self._read(node, MatchOperator(below[0], self._name, node))
            case Filter() | Project() if self._stands_alone(node):
                return self._read(node, LinearOperator(node.with_inputs(below)))
            case Filter() | Project() | Sample() | RangeWindow() | Combine():
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
            if isinstance(parent, RangeWindow):
                yield from self._above(parent)

    def _read(self, node: Node, operator: Operator) -> Node:
        identity = self._graph.add(operator, self._epoch)
        self._graph.stems_from(identity, node)
        is_base = isinstance(operator, LinearOperator | MatchOperator) and operator.is_base
        return QueueRead(identity, operator.schema, operator.is_stream, is_base)

    def _operator(self, node: Node, below: tuple[Node, ...]) -> Operator:
        match node:
            case Aggregate():
                append_only = never_retracts(node.input)
                return AggregateOperator(
                    below[0], node.keys, node.aggregates, node.schema, append_only
                )
            case Distinct():
                return CountOperator(below[0], None, "distinct")
            case SetOperation():
                rule = node.operation + ("_all" if node.all else "")
                return CountOperator(below[0], below[1], rule)
            case RowsWindow():
                return RowsWindowOperator(below[0], node.rows, node.slide_rows, node.partition)
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
        number, above = self._numbers.get(node, 0), list[Filter | Project]()
        while isinstance(node, Filter | Project):
            above.append(node)
            node = node.input
        post: Node = QueueRead(SELF, join.schema, False)
        for step in reversed(above):
            post = step.with_inputs((post,))
        return JoinOperator(left, right, join.condition, post, number)
