"""Shapes: queries that differ in constants only are one plan over a table of their constants.

``lift`` takes the constants out of a rewritten plan. What is left is a plan whose rows are tagged
with the number of the query they belong to, in a last column: from where the first constant is
needed (a ``Match`` of rows with the constants of all queries) up to the top. Below, the plan is as
it was and shared with whoever else has it. Above, the tag is a key like any other: groups,
partitions, equal rows and the partners of joins are found within one query.

A *late* plan is for queries that began at different times: what a query sees of a stream begins
after a time that is one of its constants, so every stream is tagged as it is read.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from millpond.cql.algebra import (
    ONE_ROW,
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
    TimeFilter,
)
from millpond.cql.expressions import AggregateCall, Call, Column, Expression, Literal
from millpond.cql.node import Node, canonical, follows_from_inputs
from millpond.planning.attempts import may_fail
from millpond.planning.nodes import (
    ONE_OF,
    TAG,
    Arrivals,
    Combine,
    Constant,
    InList,
    Match,
    Moments,
    Snapshots,
    in_list_of,
)
from millpond.planning.predicates import (
    FLIPPED,
    all_columns,
    conjoin,
    conjuncts,
    expressions_of,
    remap,
    rewrite,
    shift,
    substitute,
)
from millpond.schema import Type

_LIFTED_UNDER = frozenset(
    ("=", "<>", "<", "<=", ">", ">=", "in", "like", "+", "-", "*", "/", "and", "or", "not", "case")
)
"""The operators and functions of which constant operands are lifted."""


@dataclass(frozen=True)
class Lifted:
    """A plan without its constants, and these."""

    plan: Node
    constants: tuple[Constant, ...]
    streams: tuple[str, ...]
    """The streams that a late plan reads: after which times is for each query to say."""
    is_of_windows: bool = False
    """Whether queries differ in windows and samples only, and each has all rows as its own."""

    @property
    def shape(self) -> str:
        """What tells the shape from others."""
        return self.plan.digest


def lift(
    plan: Node, can_compute: Callable[[Expression], bool], is_late: bool = False
) -> Lifted | None:
    """The shape of a plan; None if its constants can not be lifted, or it has none.

    ``can_compute``: whether an expression can be computed where rows are matched.
    """
    lifted = _Lifting(plan, can_compute, is_late).lifted()
    if lifted is not None or not any(isinstance(node, RowsWindow | Sample) for node in plan.walk()):
        return lifted
    if is_late and _Lifting(plan, can_compute, is_late=False).lifted() is not None:
        return None  # what those that begin together share is more
    return _Lifting(plan, can_compute, is_late, is_of_windows=True).lifted()


@follows_from_inputs
def outline(node: Node) -> int:
    """What plans of one shape have in common and others seldom have, found without lifting."""
    return zlib.crc32(f"{type(node).__name__}{[*map(outline, node.inputs)]}".encode())


class _NotLiftedError(Exception):
    """A plan has a part whose rows can not be tagged."""


@dataclass(frozen=True)
class _LiftedNode:
    """What has become of a node."""

    node: Node
    is_tagged: bool = False
    since: str | None = None
    """The stream that is read below and not yet tagged, in a late plan."""

    @property
    def width(self) -> int:
        """How many columns there are beside the tag."""
        return len(self.node.schema) - self.is_tagged

    @property
    def tag(self) -> Column:
        return Column(self.width, Type.BIGINT, TAG)

    @property
    def columns(self) -> tuple[Column, ...]:
        return all_columns(self.node)[: self.width]


class _Lifting:
    def __init__(
        self,
        plan: Node,
        can_compute: Callable[[Expression], bool],
        is_late: bool,
        is_of_windows: bool = False,
    ) -> None:
        """``is_of_windows``: no constant but those of windows and samples tells queries apart."""
        self.constants: list[Constant] = []
        self.streams: set[str] = set()
        self._can_compute = can_compute
        self._is_late = is_late
        self._is_of_windows = is_of_windows
        self._plan = plan
        self._lifted: dict[Node, _LiftedNode] = {}
        self._readers: dict[Node, int] = {}
        for node in dict.fromkeys(plan.walk()):
            for below in node.inputs:
                self._readers[below] = self._readers.get(below, 0) + 1

    def lifted(self) -> Lifted | None:
        """The shape, if there is one."""
        try:
            whole = self._whole()
        except _NotLiftedError:
            return None
        if not whole.is_tagged:
            return None
        streams = tuple(sorted(self.streams))
        return Lifted(whole.node, tuple(self.constants), streams, self._is_of_windows)

    def _whole(self) -> _LiftedNode:
        stack = [self._plan]
        while stack:  # inputs first
            waiting = [each for each in _followed(stack[-1]) if each not in self._lifted]
            if waiting:
                stack += reversed(waiting)
            else:
                node = stack.pop()
                if node not in self._lifted:
                    self._lifted[node] = self._lift(node)
        return self._tagged_if_late(self._lifted[self._plan])

    def _lift(self, node: Node) -> _LiftedNode:
        match node:
            case StreamScan():
                self.streams.add(node.name.lower())
                return _LiftedNode(node, since=node.name.lower() if self._is_late else None)
            case RelationScan():
                return _LiftedNode(node)
            case Filter() | Project():
                return self._selected(node, self._lifted[node.input])
            case Sample():
                return self._sample(node, self._lifted[node.input])
            case RowsWindow(rows=int(length)) if self._is_of_windows:
                return self._rows_window(node, self._lifted[node.input], length)
            case Snapshots():
                return self._snapshots(node)
        below = [self._tagged_if_late(self._lifted[each]) for each in node.inputs]
        if not any(each.is_tagged for each in below):
            if self._is_late and node.is_stream:
                raise _NotLiftedError  # what a relation has put out before is nothing to the query
            return _LiftedNode(node.with_inputs(tuple(each.node for each in below)))
        if any(map(may_fail, expressions_of(node))):
            raise _NotLiftedError
        match node:
            case Join():
                return self._join(node, below[0], below[1])
            case Aggregate():
                return self._aggregate(node, below[0])
            case RowsWindow(rows=int(length)):
                return self._rows_window(node, below[0], length)
            case RangeWindow() if node.length_ticks and node.slide_ticks is None:
                match = self._match_under(node, below[0])
                return _LiftedNode(replace(match, window=self._constant(node.length_ticks)), True)
            case RangeWindow() | Distinct() | Istream() | Dstream() | Arrivals() | Moments():
                return _LiftedNode(node.with_inputs((below[0].node,)), True)
            case TimeFilter():
                return _LiftedNode(node.with_inputs((below[0].node,)), True)
            case Combine() | SetOperation():
                tagged = tuple(self._tagged(each).node for each in below)
                return _LiftedNode(node.with_inputs(tagged), True)
        raise _NotLiftedError

    # -- selections and projections --------------------------------------------------------

    def _selected(self, node: Filter | Project, below: _LiftedNode) -> _LiftedNode:
        width = len(below.node.schema)
        expressions = tuple(map(_in_order, expressions_of(node)))
        if below.is_tagged and any(map(may_fail, expressions)):
            raise _NotLiftedError
        used: list[int] = []
        predicate: Expression | None
        wanted: Sequence[Expression]
        if isinstance(node, Filter):
            predicate, wanted = self._selection(expressions[0], width, used), below.columns
        else:
            predicate, wanted = None, self._projection(expressions, width, used)
        lower = self._match_below(node, below)
        if lower is not None and self._can_match(predicate, wanted):
            types = tuple(self.constants[each].type for each in used)
            match = _in_one(lower, tuple(used), types, predicate, wanted)
            is_window = isinstance(below.node, RangeWindow)
            return _LiftedNode(below.node.with_inputs((match,)) if is_window else match, True)
        if used:
            return self._match(below, used, predicate, wanted)
        if isinstance(node, Project) and below.is_tagged:
            return _LiftedNode(_project(below.node, (*node.expressions, below.tag)), True)
        return replace(below, node=node.with_inputs((below.node,)))

    def _match_below(self, node: Filter | Project, below: _LiftedNode) -> Match | None:
        """The match right below, or below a window, if nobody else reads it."""
        found, readers = below.node, self._readers[node.input]
        if isinstance(found, RangeWindow) and isinstance(node.input, RangeWindow):
            found, readers = found.input, max(readers, self._readers[node.input.input])
        return found if isinstance(found, Match) and readers == 1 else None

    def _can_match(self, predicate: Expression | None, wanted: Sequence[Expression]) -> bool:
        asked = [(in_list_of(part) or (part,))[0] for part in conjuncts(predicate)]
        return all(map(self._can_compute, (*asked, *wanted)))

    def _selection(self, predicate: Expression, width: int, used: list[int]) -> Expression:
        """A predicate with its constants behind the columns of the input."""
        if may_fail(predicate):
            return predicate
        before, known = len(used), len(self.constants)
        changed = conjoin([self._with_in_list(part, width, used) for part in conjuncts(predicate)])
        if changed is not None and self._can_match(changed, ()):
            return changed
        del used[before:], self.constants[known:]
        return predicate

    def _with_in_list(self, part: Expression, width: int, used: list[int]) -> Expression:
        """A conjunct with its constants lifted; those that a value may equal are one."""
        asked = _as_in_list(part)
        if asked is None:
            return self._with_places(part, width, used)
        value, in_list, is_negated = asked
        arguments = self._with_places(value, width, used), self._place(in_list, width, used)
        found = Call(ONE_OF, arguments, Type.BOOLEAN)
        return Call("not", (found,), Type.BOOLEAN) if is_negated else found

    def _projection(
        self, expressions: tuple[Expression, ...], width: int, used: list[int]
    ) -> tuple[Expression, ...]:
        """A select list with its constants behind the columns of the input."""
        if any(map(may_fail, expressions)):
            return expressions
        before, known = len(used), len(self.constants)
        changed = tuple(self._with_places(each, width, used) for each in expressions)
        if all(map(self._can_compute, changed)):
            return changed
        del used[before:], self.constants[known:]
        return expressions

    def _with_places(self, expression: Expression, width: int, used: list[int]) -> Expression:
        match expression:
            case Literal() if expression.value is not None and expression.type is not Type.BOOLEAN:
                return self._place(expression, width, used)
            case Call() if expression.function in _LIFTED_UNDER:
                most = 2 if expression.function == "like" else len(expression.arguments)
                arguments = tuple(
                    self._with_places(each, width, used) if place < most else each
                    for place, each in enumerate(expression.arguments)
                )
                return replace(expression, arguments=arguments)
        return expression

    def _place(self, constant: Constant, width: int, used: list[int]) -> Column:
        """The column in which a query has a constant of its own."""
        self.constants.append(constant)
        used.append(len(self.constants) - 1)
        return Column(width + len(used) - 1, constant.type, f"?{len(self.constants)}")

    def _match(
        self,
        below: _LiftedNode,
        used: list[int],
        predicate: Expression | None,
        expressions: Sequence[Expression],
    ) -> _LiftedNode:
        return _LiftedNode(self._matched(below, used, predicate, expressions), True)

    def _matched(
        self,
        below: _LiftedNode,
        used: list[int],
        predicate: Expression | None,
        expressions: Sequence[Expression],
    ) -> Match:
        if self._is_late and not below.is_tagged and below.since is None:
            raise _NotLiftedError  # a relation's rows have come before the query
        types = tuple(self.constants[each].type for each in used)
        match = Match(
            below.node,
            below.is_tagged,
            tuple(used),
            types,
            predicate,
            tuple(expressions),
            below.since,
        )
        return match if below.is_tagged else self._sampled(match)

    # -- samples ---------------------------------------------------------------------------

    def _sample(self, node: Sample, below: _LiftedNode) -> _LiftedNode:
        if below.is_tagged:
            raise _NotLiftedError
        lifted = replace(below, node=node)
        if self._is_of_windows and _unsampled(node) is not None:
            return self._match(lifted, [], None, lifted.columns)
        return lifted

    def _sampled(self, match: Match) -> Match:
        """With a sample below it: its rate becomes a constant, below which draws have to be."""
        found = _unsampled(match.input)
        if found is None:
            return match
        bare, sample, stream = found
        width, number = match.width, self._constant(sample.limit)
        places = {i: i + (i >= width) for i in range(width + len(match.constants))}
        draw = Column(width, Type.BIGINT, "draw")
        limit = Column(width + 1 + len(match.constants), Type.BIGINT, f"?{number + 1}")
        parts = [remap(part, places) for part in conjuncts(match.predicate)]
        return replace(
            match,
            input=bare,
            constants=(*match.constants, number),
            types=(*match.types, Type.BIGINT),
            predicate=conjoin([*parts, Call("<", (draw, limit), Type.BOOLEAN)]),
            expressions=tuple(remap(each, places) for each in match.expressions),
            draws=stream,
        )

    def _constant(self, number: int) -> int:
        """Which of the constants a number is that is none of an expression."""
        self.constants.append(Literal(number, Type.BIGINT))
        return len(self.constants) - 1

    # -- the others ------------------------------------------------------------------------

    def _tagged_if_late(self, lifted: _LiftedNode) -> _LiftedNode:
        """The lifted node, tagged if a stream is read in it that is not."""
        return lifted if lifted.since is None or lifted.is_tagged else self._tagged(lifted)

    def _tagged(self, lifted: _LiftedNode) -> _LiftedNode:
        """The rows of every query: as many times as there are queries."""
        if lifted.is_tagged:
            return lifted
        if self._is_late:
            raise _NotLiftedError  # nothing is gained
        return self._match(lifted, [], None, lifted.columns)

    def _match_under(self, window: RangeWindow | RowsWindow, below: _LiftedNode) -> Match:
        """The match of the rows that a window of a query's own length reads, which nobody else
        reads: where it is right below, that one."""
        found = below.node
        if isinstance(found, Match) and self._readers[window.input] == 1:
            return found
        return self._matched(below, [], None, below.columns)

    def _rows_window(self, node: RowsWindow, below: _LiftedNode, length: int) -> _LiftedNode:
        """Each row says how many its query's window holds."""
        match, number = self._match_under(node, below), self._constant(length)
        place = match.width + len(match.constants)
        told = replace(
            match,
            constants=(*match.constants, number),
            types=(*match.types, Type.BIGINT),
            expressions=(*match.expressions, Column(place, Type.BIGINT, f"?{number + 1}")),
        )
        *columns, rows, tag = all_columns(told)
        window = RowsWindow(told, rows, node.slide_rows, (*node.partition, tag))
        return _LiftedNode(_project(window, (*columns, tag)), True)

    def _join(self, node: Join, left: _LiftedNode, right: _LiftedNode) -> _LiftedNode:
        if node.kind != "inner":
            raise _NotLiftedError
        width, moved = left.width, left.is_tagged
        total = width + right.width
        places = {i: i if i < width else i + moved for i in range(total)}
        tags = [left.tag] if left.is_tagged else []
        tags += [replace(right.tag, position=total + moved)] if right.is_tagged else []
        parts = [remap(part, places) for part in conjuncts(node.condition)]
        if len(tags) == 2:
            parts.append(Call("=", (tags[0], tags[1]), Type.BOOLEAN))
        join = Join(left.node, right.node, "inner", conjoin(parts))
        columns = [*left.columns, *(shift(each, width + moved) for each in right.columns)]
        return _LiftedNode(_project(join, (*columns, tags[0])), True)

    def _aggregate(self, node: Aggregate, below: _LiftedNode) -> _LiftedNode:
        if not node.keys:
            return self._singletons(node, below)
        count = len(node.keys)
        names = (*node.names[:count], TAG, *node.names[count:])
        grouped = Aggregate(below.node, (*node.keys, below.tag), node.aggregates, names)
        columns = all_columns(grouped)
        order = (*columns[:count], *columns[count + 1 :], columns[count])
        return _LiftedNode(_project(grouped, order), True)

    def _singletons(self, node: Aggregate, below: _LiftedNode) -> _LiftedNode:
        """One row a query, also over nothing: each has a row of NULLs that no aggregate counts."""
        if self._is_late:
            raise _NotLiftedError
        each = self._match(_LiftedNode(ONE_ROW), [], None, ())
        mark = Literal(1, Type.INT)
        types = (*(column.type for column in below.columns), mark.type)
        nulls = tuple(Literal(None, type_) for type_ in types)
        rows = _project(below.node, (*below.columns, mark, below.tag))
        empty = _project(each.node, (*nulls, each.tag))
        aggregates = tuple(
            _of_marked(call, Column(below.width, Type.INT, "mark")) for call in node.aggregates
        )
        tag = Column(below.width + 1, Type.BIGINT, TAG)
        whole = Combine(rows, empty, 1)
        grouped = Aggregate(whole, (tag,), aggregates, (TAG, *node.names))
        columns = all_columns(grouped)
        return _LiftedNode(_project(grouped, (*columns[1:], columns[0])), True)

    def _snapshots(self, node: Snapshots) -> _LiftedNode:
        """What moves has no constants, so it is the same for all queries that began together."""
        if self._is_late:
            raise _NotLiftedError
        below = self._lifted[node.input]
        return _LiftedNode(Snapshots(below.node, node.movers), below.is_tagged)


def _of_marked(call: AggregateCall, mark: Column) -> AggregateCall:
    """The aggregate of the rows in which ``mark`` is not NULL; other columns are NULL with it."""
    argument = call.argument
    if argument is None:
        return replace(call, argument=mark)
    if isinstance(argument, Column):
        return call
    is_marked = Call("not", (Call("is_null", (mark,), Type.BOOLEAN),), Type.BOOLEAN)
    return replace(call, argument=Call("case", (is_marked, argument), argument.type))


def _project(node: Node, expressions: Sequence[Expression]) -> Project:
    """A projection that ends in the tag; how a query calls its columns is no part of a shape."""
    names = (*(f"c{i}" for i in range(len(expressions) - 1)), TAG)
    return Project(node, tuple(expressions), names)


def _in_order(expression: Expression) -> Expression:
    """The same with constants right of what they are compared with, and conjuncts in an order."""
    parts = [_constant_last(part) for part in conjuncts(expression)]
    if len(parts) > 1 and not may_fail(expression):
        parts.sort(key=_form)
    return conjoin(parts) or expression


def _form(part: Expression) -> str:
    """What a conjunct has in common with those that differ in constants only."""
    asked = _as_in_list(part)
    if asked is not None:
        value, in_list, is_negated = asked
        return f"{canonical(rewrite(value, _blank))} {ONE_OF} {is_negated} {in_list.type}"
    return canonical(rewrite(part, _blank))


def _as_in_list(part: Expression) -> tuple[Expression, InList, bool] | None:
    """A value, the constants of which it has to be one, and whether it must be none of them."""
    if not isinstance(part, Call):
        return None
    if part.function == "not":
        below = _as_in_list(part.arguments[0])
        return None if below is None or below[2] else (*below[:2], True)
    if part.function not in ("=", "<>", "in"):
        return None
    value, *others = part.arguments
    if isinstance(value, Literal) or value.type is Type.BOOLEAN:
        return None
    constants = [each for each in others if isinstance(each, Literal)]
    if len(constants) < len(others) or any(each.type is not value.type for each in constants):
        return None
    values = tuple(dict.fromkeys(each.value for each in constants))
    return value, InList(values, value.type), part.function == "<>"


def _blank(expression: Expression) -> Expression:
    return replace(expression, value=None) if isinstance(expression, Literal) else expression


def _constant_last(part: Expression) -> Expression:
    if isinstance(part, Call) and part.function in FLIPPED and len(part.arguments) == 2:
        first, second = part.arguments
        if isinstance(first, Literal) and not isinstance(second, Literal):
            return replace(part, function=FLIPPED[part.function], arguments=(second, first))
    return part


def _unsampled(node: Node) -> tuple[Node, Sample, str] | None:
    """What is read of a base stream without the sample that is taken of it, that, and the stream.

    Tuples are drawn by their numbers, so it does not matter whether they are drawn before or after
    a selection.
    """
    above: list[Node] = []
    while isinstance(node, Filter | Project) and not any(map(may_fail, expressions_of(node))):
        above.append(node)
        node = node.input
    if not isinstance(node, Sample):
        return None
    bare = scan = node.input
    while isinstance(scan, Filter | Project):
        scan = scan.input
    if not isinstance(scan, StreamScan):
        return None
    for each in reversed(above):
        bare = each.with_inputs((bare,))
    return bare, node, scan.name.lower()


def _followed(node: Node) -> tuple[Node, ...]:
    """The inputs that are tagged where needed: when an Rstream speaks is the same for all."""
    return (node.input,) if isinstance(node, Snapshots) else node.inputs


def _in_one(
    lower: Match,
    constants: tuple[int, ...],
    types: tuple[Type, ...],
    predicate: Expression | None,
    expressions: Sequence[Expression],
) -> Match:
    """A match, and a selection or projection of what it gives, with further constants."""
    width, count = lower.width, len(lower.constants)
    places = (
        *lower.expressions,
        Column(width, Type.BIGINT),  # the tag, which no expression reads
        *(
            Column(width + count + i, type_, f"?{constants[i] + 1}")
            for i, type_ in enumerate(types)
        ),
    )
    parts = [substitute(part, places) for part in conjuncts(predicate)]
    return Match(
        lower.input,
        lower.is_tagged,
        lower.constants + constants,
        lower.types + types,
        conjoin([*conjuncts(lower.predicate), *parts]),
        tuple(substitute(each, places) for each in expressions),
        lower.since,
        lower.window,
        lower.draws,
    )
