"""A histogram whose buckets hold about equally many rows: how many are between two values.

A bucket knows its least and its largest value and how many rows it has, exactly; so bounds hold
for certain. Buckets of rows that came later may overlap earlier ones.
"""

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import Floats, finite, require
from millpond.approximation.intervals.approximate import Approximate
from millpond.approximation.intervals.interval import Interval

BYTES_OF_A_BUCKET = 24
"""Two values and a count."""


class EquiDepthHistogram:
    """Values of rows that only come, for counts of ranges and for percentiles.

    >>> histogram = EquiDepthHistogram(24 * 10)
    >>> histogram.add(np.arange(1000)); histogram.count_between(150, 620).certain
    Interval(low=400, high=600)
    """

    def __init__(self, memory_bytes: int) -> None:
        self._low = np.empty(0)
        self._high = np.empty(0)
        self._rows = np.empty(0, dtype=np.int64)
        self.change_memory(memory_bytes)

    @property
    def memory_bytes(self) -> int:
        """How much memory is taken."""
        return len(self._rows) * BYTES_OF_A_BUCKET

    def change_memory(self, memory_bytes: int) -> None:
        """Changes how much memory may be taken; with less, neighbours are merged."""
        require(memory_bytes >= BYTES_OF_A_BUCKET, f"{memory_bytes} bytes: not enough for a bucket")
        self._most_buckets = memory_bytes // BYTES_OF_A_BUCKET
        while len(self._rows) > self._most_buckets:
            self._merge_two()

    def add(self, values: npt.ArrayLike) -> None:
        """Takes values in, a bucket for each of equally long runs of them in order."""
        ordered = np.sort(finite(values))
        starts = np.unique(np.linspace(0, len(ordered), self._most_buckets + 1).astype(int))
        if len(ordered):
            low, high = ordered[starts[:-1]], ordered[starts[1:] - 1]
            self._take(low, high, np.diff(starts))
        while len(self._rows) > self._most_buckets:
            self._merge_two()

    def _take(self, low: Floats, high: Floats, rows: npt.NDArray[np.int64]) -> None:
        lows, highs = np.append(self._low, low), np.append(self._high, high)
        order = np.lexsort((highs, lows))
        self._low, self._high = lows[order], highs[order]
        self._rows = np.append(self._rows, rows)[order]

    def _merge_two(self) -> None:
        """Merges the two neighbours whose merging makes the least uncertain.

        An end of a range makes the rows of all buckets uncertain in which it is: in the mean those
        of each bucket times how many rows it spans, its own and those of overlapping ones.
        """
        merged_high = np.maximum(self._high[:-1], self._high[1:])
        apart = self._rows * self._spanned(self._low, self._high)
        merged = (self._rows[:-1] + self._rows[1:]) * self._spanned(self._low[:-1], merged_high)
        at = int(np.argmin(merged - apart[:-1] - apart[1:]))
        self._rows[at] += self._rows[at + 1]
        self._high[at] = max(self._high[at], self._high[at + 1])
        self._rows = np.delete(self._rows, at + 1)
        self._low, self._high = np.delete(self._low, at + 1), np.delete(self._high, at + 1)

    def _spanned(self, low: Floats, high: Floats) -> Floats:
        """How many rows are in buckets that begin within these values."""
        before = np.append(0.0, np.cumsum(self._rows))
        first, last = np.searchsorted(self._low, low), np.searchsorted(self._low, high, "right")
        spanned: Floats = before[last] - before[first]
        return spanned

    def count_between(self, low: float, high: float) -> Approximate:
        """How many rows have values from ``low`` to ``high``, both included."""
        is_inside = (low <= self._low) & (self._high <= high)
        meets = (self._low <= high) & (low <= self._high)
        certain = Interval(int(self._rows[is_inside].sum()), int(self._rows[meets].sum()))
        parts = self._rows * self._part_between(low, high)
        estimate = certain.nearest(float(parts[meets].sum()))
        return Approximate(estimate, certain, certain, 0)

    def _part_between(self, low: float, high: float) -> Floats:
        """Which part of each bucket is in a range, if its values are spread evenly."""
        width = self._high - self._low
        common = np.minimum(self._high, high) - np.maximum(self._low, low)
        return np.where(width > 0, np.clip(common, 0, None) / np.where(width > 0, width, 1), 1)

    def value_of_rank(self, rank: int) -> Approximate:
        """The value of a rank, counted from one in order of size."""
        rows = int(self._rows.sum())
        require(1 <= rank <= rows, f"rank {rank} of {rows} rows")
        by_low, by_high = np.argsort(self._low), np.argsort(self._high)
        at = int(np.searchsorted(np.cumsum(self._rows[by_low]), rank))
        to = int(np.searchsorted(np.cumsum(self._rows[by_high]), rank))
        certain = Interval(float(self._low[by_low[at]]), float(self._high[by_high[to]]))
        return Approximate(certain.low + certain.width / 2, certain, certain, 0)
