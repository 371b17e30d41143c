"""Punctuations of a stream that are remembered, and what is known by them after which time.

What a pattern says of a column is united with what others said that name the same columns and
agree in all but one, so that ranges grow and lists get longer instead of patterns more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from millpond.cql.patterns import LEAST, MOST, Pattern, Values
from millpond.storage.thinning import thinned

MOST_VALUES = 10_000
"""So many ranges and values are remembered of a column that punctuations name alone."""

MOST_PATTERNS = 256
"""So many patterns are remembered that name the same several columns."""

MOST_KNOWN = 32
"""What was known is remembered at so many times; of more one is forgotten, so that whoever is so
far behind knows at least what was known about twice as long ago."""

Patterns: TypeAlias = tuple[Pattern, ...]


@dataclass(frozen=True)
class Remembered:
    """The patterns of punctuations with one policy; ``forgotten``: ranges and values that had no
    place any more."""

    patterns: Patterns = ()
    forgotten: int = 0

    def followed(self, patterns: Iterable[Pattern]) -> Remembered:
        """What is remembered after more punctuations."""
        by_columns: dict[tuple[int, ...], list[Pattern]] = {}
        for pattern in patterns:
            by_columns.setdefault(pattern.columns, []).append(pattern)
        remembered = self
        for columns, new in by_columns.items():
            remembered = remembered._followed(columns, new)
        return remembered

    def _followed(self, columns: tuple[int, ...], new: Sequence[Pattern]) -> Remembered:
        """The same of patterns that name the same columns."""
        same = [each for each in self.patterns if each.columns == columns]
        others = [each for each in self.patterns if each.columns != columns]
        for pattern in new:
            same = _united(same, pattern)
        kept = _within_limits(same)
        gone = sum(map(len, same)) - sum(map(len, kept))
        return replace(self, patterns=(*others, *kept), forgotten=self.forgotten + gone)


def _united(patterns: list[Pattern], new: Pattern) -> list[Pattern]:
    """Some patterns of the same columns and one more, which becomes one with those it can."""
    if any(each.covers(new) for each in patterns):
        return patterns
    while True:
        rest = [each for each in patterns if not new.covers(each)]
        found = next((each for each in rest if each.joined(new) is not None), None)
        joined = None if found is None else found.joined(new)
        if found is None or joined is None:
            return [*rest, new]
        patterns, new = [each for each in rest if each is not found], joined


def _within_limits(patterns: list[Pattern]) -> list[Pattern]:
    """The last of some patterns of the same columns, and of each column the last values."""
    return [
        each
        if all(len(values) <= MOST_VALUES for _, values in each.parts)
        else Pattern(tuple((column, values.last(MOST_VALUES)) for column, values in each.parts))
        for each in patterns[-MOST_PATTERNS:]
    ]


class Punctuations:
    """What is known by punctuations of a stream, each time with that after which it holds."""

    def __init__(self) -> None:
        self._known: tuple[tuple[int, Patterns], ...] = ()

    def note(self, after: int, patterns: Patterns) -> None:
        """No element that begins after a time matches one of the patterns."""
        known = (*(each for each in self._known if each[0] < after), (after, patterns))
        self._known = thinned(known, MOST_KNOWN)

    def at(self, time: int) -> Patterns:
        """The patterns that no element matches which begins after a time."""
        found = bisect_right(self._known, time, key=lambda each: each[0])
        return self._known[found - 1][1] if found else ()


@dataclass(frozen=True)
class TimeColumn:
    """The column of a stream that has the times of its tuples, in ticks, or as moments if a tick
    has some ``microseconds``."""

    position: int
    microseconds: int | None = None

    def past(self, time: int) -> Pattern:
        """What no tuple matches whose time is after one: a heartbeat is the punctuation on time."""
        last = time if self.microseconds is None else (time + 1) * self.microseconds - 1
        return Pattern(((self.position, Values(((LEAST, max(LEAST, min(MOST, last))),))),))
