"""Patterns of punctuations: for some columns of a stream the values that a tuple has to have.

Numbers, times, dates and truths are whole numbers here, and their values ranges of these; those of
texts are listed. A column that is not named may have any value, and a NULL is among no values.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias

LEAST, MOST = -(2**63), 2**63 - 1
"""Where ranges end that have no end."""

EPOCH = datetime(1970, 1, 1)

Range: TypeAlias = tuple[int, int]
"""All whole numbers from one to another."""

PatternData: TypeAlias = tuple[tuple[int, tuple[Range, ...], tuple[str, ...]], ...]
"""A pattern as the log has it: of each column its position, the ranges and the texts."""


@dataclass(frozen=True)
class Values:
    """Some values of a column: ranges that rise and do not touch, or texts in the order said."""

    ranges: tuple[Range, ...] = ()
    texts: tuple[str, ...] = ()
    _places: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", frozenset(self.texts))

    def __len__(self) -> int:
        return len(self.ranges) + len(self.texts)

    def united(self, others: Iterable[Values]) -> Values:
        """These and others."""
        ranges, texts = list(self.ranges), dict.fromkeys(self.texts)
        for other in others:
            texts |= dict.fromkeys(other.texts)
            for each in other.ranges:
                _include(ranges, each)
        return Values(tuple(ranges), tuple(texts))

    def common(self, other: Values) -> Values:
        """Those that are among others too."""
        pairs = ((max(a, c), min(b, d)) for a, b in self.ranges for c, d in other.ranges)
        ranges = sorted(pair for pair in pairs if pair[0] <= pair[1])
        return Values(tuple(ranges), tuple(t for t in self.texts if t in other._places))

    def covers(self, other: Values) -> bool:
        """Whether all of others are among these."""
        return other._places <= self._places and all(map(self._covers, other.ranges))

    def _covers(self, wanted: Range) -> bool:
        before = bisect_right(self.ranges, wanted[0], key=lambda each: each[0]) - 1
        return before >= 0 and self.ranges[before][1] >= wanted[1]

    def has(self, value: Any) -> bool:
        """Whether a value is among them: a text, or a whole number; NULL never is."""
        if value is None:
            return False
        return value in self._places if isinstance(value, str) else self._covers((value, value))

    def last(self, count: int) -> Values:
        """So many of them: the largest ranges, or the texts that were said last."""
        return Values(self.ranges[-count:], self.texts[-count:])


def as_number(value: Any) -> int:
    """A truth, a number, or a time in days or microseconds since 1970, as a whole number.

    >>> as_number(date(1970, 1, 3)), as_number(True)
    (2, 1)
    """
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - EPOCH.date()).days
    return int(value)


def _include(ranges: list[Range], new: Range) -> None:
    """Puts a range among others; those that it touches become one with it.

    >>> ranges = [(1, 2), (5, 6)]
    >>> _include(ranges, (3, 4))
    >>> ranges
    [(1, 6)]
    """
    first = bisect_left(ranges, new[0] - 1, key=lambda each: each[1])
    end = bisect_right(ranges, new[1] + 1, key=lambda each: each[0])
    if first < end:
        new = min(new[0], ranges[first][0]), max(new[1], ranges[end - 1][1])
    ranges[first:end] = [new]


@dataclass(frozen=True)
class Pattern:
    """What a tuple has to have in some columns, each once and in order."""

    parts: tuple[tuple[int, Values], ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it names."""
        return tuple(column for column, _ in self.parts)

    def __len__(self) -> int:
        """How many ranges and texts it has."""
        return sum(len(values) for _, values in self.parts)

    def covers(self, other: Pattern) -> bool:
        """Whether all that matches another matches it; both name the same columns."""
        pairs = zip(self.parts, other.parts, strict=True)
        return all(mine.covers(values) for (_, mine), (_, values) in pairs)

    def joined(self, other: Pattern) -> Pattern | None:
        """The pattern that just those match who match this or another, if there is one: they
        name the same columns and differ in one at most."""
        pairs = list(zip(self.parts, other.parts, strict=True))
        different = [place for place, (mine, values) in enumerate(pairs) if mine != values]
        if len(different) > 1:
            return None
        parts = list(self.parts)
        for place in different:
            column, values = parts[place]
            parts[place] = column, values.united([other.parts[place][1]])
        return Pattern(tuple(parts))

    def data(self) -> PatternData:
        """As the log has it."""
        return tuple((column, values.ranges, values.texts) for column, values in self.parts)

    @staticmethod
    def of(data: PatternData) -> Pattern:
        """The pattern that the log speaks of."""
        return Pattern(
            tuple(
                (column, Values(tuple((low, high) for low, high in ranges), tuple(texts)))
                for column, ranges, texts in data
            )
        )
