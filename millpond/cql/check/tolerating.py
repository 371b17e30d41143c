"""TOLERATE: the plan of a query that is answered from what a drop point keeps of its stream.

An answer from a sample is made of ordinary sums over the tuples that were kept and the counts of
those that were not, by ordinary aggregates; ``bound`` makes estimates and bounds of these sums.
While nothing is dropped each answer is the exact one. What has no bound is refused.
"""

from collections.abc import Iterator
from dataclasses import replace

from millpond.catalog import KEPT_COLUMNS, Catalog, QueryEntry, Tolerance
from millpond.cql.algebra import (
    Aggregate,
    Dstream,
    Filter,
    HopWindow,
    Istream,
    Project,
    RangeWindow,
    RowsWindow,
    Rstream,
    Sample,
    StreamScan,
    WithTime,
)
from millpond.cql.check.kept_sums import Bounded, KeptSums, is_kept, when
from millpond.cql.check.queries import QueryAnalyser
from millpond.cql.coercion import widest
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    children,
    walk,
    with_children,
)
from millpond.cql.node import Node
from millpond.cql.text.parse import parse_statement
from millpond.cql.text.places import StatementError, StatementText
from millpond.cql.text.syntax import CreateQueryStatement, Tolerating
from millpond.schema import Schema, Type

SIDES = ("", "_low", "_high", "_certain_low", "_certain_high")
"""What stands behind the name of an approximate column: the answer, and its bounds."""


def tolerated(plan: Node, syntax: CreateQueryStatement) -> tuple[Node, Tolerance | None]:
    """The plan of a query as its statement says: over all tuples, or over what is kept of them."""
    said = syntax.tolerating
    if said is None or said.is_exact:
        return plan, None
    try:
        return _as_said(plan, syntax, said)
    except StatementError:
        if said.is_unsaid:  # what has no bounds is exact
            return plan, None
        raise


def _as_said(
    plan: Node, syntax: CreateQueryStatement, said: Tolerating
) -> tuple[Node, Tolerance | None]:
    if syntax.start is not None:
        raise StatementError(
            "a query that tolerates a sample sees what comes from now on: leave FROM or TOLERATE "
            "out",
            syntax.start.offset,
        )
    if syntax.on_error == "skip":
        raise StatementError(
            "TOLERATE and ON ERROR SKIP do not go together: rows that are left out have no bound; "
            "leave one of them out",
            said.offset,
        )
    return tolerant(plan, said)


def tolerant(plan: Node, said: Tolerating) -> tuple[Node, Tolerance]:
    """The plan of a query over what is kept of its stream, and what must be known of the rest."""
    parts = _Parts(plan, said)
    return parts.rewritten(), parts.tolerance


def altered_tolerance(
    entry: QueryEntry, said: Tolerating, catalog: Catalog
) -> tuple[Node | None, Tolerance | None]:
    """The plan of a query, if it is another one, and its tolerance when ALTER says it anew."""
    if (entry.tolerates is None) != said.is_exact:
        raise StatementError(
            f'the results of query "{entry.name}" would have other columns, for bounds: DROP it '
            "and CREATE it anew",
            said.offset,
        )
    if entry.tolerates is None:
        return None, None
    syntax = parse_statement(entry.text)
    if not isinstance(syntax, CreateQueryStatement):
        raise StatementError(f'query "{entry.name}" has no text', said.offset)
    analyser = QueryAnalyser(catalog, StatementText(entry.text, entry.position))
    plan, tolerance = tolerant(analyser.whole(syntax.query).plan, said)
    return (None if plan == entry.plan else plan), tolerance


class _Parts:
    """A query that can be answered from a sample, taken apart; any other is refused."""

    def __init__(self, plan: Node, said: Tolerating) -> None:
        self._said = said
        self._wrapper = plan if isinstance(plan, Istream | Dstream | Rstream) else None
        top = plan if self._wrapper is None else self._wrapper.input
        if not isinstance(top, Project) or not isinstance(top.input, Aggregate):
            raise self._refusal(_no_aggregate(top))
        self._top, self._aggregate = top, top.input
        self._filters, window = self._below(self._aggregate.input)
        if not isinstance(window, RangeWindow | HopWindow):
            raise self._refusal(_no_window(window))
        if not isinstance(window.input, StreamScan):
            raise self._refusal(_no_window(window.input))
        self._window, self._scan = window, window.input

    def _below(self, node: Node) -> tuple[list[Expression], Node]:
        filters = []
        while isinstance(node, Filter):
            if node.subqueries:
                raise self._refusal("a subquery in WHERE has no bound")
            filters.append(node.predicate)
            node = node.input
        return filters, node

    def _refusal(self, reason: str) -> StatementError:
        return StatementError(f"TOLERATE: {reason}; leave TOLERATE out", self._said.offset)

    # -- what is known of dropped tuples -----------------------------------------------------

    @property
    def tolerance(self) -> Tolerance:
        """What the query tolerates and needs."""
        return Tolerance(
            self._said.least_percent,
            self._said.confidence_percent,
            self._scan.name,
            tuple(sorted(self._keys)),
            tuple(sorted(set(self._ranged))),
            self._grain,
        )

    @property
    def _keys(self) -> set[int]:
        """The columns of the stream by which dropped tuples are counted."""
        found = (position for key in self._aggregate.keys for position in _positions(key))
        return {position for position in found if position < len(self._scan.schema)}

    @property
    def _ranged(self) -> Iterator[int]:
        for call in self._aggregate.aggregates:
            if call.argument is not None:
                yield self._argument(call).position

    @property
    def _grain(self) -> int:
        window = self._window
        if isinstance(self._wrapper, Rstream) or not isinstance(window, RangeWindow):
            return 1
        slide = window.slide_ticks or 1
        return slide if (window.length_ticks or 0) % slide == 0 else 1

    def _argument(self, call: AggregateCall) -> Column:
        """The column of the stream that an aggregate is of."""
        argument = call.argument
        while isinstance(argument, Call) and _widens(argument):
            argument = argument.arguments[0]
        own = len(self._scan.schema)
        if not isinstance(argument, Column) or argument.position >= own or call.distinct:
            raise self._refusal(
                f"{call} has no bound: of dropped tuples the least and largest values of columns "
                "are known, so an aggregate is of a column of the stream, without DISTINCT"
            )
        if call.function != "count" and not (
            argument.type.is_number or argument.type in (Type.DATE, Type.TIMESTAMP)
        ):
            raise self._refusal(f"{call} of {argument.type} has no bound")
        return argument

    # -- the plan ----------------------------------------------------------------------------

    def rewritten(self) -> Node:
        """The plan over what is kept."""
        own = self._scan.schema
        schema = Schema((*own.fields, *KEPT_COLUMNS))
        scan = StreamScan(self.tolerance.kept, schema)
        below: Node = self._window.with_inputs((scan,))
        by_key, others = self._conjuncts()
        for each in by_key:
            below = Filter(below, each)
        below, passes = _with_hits(below, len(own), others)
        sums = KeptSums(len(own), passes, 1 - self._said.confidence_percent / 100)
        answers = [self._answer(call, sums) for call in self._aggregate.aggregates]
        keys = tuple(map(self._moved, self._aggregate.keys))
        is_there = None if passes is None else sums.is_there(len(keys))  # of sums, maybe new ones
        names = self._aggregate.names[: len(keys)]
        node: Node = Aggregate(below, keys, sums.calls, (*names, *map(str, sums.calls)))
        if keys and is_there is not None:
            node = Filter(node, is_there)
        node = self._project(node, [each.after(len(keys)) for each in answers])
        return node if self._wrapper is None else replace(self._wrapper, input=node)

    def _answer(self, call: AggregateCall, sums: KeptSums) -> Bounded:
        if call.argument is not None:
            self._argument(call)
        argument = None if call.argument is None else self._moved(call.argument)
        match call.function:
            case "count":
                return sums.count(argument)
            case "sum" | "avg":
                return sums.total(call.function, argument, call.type)
            case "min" | "max":
                return sums.extreme(call.function, argument)
        raise self._refusal(f"{call} has no bound; count, sum, avg, min and max have")

    def _project(self, node: Node, answers: list[tuple[Expression, ...]]) -> Project:
        expressions: list[Expression] = []
        names: list[str] = []
        keys = len(self._aggregate.keys)
        for expression, name in zip(self._top.expressions, self._top.names, strict=True):
            positions = list(_positions(expression))
            if all(position < keys for position in positions):
                expressions.append(expression)
                names.append(name)
            elif isinstance(expression, Column):
                expressions += answers[expression.position - keys]
                names += [f"{name}{side}" for side in SIDES]
            else:
                raise self._refusal(
                    f"{name} has no bound: it is computed from aggregates; put out the aggregates "
                    "alone"
                )
        self._refuse_twins(names)
        return Project(node, tuple(expressions), tuple(names))

    def _refuse_twins(self, names: list[str]) -> None:
        known = [name.lower() for name in names]
        for name in names:
            if known.count(name.lower()) > 1:
                raise self._refusal(
                    f'a column "{name}" would be there twice, for bounds are called so; or call it '
                    "otherwise with AS"
                )

    def _conjuncts(self) -> tuple[list[Expression], list[Expression]]:
        """What WHERE says of keys alone, and what it says of other columns."""
        found = [self._moved(part) for each in self._filters for part in _parts_of(each)]
        own = len(self._scan.schema)
        keys = self._keys | set(range(own + len(KEPT_COLUMNS), own + len(KEPT_COLUMNS) + 2))
        by_key = [each for each in found if keys.issuperset(_positions(each))]
        return by_key, [each for each in found if each not in by_key]

    def _moved(self, expression: Expression) -> Expression:
        """An expression over the window of the stream, over that of what is kept."""
        if isinstance(expression, Column):
            is_own = expression.position < len(self._scan.schema)
            moved = expression.position + (0 if is_own else len(KEPT_COLUMNS))
            return replace(expression, position=moved)
        return with_children(expression, tuple(map(self._moved, children(expression))))


def _with_hits(
    below: Node, own_columns: int, filters: list[Expression]
) -> tuple[Node, Column | None]:
    """The rows with one column more, if there are filters: whether a kept tuple passes them all.

    It is computed once, however many sums look at it.
    """
    if not filters:
        return below, None
    fields = below.schema.fields
    columns = [Column(place, each.type, each.name) for place, each in enumerate(fields)]
    passes = when(is_kept(own_columns), *filters, value=Literal(True, Type.BOOLEAN))
    names = (*below.schema.names, "hit")
    wider = Project(below, (*columns, passes), names)
    return wider, Column(len(fields), Type.BOOLEAN, "hit")


def _parts_of(predicate: Expression) -> list[Expression]:
    if isinstance(predicate, Call) and predicate.function == "and":
        return [part for each in predicate.arguments for part in _parts_of(each)]
    return [predicate]


def _widens(call: Call) -> bool:
    """Whether a call casts numbers to a type that has them all, in their order."""
    return (
        call.function == "cast"
        and call.type.is_number
        and call.arguments[0].type.is_number
        and widest((call.type, call.arguments[0].type)) is call.type
    )


def _positions(expression: Expression) -> Iterator[int]:
    for each in walk(expression):
        if isinstance(each, Column):
            yield each.position


def _no_aggregate(node: Node) -> str:
    below = node.input if isinstance(node, Project) else node
    if isinstance(below, Filter) and isinstance(below.input, Aggregate):
        return "HAVING compares numbers that may be approximate; leave HAVING out, or"
    return _BOUNDED


_BOUNDED = (
    "only counts, sums, averages, minima and maxima have bounds, as SELECT aggregates FROM one "
    "stream [WHERE …] [GROUP BY …]"
)


def _no_window(node: Node) -> str:
    if isinstance(node, RowsWindow):
        return "which tuples are the last ones is not known once some are dropped; write RANGE, or"
    if isinstance(node, Sample):
        return "SAMPLE drops tuples by itself; leave SAMPLE out, or"
    if isinstance(node, WithTime):
        return f"an aggregate that depends on the order of rows has no bound: {_BOUNDED}"
    return f"an aggregate over {node.label()} has no bound: it has to be over one stream"
