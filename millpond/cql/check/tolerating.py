"""TOLERATE: the plan of a query that is answered from what a drop point keeps of its stream.

An answer from a sample is made of ordinary sums over the tuples that were kept and the counts of
those that were not, by ordinary aggregates; ``bound`` makes estimates and bounds of these sums.
While nothing is dropped each answer is the exact one. What has no bound is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from millpond.catalog import Catalog, QueryEntry, Tolerance
from millpond.cql.algebra import (
    Aggregate,
    Dstream,
    Filter,
    Istream,
    Project,
    Rstream,
    StreamScan,
)
from millpond.cql.apply import apply
from millpond.cql.check.kept_having import HOLDS, having_of
from millpond.cql.check.kept_input import BOUNDED, NoBoundError, columns_of, kept_input
from millpond.cql.check.kept_rows import has_numbers, tolerant_rows
from millpond.cql.check.kept_sums import Bounded, KeptSums, is_kept, is_of_different, when
from millpond.cql.check.queries import QueryAnalyser
from millpond.cql.coercion import widens
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
)
from millpond.cql.node import Node
from millpond.cql.statements import AlterStream
from millpond.cql.text.parse import parse_statement
from millpond.cql.text.places import StatementError, StatementText
from millpond.cql.text.syntax import CreateQueryStatement, Tolerating
from millpond.schema import Type

SETS = "rows that are no numbers have FALSE NEGATIVES n PERCENT"
SIDES = ("", "_low", "_high", "_certain_low", "_certain_high")
"""What stands behind the name of an approximate column: the answer, and its bounds."""


def tolerated(
    plan: Node, syntax: CreateQueryStatement, catalog: Catalog
) -> tuple[Node, Tolerance | None]:
    """The plan of a query as its statement says: over all tuples, or over what is kept of them."""
    said = syntax.tolerating
    if said is None or said.is_exact:
        return plan, None
    try:
        return _as_said(plan, syntax, said, catalog)
    except StatementError:
        if said.is_unsaid:  # what has no bounds is exact
            return plan, None
        raise


def _as_said(
    plan: Node, syntax: CreateQueryStatement, said: Tolerating, catalog: Catalog
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
    return tolerant(plan, said, catalog)


def tolerant(plan: Node, said: Tolerating, catalog: Catalog) -> tuple[Node, Tolerance]:
    """The plan of a query over what is kept of its stream, and what must be known of the rest."""
    if said.is_of_sets and not (has_numbers(plan) and said.is_unsaid):
        return tolerant_rows(plan, said, catalog)
    parts = _Parts(plan, said, catalog)
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
    plan, tolerance = _tolerant_anew(entry, said, catalog)
    if tolerance.kept != entry.tolerates.kept:
        raise StatementError(
            f'query "{entry.name}" reads what is kept by another SHED BY or WINDOW AT LEAST, or '
            f"none: say it as it is, {entry.tolerates}, or DROP the query and CREATE it anew",
            said.offset,
        )
    return (None if plan == entry.plan else plan), tolerance


def refuse_without_bounds(change: AlterStream, catalog: Catalog, offset: int) -> None:
    """Refuses a change of a stream without which the answers of some query would have no bounds."""
    after = catalog.copy()
    apply(change, after)
    name = change.name.lower()
    for entry in catalog.of_kind(QueryEntry):
        read = {each.name.lower() for each in entry.plan.walk() if isinstance(each, StreamScan)}
        if entry.tolerates is None or name not in read:
            continue
        try:
            of_sets = 0.0 if entry.tolerates.is_of_sets else None
            _tolerant_anew(entry, Tolerating(False, offset, false_positives=of_sets), after)
        except StatementError:
            raise StatementError(
                f'the bounds of query "{entry.name}" rely on it: DROP the query first', offset
            ) from None


def _tolerant_anew(entry: QueryEntry, said: Tolerating, catalog: Catalog) -> tuple[Node, Tolerance]:
    syntax = parse_statement(entry.text)
    if not isinstance(syntax, CreateQueryStatement):
        raise StatementError(f'query "{entry.name}" has no text', said.offset)
    analyser = QueryAnalyser(catalog, StatementText(entry.text, entry.position))
    return tolerant(analyser.whole(syntax.query).plan, said, catalog)


class _Parts:
    """A query that can be answered from a sample, taken apart; any other is refused."""

    def __init__(self, plan: Node, said: Tolerating, catalog: Catalog) -> None:
        self._said, self._tick_microseconds = said, catalog.tick_microseconds
        self._wrapper = plan if isinstance(plan, Istream | Dstream | Rstream) else None
        top = plan if self._wrapper is None else self._wrapper.input
        if not isinstance(top, Project):
            raise self._refusal(f"{BOUNDED}; {SETS}")
        self._having = top.input.predicate if isinstance(top.input, Filter) else None
        below = top.input.input if isinstance(top.input, Filter) else top.input
        if not isinstance(below, Aggregate):
            raise self._refusal(f"{BOUNDED}; {SETS}")
        self._top, self._aggregate = top, below
        try:
            self._input = kept_input(self._aggregate.input, catalog)
        except NoBoundError as no_bound:
            raise StatementError(f"TOLERATE: {no_bound}", said.offset) from None
        self._own = self._input.own
        if said.error and said.shortest is not None:
            raise self._refusal(
                "how wide the bounds of a shortened window are is not known before, so ERROR and "
                "WINDOW AT LEAST do not go together; leave one of them out, or"
            )
        if said.error and plan.is_stream:
            raise self._refusal(
                "the error of a stream's elements is not known before they come; write AS RELATION "
                "behind AS, or leave ERROR out, or"
            )

    def _refusal(self, reason: str) -> StatementError:
        return StatementError(f"TOLERATE: {reason}; leave TOLERATE out", self._said.offset)

    # -- what is known of dropped tuples -----------------------------------------------------

    @property
    def tolerance(self) -> Tolerance:
        """What the query tolerates and needs."""
        shed_by = self._input.shed_by(self._said.shed_by)
        if shed_by and self._drawn_by:
            raise self._refusal("SHED BY is of tuples, and for count(DISTINCT) values are drawn")
        shortest = self._input.shortest(self._said.shortest, self._tick_microseconds)
        return Tolerance(
            self._said.needed_percent,
            self._said.confidence_percent,
            self._input.scan.name,
            tuple(each - self._own.start for each in sorted(self._keys)),
            tuple(sorted({each - self._own.start for each in self._ranged} | set(shed_by))),
            self._input.grain(isinstance(self._wrapper, Rstream), shortest),
            self._said.error,
            self._said.is_relative,
            tuple(each - self._own.start for each in self._drawn_by),
            shed_by=shed_by,
            shed_name=self._said.shed_by.text if self._said.shed_by else "",
            shortest_ticks=shortest,
            window_bytes=self._said.window_bytes,
        )

    @property
    def _keys(self) -> set[int]:
        """The columns of the stream by which dropped tuples are counted."""
        found = {position for key in self._aggregate.keys for position in columns_of(key)}
        return (found | self._input.meets_by).intersection(self._own)

    @property
    def _ranged(self) -> Iterator[int]:
        for call in self._aggregate.aggregates:
            if call.argument is not None and not is_of_different(call):
                yield self._argument(call).position

    @cached_property
    def _drawn_by(self) -> tuple[int, ...]:
        """The column whose different values are counted."""
        calls = [each for each in self._aggregate.aggregates if is_of_different(each)]
        found = {each.argument: each for each in calls}
        for argument, call in found.items():
            if not isinstance(argument, Column) or argument.position not in self._own:
                raise self._refusal(
                    f"{call} has no bound: tuples are drawn by the values that are counted, so "
                    "these are a column of the stream"
                )
        if len(found) > 1:
            one, other, *_ = found.values()
            raise self._refusal(
                f"{other} has no bound beside {one}: tuples are drawn by the values of one column; "
                "ask in a query of its own"
            )
        return tuple(each.position for each in found if isinstance(each, Column))

    def _argument(self, call: AggregateCall) -> Column:
        """The column of the stream that an aggregate is of."""
        argument = call.argument
        while isinstance(argument, Call) and widens(argument):
            argument = argument.arguments[0]
        is_own = isinstance(argument, Column) and argument.position in self._own
        if not isinstance(argument, Column) or not is_own or call.distinct:
            raise self._refusal(
                f"{call} has no bound: of dropped tuples the least and largest values of columns "
                "are known, so an aggregate is of a column of the stream, without DISTINCT"
            )
        if call.function != "count" and not (
            argument.type.is_number or argument.type in (Type.DATE, Type.TIMESTAMP)
        ):
            raise self._refusal(f"{call} of {argument.type} has no bound")
        if call.function != "count" and argument.type.is_decimal:
            raise self._refusal(
                f"{call} of a DECIMAL has no bound: bounds are DOUBLEs; declare the column DOUBLE"
            )
        return argument

    # -- the plan ----------------------------------------------------------------------------

    def rewritten(self) -> Node:
        """The plan over what is kept."""
        below = self._input.over_shortened(self.tolerance)
        by_key, others = self._conditions()
        for each in by_key:
            below = Filter(below, each)
        below, passes = _with_hits(below, self._own.stop, others)
        risk, is_cut = 1 - self._said.confidence_percent / 100, self._said.shortest is not None
        sums = KeptSums(self._own.stop, passes, risk, is_cut)
        answers = [self._answer(call, sums) for call in self._aggregate.aggregates]
        sure = [] if passes is None else self._sure(sums)
        keys = tuple(map(self._input.moved, self._aggregate.keys))
        is_there = None if passes is None else sums.is_there(len(keys))  # of sums, maybe new ones
        names = self._aggregate.names[: len(keys)]
        node: Node = Aggregate(below, keys, sums.calls, (*names, *map(str, sums.calls)))
        if keys and is_there is not None:
            node = Filter(node, is_there)
        node = self._answered(node, [each.after(len(keys)) for each in answers], sure)
        return node if self._wrapper is None else replace(self._wrapper, input=node)

    def _answer(self, call: AggregateCall, sums: KeptSums) -> Bounded:
        argument = None if call.argument is None else self._input.moved(call.argument)
        if argument is not None and is_of_different(call):
            return sums.different(argument)
        if call.argument is not None:
            self._argument(call)
        is_known = call.function == "count" and not sums.has_filter
        if self._drawn_by and not is_known and call.function not in ("min", "max"):
            raise self._refusal(
                f"{call} has no bound beside a count of different values, by which tuples are "
                "drawn; ask in a query of its own"
            )
        match call.function:
            case "count":
                return sums.count(argument)
            case "sum" | "avg":
                return sums.total(call.function, argument, call.type)
            case "stddev" | "variance":
                return sums.deviation(call.function, argument)
            case "percentile" if isinstance(call.parameter, float):
                return sums.percentile(argument, call.parameter)
            case "min" | "max":
                return sums.extreme(call.function, argument)
        raise self._refusal(
            f"{call} has no bound; count, sum, avg, min, max, stddev, variance, percentile and "
            "count(DISTINCT) have"
        )

    def _sure(self, sums: KeptSums) -> list[Expression]:
        """Whether tuples were kept that pass WHERE: without one a group may not be there, or have
        no number that HAVING could compare."""
        keys = len(self._aggregate.keys)
        read = () if self._having is None else columns_of(self._having)
        places = sorted({place - keys for place in read if place >= keys})
        calls = [self._aggregate.aggregates[place] for place in places]
        found: list[Expression | None] = [None] if keys and calls else []
        found += [call.argument for call in calls if call.function != "count"]
        moved = (None if each is None else self._input.moved(each) for each in dict.fromkeys(found))
        return [sums.has_hit(each, keys) for each in moved]

    def _answered(
        self, node: Node, answers: list[tuple[Expression, ...]], sure: list[Expression]
    ) -> Project:
        """The columns that the query puts out, of rows of keys and sums."""
        if self._having is None:
            return self._project(node, answers, {})
        keys = len(self._aggregate.keys)
        columns = [Column(place, node.schema[place].type, f"k{place}") for place in range(keys)]
        computed = (*columns, *(side for each in answers for side in each), *sure)
        node = Project(node, computed, tuple(f"c{place}" for place in range(len(computed))))
        found = [Column(at, each.type, f"c{at}") for at, each in enumerate(node.schema.fields)]
        last = len(found) - len(sure)
        sides = [tuple(found[at : at + len(SIDES)]) for at in range(keys, last, len(SIDES))]
        try:
            having = having_of(self._having, keys, sides, tuple(found[last:]))
        except NoBoundError as no_bound:
            raise StatementError(f"TOLERATE: {no_bound}", self._said.offset) from None
        for each in having.needed:
            node = Filter(node, each)
        return self._project(node, sides, {HOLDS: having.holds} if having.possibly else {})

    def _project(
        self, node: Node, answers: Sequence[tuple[Expression, ...]], more: dict[str, Expression]
    ) -> Project:
        expressions: list[Expression] = []
        names: list[str] = []
        keys = len(self._aggregate.keys)
        for expression, name in zip(self._top.expressions, self._top.names, strict=True):
            positions = list(columns_of(expression))
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
        names += more
        self._refuse_twins(names)
        return Project(node, (*expressions, *more.values()), tuple(names))

    def _refuse_twins(self, names: list[str]) -> None:
        known = [name.lower() for name in names]
        for name in names:
            if known.count(name.lower()) > 1:
                raise self._refusal(
                    f'a column "{name}" would be there twice, for bounds are called so; or call it '
                    "otherwise with AS"
                )

    def _conditions(self) -> tuple[list[Expression], list[Expression]]:
        """What is said of what is known of dropped tuples too, and what of other columns."""
        unknown = set(self._own) - self._keys
        by_key: list[Expression] = []
        others: list[Expression] = []
        for each in self._input.conditions:
            found = by_key if unknown.isdisjoint(columns_of(each)) else others
            found.append(self._input.moved(each))
        return by_key, others


def _with_hits(below: Node, dropped: int, filters: list[Expression]) -> tuple[Node, Column | None]:
    """The rows with one column more, if there are filters: whether a kept tuple passes them all.

    It is computed once, however many sums look at it.
    """
    if not filters:
        return below, None
    fields = below.schema.fields
    columns = [Column(place, each.type, each.name) for place, each in enumerate(fields)]
    passes = when(is_kept(dropped), *filters, value=Literal(True, Type.BOOLEAN))
    names = (*below.schema.names, "hit")
    wider = Project(below, (*columns, passes), names)
    return wider, Column(len(fields), Type.BOOLEAN, "hit")
