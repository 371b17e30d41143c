"""What an aggregate that tolerates a sample is of: a window of one stream, and what tuples meet.

Of a join one side is sampled: that of which no tuple ever meets two rows of another. A dropped
tuple is counted by the columns by which it meets others, so what it would have met is known. All
columns are looked at under the places that they have in the whole join.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from millpond.catalog import KEPT_COLUMNS, Catalog, Tolerance
from millpond.cql.algebra import (
    Filter,
    HopWindow,
    Join,
    LateralJoin,
    RangeWindow,
    RowsWindow,
    Sample,
    SetOperation,
    StreamScan,
    WithTime,
)
from millpond.cql.check.scope import shifted
from millpond.cql.check.told_apart import conjuncts, fixed_columns, keys_of, subqueries_in
from millpond.cql.expressions import Column, Expression, children, walk, with_children
from millpond.cql.node import Node
from millpond.cql.text.durations import ticks
from millpond.cql.text.places import StatementError
from millpond.cql.text.syntax import Duration, Name
from millpond.schema import FOREVER, Schema


class NoBoundError(Exception):
    """Why an answer has no bound."""


@dataclass(frozen=True)
class Side:
    """One of what is joined, and where its first column stands."""

    node: Node
    first: int

    @property
    def columns(self) -> range:
        """Where its columns stand."""
        return range(self.first, self.first + len(self.node.schema))

    def needed(
        self, catalog: Catalog, met: set[int], conditions: tuple[Expression, ...]
    ) -> set[int] | None:
        """The columns of others by which they meet at most one row of it each; None if they can
        meet more."""
        seen = [each for each in conditions if met.union(self.columns).issuperset(columns_of(each))]
        by = {place: each for each in seen for place in self._fixed(each)}
        for key in keys_of(self.node, catalog):
            if key <= by.keys():
                return {each for place in key for each in columns_of(by[place])} & met
        return None

    def _fixed(self, condition: Expression) -> Iterator[int]:
        """The columns, by their places in it, that equal something of others."""
        for each in fixed_columns((condition,), self.columns.start, self.columns.stop):
            yield each - self.first


@dataclass(frozen=True)
class KeptInput:
    """The sides of a join, its conditions from the innermost on, and which side is sampled."""

    sides: tuple[Side, ...]
    conditions: tuple[Expression, ...]
    sampled: Side
    window: RangeWindow | HopWindow
    scan: StreamScan
    meets_by: frozenset[int]
    """The columns of the sampled side by which its tuples meet rows of others."""

    @cached_property
    def own(self) -> range:
        """The columns of the stream, among those of the join."""
        return range(self.sampled.first, self.sampled.first + len(self.scan.schema))

    def joined(self, window: Node) -> Node:
        """The join over another window in the place of the sampled one, with no condition yet."""
        nodes = (window if each is self.sampled else each.node for each in self.sides)
        whole = next(nodes)
        for each in nodes:
            whole = Join(whole, each, "inner", None)
        return whole

    def moved(self, expression: Expression) -> Expression:
        """An expression over the stream and what it meets, over what is kept of it and that."""
        if isinstance(expression, Column):
            is_behind = expression.position >= self.own.stop
            moved = expression.position + (len(KEPT_COLUMNS) if is_behind else 0)
            return replace(expression, position=moved)
        return with_children(expression, tuple(map(self.moved, children(expression))))

    def shed_by(self, name: Name | None) -> tuple[int, ...]:
        """The column of the stream by which tuples are dropped first that have little of it."""
        if name is None:
            return ()
        fields = self.scan.schema.fields
        names = [each.name.lower() for each in fields]
        place = names.index(name.text.lower()) if name.text.lower() in names else -1
        if place < 0 or not fields[place].type.is_number:
            known = ", ".join(each.name for each in fields if each.type.is_number) or "none"
            raise StatementError(
                f'TOLERATE: "{name.text}" is no column of numbers of {self.scan.name}, which says '
                f"from 0 to 1 how important a tuple is; there are: {known}",
                name.offset,
            )
        return (place,)

    def over(self, kept: str) -> Node:
        """The join over what is kept of the stream under a name, with no condition yet."""
        return self.joined(self._windowed(self.window, kept))

    def over_shortened(self, tolerance: Tolerance) -> Node:
        """The join over a window that may be shortened: tuples that stay for all of it, those that
        stay for the shortest, and from then on what is known of these."""
        window, shortest = self.window, tolerance.shortest_ticks
        if not isinstance(window, RangeWindow) or shortest is None:
            return self.over(tolerance.kept)
        short = replace(window, length_ticks=shortest)
        whole = self._windowed(window, tolerance.kept)
        young = self._windowed(short, tolerance.young)
        gone, early = (self._windowed(each, tolerance.cut) for each in (window, short))
        rest = SetOperation(gone, early, "except", all=True)
        both = SetOperation(whole, young, "union", all=True)
        return self.joined(SetOperation(both, rest, "union", all=True))

    def _windowed(self, window: RangeWindow | HopWindow, name: str) -> Node:
        fields = (*self.scan.schema.fields, *KEPT_COLUMNS)
        return window.with_inputs((StreamScan(name, Schema(fields)),))

    def shortest(self, length: Duration | None, tick_microseconds: int) -> int | None:
        """So many ticks its window has at least, as is said; None if that is not said."""
        if length is None:
            return None
        unit = None if length.unit is None else length.unit.text
        found = ticks(length.number, unit, tick_microseconds, length.offset)
        window = self.window
        if not isinstance(window, RangeWindow):
            raise StatementError(
                "WINDOW AT LEAST is of RANGE windows, and of none: TUMBLE and HOP are as long as "
                "they say; leave it out",
                length.offset,
            )
        if found < 0 or found >= (FOREVER if window.length_ticks is None else window.length_ticks):
            raise StatementError(
                f"WINDOW AT LEAST RANGE {found}: it is from 0 to less than the window, which has "
                f"{window.length_ticks} ticks; leave it out if the window may not be shortened",
                length.offset,
            )
        return found

    def grain(self, is_snapshot: bool, shortest: int | None = None) -> int:
        """By so many ticks its window moves, shortened or not; a snapshot is one of every
        instant."""
        if is_snapshot or not isinstance(self.window, RangeWindow):
            return 1
        slide = self.window.slide_ticks or 1
        lengths = self.window.length_ticks or 0, shortest or 0
        return slide if all(each % slide == 0 for each in lengths) else 1


def kept_input(node: Node, catalog: Catalog, of_rows: bool = False) -> KeptInput:
    """What an aggregate is of, or rows; refused if no bound is known then."""
    sides, conditions = _taken_apart(node, 0)
    if any(map(subqueries_in, conditions)) and not of_rows:
        raise NoBoundError("a subquery in WHERE has no bound; leave TOLERATE out")
    windows = list(_windows_of_streams(sides))
    if not windows:
        raise NoBoundError(_no_window(sides[0].node, of_rows))
    for side, window, scan in windows:
        meets_by = _meets_by(side, sides, conditions, catalog)
        if meets_by is not None:
            return KeptInput(sides, conditions, side, window, scan, meets_by)
    raise NoBoundError(_MANY)


def _taken_apart(node: Node, first: int) -> tuple[tuple[Side, ...], tuple[Expression, ...]]:
    """What is joined, and all conditions of joins and filters."""
    match node:
        case Filter():
            sides, below = _taken_apart(node.input, first)
            _refuse_inner(node.predicate, first)
            return sides, (*below, *(shifted(each, first) for each in conjuncts(node.predicate)))
        case LateralJoin():
            raise NoBoundError("a LATERAL subquery has no bound; leave TOLERATE out")
        case Join(kind="inner"):
            left, of_left = _taken_apart(node.left, first)
            right, of_right = _taken_apart(node.right, first + len(node.left.schema))
            if node.condition is not None:
                _refuse_inner(node.condition, first)
            own = (shifted(each, first) for each in conjuncts(node.condition))
            return (*left, *right), (*of_left, *of_right, *own)
    return (Side(node, first),), ()


def _refuse_inner(condition: Expression, first: int) -> None:
    """A subquery behind other columns names its own by other places."""
    if first and subqueries_in(condition):
        raise NoBoundError(
            "a subquery inside of what is joined has no bound; write it in WHERE, or leave "
            "TOLERATE out"
        )


def _meets_by(
    sampled: Side, sides: tuple[Side, ...], conditions: tuple[Expression, ...], catalog: Catalog
) -> frozenset[int] | None:
    """By which columns of one side its tuples meet one row of each other at most; None if they can
    meet more."""
    met, found = set(sampled.columns), set[int]()
    left = [each for each in sides if each is not sampled]
    while left:
        needs = ((each, each.needed(catalog, met, conditions)) for each in left)
        joined = next(((each, needed) for each, needed in needs if needed is not None), None)
        if joined is None:
            return None
        left.remove(joined[0])
        found |= joined[1]
        met.update(joined[0].columns)
    return frozenset(found.intersection(sampled.columns))


def _windows_of_streams(
    sides: tuple[Side, ...],
) -> Iterator[tuple[Side, RangeWindow | HopWindow, StreamScan]]:
    for each in sides:
        match each.node:
            case (RangeWindow() | HopWindow()) as window if isinstance(window.input, StreamScan):
                yield each, window, window.input


def columns_of(expression: Expression) -> Iterator[int]:
    """Where the columns stand that an expression reads."""
    for each in walk(expression):
        if isinstance(each, Column):
            yield each.position


BOUNDED = (
    "only counts, sums, averages, deviations, minima and maxima have bounds, as SELECT aggregates "
    "FROM one stream [, what its tuples meet one row of at most] [WHERE …] [GROUP BY … [HAVING …]]"
)
_MANY = (
    "a tuple of one side of the join can meet several rows of another, so that one draw would "
    "decide about all of them: equate the PRIMARY KEY of a relation or UNIQUE columns of a stream "
    "with columns of one stream; or leave TOLERATE out"
)


def _no_window(node: Node, of_rows: bool) -> str:
    below = node.inputs[0] if isinstance(node, RangeWindow | HopWindow) else node
    if isinstance(below, RowsWindow):
        return (
            "which tuples are the last ones is not known once some are dropped; write RANGE, or "
            "leave TOLERATE out"
        )
    if isinstance(below, Sample):
        return "SAMPLE drops tuples by itself; leave SAMPLE out, or leave TOLERATE out"
    if isinstance(below, WithTime):
        return (
            f"an aggregate that depends on the order of rows has no bound: {BOUNDED}; leave "
            "TOLERATE out"
        )
    if of_rows:
        return (
            "tuples are dropped of a stream in FROM, or of the only one of a subquery behind IN, "
            f"and there is {below.label()}; behind NOT and EXCEPT missed tuples make rows that are "
            "wrong, and how many depends on how many have no partner, which a sample does not "
            "tell; write INTERSECT with the stream on the left, or leave TOLERATE out"
        )
    return (
        f"an aggregate over {below.label()} has no bound: it has to be over one stream; leave "
        "TOLERATE out"
    )
