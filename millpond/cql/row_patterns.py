"""MATCH_RECOGNIZE: patterns of rows, and the node that finds them in a stream.

A pattern is a regular expression whose letters are *variables*: a row stands for a variable if the
condition that DEFINE gives it holds. ``NOT V`` at the end asks that no row stand for V until the
time of the pattern is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Union

from millpond.cql.algebra import _require, _Unary
from millpond.cql.expressions import Column, Expression
from millpond.cql.kept import kept
from millpond.schema import Field, Schema, Type


@dataclass(frozen=True)
class Occurrence:
    """A row that stands for a variable."""

    variable: str

    def __str__(self) -> str:
        return self.variable


@dataclass(frozen=True)
class InTurn:
    """One part behind the other."""

    parts: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return f"({' '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Either:
    """One of several parts; those that stand first are preferred."""

    parts: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return f"({' | '.join(map(str, self.parts))})"


@dataclass(frozen=True)
class Repeated:
    """A part from ``least`` to ``most`` times (None: any number); as often as possible, or, if it
    is reluctant, as rarely."""

    part: RowPattern
    least: int
    most: int | None
    is_reluctant: bool = False

    def __str__(self) -> str:
        most = "" if self.most is None else str(self.most)
        return f"{self.part}{{{self.least},{most}}}{'?' if self.is_reluctant else ''}"


@dataclass(frozen=True)
class Absence:
    """No row stands for a variable until the time of the pattern is over; it ends the pattern."""

    variable: str

    def __str__(self) -> str:
        return f"NOT {self.variable}"


RowPattern = Union[Occurrence, InTurn, Either, Repeated, Absence]


def parts_of(pattern: RowPattern) -> tuple[RowPattern, ...]:
    """What a pattern is put together of."""
    match pattern:
        case InTurn() | Either():
            return pattern.parts
        case Repeated():
            return (pattern.part,)
    return ()


def pieces(pattern: RowPattern) -> Iterator[RowPattern]:
    """The pattern and all below it."""
    yield pattern
    for part in parts_of(pattern):
        yield from pieces(part)


def least_rows(pattern: RowPattern) -> int:
    """How many rows a match has at least."""
    match pattern:
        case Occurrence():
            return 1
        case InTurn():
            return sum(map(least_rows, pattern.parts))
        case Either():
            return min(map(least_rows, pattern.parts))
        case Repeated():
            return pattern.least * least_rows(pattern.part)
    return 0


def instructions(pattern: RowPattern) -> int:
    """How many places the pattern has with its repetitions written out."""
    match pattern:
        case Occurrence() | Absence():
            return 1
        case Repeated():
            times = pattern.least + 1 if pattern.most is None else pattern.most
            return 1 + max(times, 1) * instructions(pattern.part)
    return 1 + sum(map(instructions, parts_of(pattern)))


def rows_before(pattern: RowPattern) -> dict[str, int]:
    """How many rows of a match stand before those of each variable, at least."""
    match pattern:
        case Occurrence() | Absence():
            return {pattern.variable: 0}
        case Repeated():
            return rows_before(pattern.part)
        case Either():
            return _least([rows_before(part) for part in pattern.parts])
    found, before = list[dict[str, int]](), 0
    for part in pattern.parts:
        found.append({name: before + rows for name, rows in rows_before(part).items()})
        before += least_rows(part)
    return _least(found)


def _least(each: list[dict[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for one in each for name in one)
    return {name: min(one[name] for one in each if name in one) for name in names}


DEFINE = "DEFINE"
"""The clause in which conditions of variables stand."""
SLOTS = ("first", "last", "count", "sum", "avg", "min", "max")


@dataclass(frozen=True)
class Slot:
    """A value that rows of a match have so far: of those that stand for ``variable`` (None: all).

    ``argument`` is a column of the input, None for count(*); ``back``: as it is so many rows before
    in the partition.
    """

    function: str
    variable: str | None
    argument: Column | None
    type: Type
    back: int = 0

    def __str__(self) -> str:
        of = f"{self.variable or '*'}" + ("" if self.argument is None else f".{self.argument}")
        said = f"{self.function}({of})"
        return f"prev({said}, {self.back})" if self.back else said


@dataclass(frozen=True)
class Definition:
    """When a row stands for a variable: the columns of the input, then the slots, as they are with
    this row among them."""

    variable: str
    condition: Expression


@dataclass(frozen=True)
class Skip:
    """Where the search goes on behind a match: ``past`` its last row, at the ``next`` row behind
    its first, or at the ``first`` or ``last`` row of a variable."""

    to: str
    variable: str | None = None

    def __str__(self) -> str:
        words = {"past": "PAST LAST ROW", "next": "TO NEXT ROW"}
        return words.get(self.to, f"TO {self.to.upper()} {self.variable}")


@dataclass(frozen=True, eq=False, repr=False)
class MatchRecognize(_Unary):
    """The matches of a pattern in each partition of a stream, one element a match, at the instant
    at which it is decided: the partition, then the slots that are ``told``.

    The first column of the input is the number by which tuples of one instant are in order, and
    equal numbers by the first ``order`` columns.
    """

    pattern: RowPattern
    partition: tuple[Column, ...]
    order: int
    definitions: tuple[Definition, ...]
    slots: tuple[Slot, ...]
    told: tuple[int, ...]
    within_ticks: int | None
    skip: Skip

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(self.input.is_stream, "rows of a relation matched")
        _require(all(slot.function in SLOTS for slot in self.slots), "slots")

    @kept
    def schema(self) -> Schema:
        return match_schema(self.partition, self.slots, self.told)

    def label(self) -> str:
        said = (self.pattern, self.partition, self.slots, self.within_ticks, self.skip)
        return f"Match rows {pattern_label(*said)}"


def match_schema(
    partition: tuple[Column, ...], slots: tuple[Slot, ...], told: tuple[int, ...]
) -> Schema:
    """The columns of a match."""
    keys = (Field(column.name, column.type) for column in partition)
    return Schema((*keys, *(Field(str(slots[i]), slots[i].type) for i in told)))


def kept_rows(pattern: RowPattern, slots: tuple[Slot, ...]) -> int:
    """How many rows of a partition are kept for PREV although no match may begin with them."""
    before, last = rows_before(pattern), least_rows(pattern) - 1
    ends = {"first": 0, "last": last}

    def is_in_match(slot: Slot) -> bool:
        known = ends[slot.function] if slot.variable is None else before[slot.variable]
        return slot.back <= known

    return max([0, *(slot.back for slot in slots if slot.back and not is_in_match(slot))])


def pattern_label(
    pattern: RowPattern,
    partition: tuple[Column, ...],
    slots: tuple[Slot, ...],
    within_ticks: int | None,
    skip: Skip,
) -> str:
    """The pattern, of which partitions, for how long, and what is kept."""
    by = f" PARTITION BY {', '.join(map(str, partition))}" if partition else ""
    within = "" if within_ticks is None else f" WITHIN {within_ticks}"
    begun = "until they are decided" if within_ticks is None else f"{within_ticks} ticks at most"
    rows = kept_rows(pattern, slots)
    more = f" and the last {rows} rows of each partition" if rows else ""
    return f"{pattern}{within}{by} SKIP {skip}, keeps begun matches {begun}{more}"
