"""Aggregates of the user: what their functions make of the rows of groups, instant by instant.

A call has a row for each group: the state before, the different rows in order with how often each
is there, and the moves: which row, how many of it come or go, and at which of the group's instants.
Processes of their own load this, so it imports little.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

Row: TypeAlias = tuple[Any, ...]

MOST_IN_BLOCK = 64
"""So many rows are added up again when one of them comes or goes; the others are merged."""


class AggregateFunctions(NamedTuple):
    """What an aggregate of the user is made of."""

    init: Callable[[], Any]
    add: Callable[..., Any]
    value: Callable[[Any], Any]
    remove: Callable[..., Any] | None = None
    merge: Callable[[Any, Any], Any] | None = None

    def added(self, rows: Sequence[Row]) -> Any:
        """The state of some rows, which are in order."""
        state = self.init()
        for row in rows:
            state = self.add(state, *row)
        return state


class Moves(NamedTuple):
    """One group of a step."""

    state: bytes | None
    rows: list[dict[str, Any]]
    counts: list[int]
    moved: list[int]
    weights: list[int]
    moments: list[int]
    instants: int

    def at_instants(self) -> Iterator[list[tuple[int, int]]]:
        """The rows that move at each instant, and how many of each."""
        position = 0
        for instant in range(self.instants):
            found = []
            while position < len(self.moments) and self.moments[position] == instant:
                found.append((self.moved[position], self.weights[position]))
                position += 1
            yield found


def stepped(
    functions: Sequence[Any], is_kept: bool, type_: pa.DataType, columns: Sequence[pa.Array]
) -> pa.Array:
    """The values of each group at its instants, and its state behind them, if one is kept."""
    made = AggregateFunctions(*functions)
    made = made._replace(value=_checked(made.value, type_.field("values").type.value_type))
    groups = (Moves(*each) for each in zip(*(c.to_pylist() for c in columns), strict=True))
    return pa.array([(_kept if is_kept else _again)(made, group) for group in groups], type_)


def _checked(value: Callable[[Any], Any], type_: pa.DataType) -> Callable[[Any], Any]:
    """The same, which raises for what is of another type: Arrow would cut it to fit."""

    def checked(state: Any) -> Any:
        found = value(state)
        if found is not None and not _fits(found, type_):
            raise TypeError(f"gives {found!r}, which is no {type_}")
        return found

    return checked


def _fits(value: Any, type_: pa.DataType) -> bool:
    if pa.types.is_boolean(type_):
        return type(value).__name__ in ("bool", "bool_")
    if pa.types.is_integer(type_):
        return isinstance(value, Integral) and not isinstance(value, bool)
    if pa.types.is_decimal(type_):
        return isinstance(value, Decimal | Integral) and not isinstance(value, bool)
    if pa.types.is_floating(type_):
        return isinstance(value, Real) and not isinstance(value, bool)
    if pa.types.is_date(type_):
        return isinstance(value, date) and not isinstance(value, datetime)
    if pa.types.is_timestamp(type_):
        return isinstance(value, datetime)
    return isinstance(value, bytes if pa.types.is_binary(type_) else str)


def _kept(made: AggregateFunctions, group: Moves) -> dict[str, Any]:
    """By a state to which rows are added, and from which they are taken away."""
    rows = [tuple(row.values()) for row in group.rows]
    count, state = (0, made.init()) if group.state is None else pickle.loads(group.state)  # noqa: S301 (what this has written)
    values: list[Any] = []
    for moves in group.at_instants():
        for row, weight in moves:
            count += weight
            for _ in range(weight):
                state = made.add(state, *rows[row])
            for _ in range(-weight):
                state = _required(made.remove)(state, *rows[row])
        if count == 0:
            state = made.init()
        if moves or not values:
            values.append(made.value(state) if count else None)
        else:
            values.append(values[-1])
    return {"values": values, "state": pickle.dumps((count, state)) if count else None}


def _required(remove: Callable[..., Any] | None) -> Callable[..., Any]:
    if remove is None:
        raise TypeError("a row goes, and there is no remove")
    return remove


def _again(made: AggregateFunctions, group: Moves) -> dict[str, Any]:
    """From the rows that are there, at each instant anew."""
    content = _Content(made, [tuple(row.values()) for row in group.rows], group.counts)
    values: list[Any] = []
    for moves in group.at_instants():
        for row, weight in moves:
            content.move(row, weight)
        values.append(content.value() if moves or not values else values[-1])
    return {"values": values, "state": None}


class _Content:
    """The rows of a group that are there, in order, in blocks of which each has its state.

    Without a merge there is one block.
    """

    def __init__(self, made: AggregateFunctions, rows: list[Row], counts: list[int]) -> None:
        self._made, self._rows, self._counts = made, rows, list(counts)
        size = len(rows) if made.merge is None else MOST_IN_BLOCK
        self._starts = list(range(0, len(rows), max(size, 1)))
        self._states: list[Any] = [None] * len(self._starts)
        self._is_known = [False] * len(self._starts)
        self._total = sum(counts)

    def move(self, row: int, weight: int) -> None:
        """Has some of a row come or go."""
        self._counts[row] += weight
        self._total += weight
        self._is_known[bisect_right(self._starts, row) - 1] = False

    def value(self) -> Any:
        """The value of all rows; None if there are none."""
        if not self._total:
            return None
        merge = self._made.merge
        if merge is None:
            return self._made.value(self._made.added(self._there(0, len(self._rows))))
        state = self._made.init()
        for block in range(len(self._starts)):
            state = merge(state, self._state(block))
        return self._made.value(state)

    def _state(self, block: int) -> Any:
        """The state of a block, as bytes: whoever merges it may change it."""
        if not self._is_known[block]:
            start = self._starts[block]
            end = min(start + MOST_IN_BLOCK, len(self._rows))
            self._states[block] = pickle.dumps(self._made.added(self._there(start, end)))
            self._is_known[block] = True
        return pickle.loads(self._states[block])  # noqa: S301 (written just here)

    def _there(self, start: int, end: int) -> list[Row]:
        counts = self._counts
        return [self._rows[row] for row in range(start, end) for _ in range(counts[row])]
