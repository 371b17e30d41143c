"""Sums and counts over a window of time in few buckets (after Datar, Gionis, Indyk, Motwani 2002).

A bucket has the first and last time of what is in it and the sum. Only the bucket in which a window
begins is uncertain, and buckets are merged where they are smallest beside all that is newer: so
the error is a small part of the answer. In difference to the paper amounts need not be integers,
and the number of buckets is given, not the error; `docs/precision.md` has the proof of the error.
"""

import math

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import finite, require
from millpond.approximation.intervals.approximate import Approximate
from millpond.approximation.intervals.interval import Interval

BYTES_OF_A_BUCKET = 24
"""Two times and a sum."""


class ExponentialHistogram:
    """The sum of amounts, none negative, of rows in order of time; a count if all are one.

    >>> histogram = ExponentialHistogram(24 * 40)
    >>> histogram.add(np.arange(1000), np.ones(1000))
    >>> histogram.sum_since(500).certain
    Interval(low=488.0, high=552.0)
    """

    def __init__(self, memory_bytes: int) -> None:
        self._first = np.empty(0, dtype=np.int64)
        self._last = np.empty(0, dtype=np.int64)
        self._sums = np.empty(0)
        self._added = 0.0
        self._additions = 0
        self._is_whole = True
        self.change_memory(memory_bytes)

    @property
    def memory_bytes(self) -> int:
        """How much memory is taken."""
        return len(self._sums) * BYTES_OF_A_BUCKET

    def change_memory(self, memory_bytes: int) -> None:
        """Changes how much memory may be taken; with less, buckets are merged."""
        require(memory_bytes >= 4 * BYTES_OF_A_BUCKET, f"{memory_bytes} bytes: less than 4 buckets")
        self._most_buckets = memory_bytes // BYTES_OF_A_BUCKET
        while len(self._sums) > self._most_buckets:
            self._merge_two()

    def add(self, times: npt.ArrayLike, amounts: npt.ArrayLike) -> None:
        """Takes rows in, in order of time and not before those that are there."""
        when, sums = np.asarray(times, dtype=np.int64), finite(amounts)
        if not len(when):
            return
        newest = self._last[-1] if len(self._last) else when[0]
        require(bool((np.diff(when, prepend=newest) >= 0).all()), "rows are not in order of time")
        require(bool((sums >= 0).all()), "a negative amount: keep these in a histogram apart")
        self._is_whole &= bool((sums == np.floor(sums)).all())
        self._additions += len(sums)
        starts = np.flatnonzero(np.diff(when, prepend=when[0] - 1))
        for time, amount in zip(when[starts], np.add.reduceat(sums, starts), strict=True):
            self._append(int(time), float(amount))

    def forget(self, start: int) -> None:
        """Lets go of what is before or at a time: no window will begin before it."""
        is_kept = self._last > start
        self._first, self._last = self._first[is_kept], self._last[is_kept]
        self._sums = self._sums[is_kept]

    def sum_since(self, start: int) -> Approximate:
        """The sum of what came after a time."""
        whole = math.fsum(self._sums[self._first > start])
        cut = math.fsum(self._sums[(self._first <= start) & (self._last > start)])
        room = self._rounding()
        certain = Interval(max(0.0, whole - room), whole + cut + room)
        return Approximate(whole + cut / 2, certain, certain, 0)

    def _append(self, time: int, amount: float) -> None:
        if not amount:
            return
        self._added += amount
        if len(self._last) and self._last[-1] == time == self._first[-1]:
            self._sums[-1] += amount
            return
        self._first, self._last = np.append(self._first, time), np.append(self._last, time)
        self._sums = np.append(self._sums, amount)
        if len(self._sums) > self._most_buckets:
            self._merge_two()

    def _merge_two(self) -> None:
        """Merges the two neighbours that are least beside what is newer than both."""
        pairs = self._sums[:-2] + self._sums[1:-1]
        newer = np.cumsum(self._sums[::-1])[::-1][2:]
        at = int(np.argmin(pairs / newer))
        self._sums[at] += self._sums[at + 1]
        self._last[at] = self._last[at + 1]
        self._first, self._last = np.delete(self._first, at + 1), np.delete(self._last, at)
        self._sums = np.delete(self._sums, at + 1)

    def _rounding(self) -> float:
        """What rounding can have done; nothing where all amounts are integers, not too large."""
        is_exact = self._is_whole and self._added < 2**53
        return 0.0 if is_exact else 2.0**-52 * (4 + self._additions) * self._added
