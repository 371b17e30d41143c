"""How long results take, from when they could be known until they are put out.

That is when their tuples had come and the inputs had promised to be past them.

Kept in buckets, each 9 % wider than the one before, so that a percentile is right within 5 % and a
query needs a few hundred numbers however long it runs. Means are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from millpond.storage.origins import Origins

BUCKETS_PER_DOUBLING = 8
SHORTEST_SECONDS = 1e-6


@dataclass(frozen=True)
class Latencies:
    """What is known of a query's results: how long they took, and how many have no arrival."""

    results: int
    mean_seconds: float
    p50_seconds: float
    p95_seconds: float
    p99_seconds: float
    largest_seconds: float
    without_arrival: int
    """Results of steps in which no tuple came: windows ended as time was promised to pass."""

    def __str__(self) -> str:
        if not self.results:
            return "no results with an arrival"
        shown = (self.mean_seconds, self.p50_seconds, self.p95_seconds, self.p99_seconds)
        names = ("mean", "p50", "p95", "p99")
        return ", ".join(f"{n} {in_unit(s)}" for n, s in zip(names, shown, strict=True))


class LatencyRecord:
    """Fills the buckets of one query."""

    def __init__(self, began: float) -> None:
        self._began = began
        """What was there before the query counts from here."""
        self._rows = self._without = 0
        self._total = self._largest = 0.0
        self._buckets: dict[int, float] = {}

    def add(
        self, origins: Origins, rows: int, now: float, ready_seconds: float = -math.inf
    ) -> None:
        """So many rows are put out now that stem from tuples that came at these moments.

        Before ``ready_seconds`` nobody could know them: that was no latency.
        """
        if not origins:
            self._without += rows
            return
        self._rows += rows
        share = rows / sum(count for _, count in origins)
        for moment, count in origins:
            seconds = max(now - max(moment, self._began, ready_seconds), SHORTEST_SECONDS)
            bucket = math.floor(math.log2(seconds) * BUCKETS_PER_DOUBLING)
            self._buckets[bucket] = self._buckets.get(bucket, 0.0) + count * share
            self._total += seconds * count * share
            self._largest = max(self._largest, seconds)

    def copy(self) -> LatencyRecord:
        """What was recorded so far, to be compared with later."""
        other = LatencyRecord(self._began)
        other._rows, other._without, other._total = self._rows, self._without, self._total
        other._largest, other._buckets = self._largest, dict(self._buckets)
        return other

    def since(self, before: LatencyRecord) -> Latencies:
        """What was recorded since a copy was made; the largest is that of all."""
        other = self.copy()
        other._rows -= before._rows
        other._without -= before._without
        other._total -= before._total
        for bucket, rows in before._buckets.items():
            left = other._buckets.get(bucket, 0.0) - rows
            if left > 1e-9 * rows:
                other._buckets[bucket] = left
            else:
                other._buckets.pop(bucket, None)
        return other.known()

    def known(self) -> Latencies:
        """What was recorded so far."""
        mean = self._total / self._rows if self._rows else math.nan
        p50, p95, p99 = map(self._percentile, (0.5, 0.95, 0.99))
        return Latencies(self._rows, mean, p50, p95, p99, self._largest, self._without)

    def _percentile(self, fraction: float) -> float:
        wanted = fraction * sum(self._buckets.values())
        for bucket, rows in sorted(self._buckets.items()):
            wanted -= rows
            if wanted <= 1e-9 * rows:
                middle: float = 2 ** ((bucket + 0.5) / BUCKETS_PER_DOUBLING)
                return min(middle, self._largest)
        return math.nan


def together(records: Iterable[LatencyRecord]) -> LatencyRecord:
    """The results of several queries as if they were those of one."""
    whole = LatencyRecord(0.0)
    for each in records:
        whole._rows += each._rows
        whole._without += each._without
        whole._total += each._total
        whole._largest = max(whole._largest, each._largest)
        for bucket, rows in each._buckets.items():
            whole._buckets[bucket] = whole._buckets.get(bucket, 0.0) + rows
    return whole


def in_unit(seconds: float) -> str:
    """A time as people read it.

    >>> in_unit(0.0000123), in_unit(0.00123), in_unit(12.5), in_unit(1234.5)
    ('12.3 µs', '1.23 ms', '12.5 s', '1,234 s')
    """
    if math.isnan(seconds):
        return "–"
    if seconds >= 100:
        return f"{seconds:,.0f} s"
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{1e6 * seconds:.3g} µs"
