"""Peaks: where the values of a column have risen above all before, in order of place.

A stream that rises has a peak a row, and a constraint within 100,000 rows remembers as many. So
they are arrays, of which what comes later shares the beginning: to add some costs what is added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from millpond.intake.packing import packed, unpacked
from millpond.kernels.groups import Ints

LEAST_ROOM = 64
"""Arrays have room for so many at least."""


class _Arrays:
    """Places and values, of which the first ``used`` are written."""

    def __init__(self, room: int) -> None:
        self.both = np.empty((2, room), dtype=np.int64)
        self.used = 0


@dataclass(frozen=True, eq=False)
class Peaks:
    """Places and values, both in rising order; nobody changes what is there."""

    _arrays: _Arrays = field(default_factory=lambda: _Arrays(0), repr=False)
    first: int = 0
    end: int = 0

    @staticmethod
    def of(places: Any, values: Any) -> Peaks:
        """The peaks of some tuples, whose places come in any order.

        >>> Peaks.of([1, 3, 2], [5, 6, 4]).pairs()
        [(1, 5), (3, 6)]
        """
        at, height = np.asarray(places, np.int64), np.asarray(values, np.int64)
        order = np.lexsort((height, at))
        at, height = at[order], height[order]
        rises = np.append(True, height[1:] > np.maximum.accumulate(height)[:-1])[: len(at)]
        return Peaks().plus(at[rises], height[rises])

    @property
    def places(self) -> Ints:
        """Where they are."""
        return self._arrays.both[0, self.first : self.end]

    @property
    def values(self) -> Ints:
        """How high they are."""
        return self._arrays.both[1, self.first : self.end]

    def __len__(self) -> int:
        return self.end - self.first

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Peaks) and self.pairs() == other.pairs()

    def __hash__(self) -> int:
        return hash(tuple(self.pairs()))

    def pairs(self) -> list[tuple[int, int]]:
        """Place and value of each."""
        return list(zip(self.places.tolist(), self.values.tolist(), strict=True))

    def plus(self, places: Ints, values: Ints) -> Peaks:
        """With more behind them, which are higher and no earlier."""
        arrays, end = self._arrays, self.end + len(places)
        if arrays.used != self.end or end > arrays.both.shape[1]:
            arrays = self._moved(len(places))
            return Peaks(arrays, 0, arrays.used).plus(places, values)
        arrays.both[0, self.end : end], arrays.both[1, self.end : end] = places, values
        arrays.used = end
        return Peaks(arrays, self.first, end)

    def _moved(self, more: int) -> _Arrays:
        """The same in arrays of their own, with room for as many again."""
        moved = _Arrays(max(LEAST_ROOM, 2 * (len(self) + more)))
        moved.both[:, : len(self)] = self._arrays.both[:, self.first : self.end]
        moved.used = len(self)
        return moved

    def since(self, number: int) -> Peaks:
        """Without the first of them."""
        return Peaks(self._arrays, self.first + number, self.end)

    def joined(self, other: Peaks) -> Peaks:
        """Those of both that are above all before."""
        if not len(other):
            return self
        is_behind = not len(self) or self.places[-1] <= other.places[0]
        if is_behind and (not len(self) or self.values[-1] < other.values[0]):
            return self.plus(other.places, other.values)
        places = np.concatenate([self.places, other.places])
        return Peaks.of(places, np.concatenate([self.values, other.values]))

    # -- in the log ------------------------------------------------------------------------

    def packed(self) -> str:
        """As text."""
        return packed(self._arrays.both[:, self.first : self.end])

    @staticmethod
    def read(told: str | Iterable[tuple[int, int]]) -> Peaks:
        """What a log says; one of before has pairs."""
        if isinstance(told, str):
            return Peaks().plus(*unpacked(told, 2))
        pairs = np.array(list(told), dtype=np.int64).reshape(-1, 2)
        return Peaks().plus(pairs[:, 0], pairs[:, 1])
