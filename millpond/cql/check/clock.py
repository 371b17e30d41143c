"""CURRENT_TIMESTAMP: conditions that speak of the time of the instant they are asked at.

A comparison turns true or false for a row when the time reaches what the row says. So a condition
is asked of rows until they turn and of those that have, each time with its answer in the place of
the comparison: a time filter, and a plain condition above it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from millpond.catalog import Catalog
from millpond.cql.algebra import Filter, SetOperation, TimeFilter
from millpond.cql.check.hops import tick_of
from millpond.cql.check.scope import Scope
from millpond.cql.check.walk import Analyser, Clock, connect, negation
from millpond.cql.coercion import cast
from millpond.cql.expressions import (
    Call,
    Column,
    Exists,
    Expression,
    InSubquery,
    Literal,
    OuterColumn,
    Quantified,
    ScalarSubquery,
    children,
    walk,
    with_children,
)
from millpond.cql.failing import can_fail
from millpond.cql.node import Node
from millpond.cql.text.places import StatementError
from millpond.cql.truth import can_be_true
from millpond.cql.written import Written
from millpond.cql.zones import LOCAL_TIME, in_zone, instant_of, local_time
from millpond.schema import Type
from millpond.time_zones import UTC

MOST_COMPARISONS = 4
"""So many different times may a condition compare with."""

MARKS = 2_000_000
"""Comparisons with the time stand in a condition as columns from this position on, until each is
decided."""

_NOW = Call("now", (), Type.TIMESTAMP)
CLOCKS: dict[str, Expression] = {
    "CURRENT_TIMESTAMP": _NOW,
    "LOCALTIMESTAMP": _NOW,
    "NOW": _NOW,
    "CURRENT_DATE": _NOW,
    "CURRENT_TIME": _NOW,
}
"""The time of the instant by its names in SQL."""

_TICKS = Call("now", (), Type.BIGINT)
"""What CURRENT_TIME is where times are numbers."""

_ONLY_COMPARED = (
    "the time goes on, and no row says when; in WHERE and HAVING compare it with what a row says: "
    "WHERE expires < CURRENT_TIMESTAMP, WHERE at + INTERVAL '5' MINUTE > CURRENT_TIMESTAMP"
)
_TRUE = Literal(True, Type.BOOLEAN)
_UNKNOWN = Literal(None, Type.BOOLEAN)
_SUBQUERIES = (Exists, InSubquery, Quantified, ScalarSubquery)
_FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def names_clock(node: exp.Column, scope: Scope) -> bool:
    """Whether a name is that of the time, and of no column."""
    return not node.table and node.name.upper() in CLOCKS and not scope.knows(node.name)


def clock(analyser: Analyser, name: str, offset: int | None) -> Expression:
    """The time of the instant, where it can be compared."""
    if analyser.clock is None:
        raise StatementError(
            f"{name.upper()} cannot stand in {analyser.clause}: {_ONLY_COMPARED}; tstamp(S) is "
            "the time of an element of a stream",
            offset,
        )
    analyser.clock.offsets.append(offset)
    if name.upper() == "CURRENT_TIME" and analyser.clock.counts_ticks:
        return _TICKS
    if name.upper() == "CURRENT_DATE":
        return cast(local_time(_NOW), Type.DATE)
    return CLOCKS[name.upper()]


def clock_of(plan: Node, catalog: Catalog) -> Clock:
    """The time where conditions on what a plan makes may speak of it."""
    return Clock(catalog.tick_microseconds, tick_of(plan, catalog) is None)


def selected(plan: Node, condition: Expression, written: Written, time: Clock) -> Node:
    """The rows for which a condition is true, which may compare with the time."""
    if not time.offsets:
        return Filter(plan, condition, written)
    tick, offset = time.tick_microseconds, time.offsets[0]
    parts = _conjuncts(condition)
    own = [part for part in parts if not _is_correlated(part)]
    outer = [part for part in parts if _is_correlated(part)]
    if any(map(_names_time, outer)):
        raise StatementError(
            "CURRENT_TIMESTAMP is compared here together with a column of the query around; say "
            "it in the WHERE of that query, or as a join: FROM A, B WHERE A.a = B.a AND …",
            offset,
        )
    comparisons = _Comparisons(tick, offset)
    decided = comparisons.marked(connect("and", own))
    if len(comparisons.turns) > MOST_COMPARISONS:
        raise StatementError(
            f"a condition compares with at most {MOST_COMPARISONS} times; have some of them in a "
            "subquery in FROM",
            offset,
        )
    plan = _divided(plan, decided, list(comparisons.turns.items()), written)
    return Filter(plan, connect("and", outer), written) if outer else plan


@dataclass(frozen=True)
class _Turn:
    """Until when the time is before what a row says."""

    value: Expression
    units_a_tick: int
    is_inclusive: bool


def _divided(
    plan: Node, condition: Expression, left: list[tuple[_Turn, Column]], written: Written
) -> Node:
    """The rows for which a condition is true, asked before and after each turn."""
    if not left:
        return plan if condition == _TRUE else Filter(plan, condition, written)
    (turn, mark), *others = left
    is_null = Call("is_null", (turn.value,), Type.BOOLEAN)
    answers = ((_TRUE, False), (Call("and", (is_null, _UNKNOWN), Type.BOOLEAN), True))
    found: list[Node] = []
    for answer, is_rest in answers:
        asked = _simplified(_replaced(condition, mark, answer))
        if can_be_true(asked) or any(isinstance(e, Call) and can_fail(e) for e in walk(asked)):
            which = (turn.units_a_tick, turn.is_inclusive, is_rest, bool(found))
            part = TimeFilter(plan, turn.value, *which)
            found.append(_divided(part, asked, others, written))
    if not found:
        return Filter(plan, Literal(False, Type.BOOLEAN), written)
    return found[0] if len(found) == 1 else SetOperation(found[0], found[1], "union", all=True)


def _replaced(condition: Expression, mark: Column, by: Expression) -> Expression:
    if condition == mark:
        return by
    below = tuple(_replaced(child, mark, by) for child in children(condition))
    return with_children(condition, below) if below else condition


def _simplified(condition: Expression) -> Expression:
    """A conjunction without what is TRUE."""
    parts = [part for part in _conjuncts(condition) if part != _TRUE]
    return connect("and", parts) if parts else _TRUE


def _conjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.function == "and":
        return [part for each in condition.arguments for part in _conjuncts(each)]
    return [condition]


def _is_correlated(expression: Expression) -> bool:
    return any(isinstance(part, OuterColumn) for part in walk(expression))


def _names_time(expression: Expression) -> bool:
    return any(isinstance(part, Call) and part.function == "now" for part in walk(expression))


@dataclass
class _Comparisons:
    """Comparisons with the time, each with the turn that decides it."""

    tick: int
    offset: int | None
    turns: dict[_Turn, Column] = field(default_factory=dict)

    def marked(self, condition: Expression) -> Expression:
        """A condition with a mark for each comparison with the time."""
        if not _names_time(condition):
            return condition
        if isinstance(condition, Call) and condition.function in _FLIPPED:
            left, right = condition.arguments
            if left.type is not Type.BOOLEAN:
                return self._compared(condition.function, left, right)
        if isinstance(condition, Call) and condition.type is Type.BOOLEAN:
            parts = tuple(map(self.marked, condition.arguments))
            return with_children(condition, parts)
        raise self._refusal()

    def _refusal(self) -> StatementError:
        return StatementError(f"the time is only compared: {_ONLY_COMPARED}", self.offset)

    def _compared(self, symbol: str, left: Expression, right: Expression) -> Expression:
        if _names_time(left) and _names_time(right):
            raise self._refusal()
        if _names_time(right):
            symbol, left, right = _FLIPPED[symbol], right, left
        return self._solved(symbol, left, right)

    def _solved(self, symbol: str, moving: Expression, other: Expression) -> Expression:
        """``moving symbol other`` as marks; what is done to the time is undone on the other side.

        A TIMESTAMP is the number of its microseconds here.
        """
        if not isinstance(moving, Call):
            raise self._refusal()
        match moving.function:
            case "now":
                units = self.tick if moving.type is Type.TIMESTAMP else 1
                return self._of_time(symbol, in_units(other), units)
            case "unix_micros" | "timestamp_micros":
                return self._solved(symbol, moving.arguments[0], in_units(other))
            case "+" | "-" if moving.type is Type.BIGINT:
                return self._solved(*self._moved(symbol, moving, in_units(other)))
            case "cast" if moving.type is Type.DATE and other.type is Type.DATE:
                return self._of_day(symbol, moving.arguments[0], other)
        raise self._refusal()

    def _moved(
        self, symbol: str, sum_: Call, other: Expression
    ) -> tuple[str, Expression, Expression]:
        """A sum or difference with the time in it: what stands beside that, on the other side."""
        first, second = sum_.arguments
        if not _names_time(second):
            inverse = "-" if sum_.function == "+" else "+"
            return symbol, first, Call(inverse, (other, in_units(second)), Type.BIGINT)
        if _names_time(first):
            raise self._refusal()
        if sum_.function == "+":
            return symbol, second, Call("-", (other, in_units(first)), Type.BIGINT)
        return _FLIPPED[symbol], second, Call("-", (in_units(first), other), Type.BIGINT)

    def _of_day(self, symbol: str, moment: Expression, day: Expression) -> Expression:
        """The day of a moment compared with another day, by the midnights around that."""
        next_day = Call("date_add", (day, Literal(1, Type.INT)), Type.DATE)
        zone = UTC
        if isinstance(moment, Call) and moment.function == LOCAL_TIME:
            moment, mark = moment.arguments
            zone = str(mark.value) if isinstance(mark, Literal) else UTC
        with in_zone(zone):
            begin, end = (in_units(instant_of(each)) for each in (day, next_day))
        return _by_order(
            symbol,
            lambda is_inclusive: self._solved("<", moment, end if is_inclusive else begin),
        )

    def _of_time(self, symbol: str, until: Expression, units: int) -> Expression:
        if any(isinstance(part, _SUBQUERIES) for part in walk(until)):
            raise StatementError(
                "CURRENT_TIMESTAMP is compared here with a subquery; have its value as a column: "
                "SELECT * FROM (SELECT a, (SELECT …) AS due FROM S) T WHERE due < CURRENT_TIME",
                self.offset,
            )
        return _by_order(symbol, lambda is_inclusive: self._mark(_Turn(until, units, is_inclusive)))

    def _mark(self, turn: _Turn) -> Column:
        return self.turns.setdefault(turn, Column(MARKS + len(self.turns), Type.BOOLEAN))


def _by_order(symbol: str, below: Callable[[bool], Expression]) -> Expression:
    """A comparison made of < (``below(False)``) and <= (``below(True)``)."""
    match symbol:
        case "<" | "<=":
            return below(symbol == "<=")
        case ">" | ">=":
            return negation(below(symbol == ">"))
        case "=":
            return connect("and", [below(True), negation(below(False))])
    return connect("or", [below(False), negation(below(True))])


def in_units(value: Expression) -> Expression:
    """A TIMESTAMP as its microseconds, a number as a BIGINT."""
    if value.type is Type.TIMESTAMP:
        if isinstance(value, Call) and value.function == "timestamp_micros":
            return value.arguments[0]
        return Call("unix_micros", (value,), Type.BIGINT)
    return cast(value, Type.BIGINT)
