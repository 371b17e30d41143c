"""How far tuples come behind, and for which delay no more than a share of them comes too late.

``DELAY ADAPTIVE n PERCENT AT MOST length`` waits for as long as it says until enough has come to
know better, then for as long as n percent of what came lately would not have been in time for. What
was seen is counted in buckets a sixteenth wide, so the delay is at most that much too long. It
changes behind tuples of certain numbers, and so does not depend on the pages in which they come.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Counts = tuple[tuple[int, int], ...]
"""Buckets, and how many tuples fell into each."""

PIECE = 1024
"""The delay may change behind so many tuples."""
LATE_SEEN = 16
"""A generation is so long that about so many of it may come too late."""
_EXACT = 32
"""Distances below that have a bucket each; above it each octave has half as many."""
_POWERS = 1 << np.arange(62, dtype=np.int64)


@dataclass(frozen=True)
class Disorder:
    """What was seen of a stream whose delay follows that: the distances behind the largest time of
    this generation of tuples and of the one before, and the delay there is now."""

    late_percent: float
    most: int
    """The longest delay."""
    delay: int
    counted: Counts = ()
    before: Counts = ()

    @classmethod
    def unseen(cls, late_percent: float, most: int) -> Self:
        """Nothing was seen: so it waits as long as it may.

        >>> Disorder.unseen(1.0, 500).delay
        500
        """
        return cls(late_percent, most, most)

    @property
    def tuples(self) -> int:
        """How many tuples of this generation were seen."""
        return sum(count for _, count in self.counted)

    @property
    def tuples_left(self) -> int:
        """How many may come before the delay may change."""
        return PIECE - self.tuples % PIECE

    @property
    def generation(self) -> int:
        """How many tuples a generation has."""
        return PIECE * math.ceil(LATE_SEEN * 100 / self.late_percent / PIECE)

    def followed(self, behind: Ints) -> Self:
        """The same when tuples have come so far behind, no more than may before it changes.

        A longer delay is wanted at once, a shorter one when a generation is over.
        """
        buckets, counts = np.unique(buckets_of(behind), return_counts=True)
        found = Counter(dict(zip(buckets.tolist(), counts.tolist(), strict=True)))
        seen = replace(self, counted=_sorted(found + Counter(dict(self.counted))))
        if seen.tuples % PIECE:
            return seen
        if seen.tuples >= self.generation:
            return replace(seen, delay=seen.wanted, counted=(), before=seen.counted)
        return replace(seen, delay=max(self.delay, seen.wanted))

    @property
    def wanted(self) -> int:
        """The shortest delay for which no more would have come too late than may.

        >>> Disorder(25.0, 500, 500, counted=((0, 3), (7, 1), (9, 1))).wanted
        7
        """
        counts = Counter(dict(self.counted)) + Counter(dict(self.before))
        left = int(sum(counts.values()) * self.late_percent / 100)
        for bucket in sorted(counts, reverse=True):
            left -= counts[bucket]
            if left < 0:
                return min(self.most, largest_in(bucket))
        return 0

    def data(self) -> tuple[Any, ...]:
        """As the log has it."""
        return self.late_percent, self.most, self.delay, self.counted, self.before

    @classmethod
    def read(cls, data: tuple[Any, ...]) -> Self | None:
        """As the log has it; None if nothing is seen of a stream."""
        if not data:
            return None
        *told, counted, before = data
        return cls(*told, *(tuple((b, n) for b, n in counts) for counts in (counted, before)))


def buckets_of(distances: Ints) -> Ints:
    """The buckets of distances; none is less than 0.

    >>> buckets_of(np.array([0, 31, 32, 33, 34, 63, 64, 1000])).tolist()
    [0, 31, 32, 32, 33, 47, 48, 111]
    """
    octave = np.searchsorted(_POWERS, np.maximum(distances, _EXACT), side="right") - 1
    place = (distances >> (octave - 4)) - 16
    return np.where(distances < _EXACT, distances, _EXACT + (octave - 5) * 16 + place)


def largest_in(bucket: int) -> int:
    """The largest distance of a bucket.

    >>> [largest_in(bucket) for bucket in (0, 31, 32, 47, 48, 111)]
    [0, 31, 33, 63, 67, 1023]
    """
    if bucket < _EXACT:
        return bucket
    octave, place = divmod(bucket - _EXACT, 16)
    return ((place + 17) << (octave + 1)) - 1


def _sorted(counts: Counter[int]) -> Counts:
    return tuple(sorted(counts.items()))
