"""Lower bounds no schedule of one processor can beat, for queries that are operator paths.

Memory: Chain on the lower envelopes (Chain paper, Theorem 1). Latency: the mean busy time bound of
preemptive weighted scheduling with release times; for any schedule, the weighted completion times
add up to at least the mean busy times of serving outputs per second of work, plus half the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from millpond.scheduling.charts.progress_chart import Point, partition
from millpond.scheduling.snapshot import FloatArray


@dataclass
class Backlog:
    """Work of one kind: seconds left, what a second of it gains, and what work follows it."""

    gain: float
    seconds_a_tuple: float
    follower: Backlog | None = None
    seconds: float = 0.0


class Arrival(NamedTuple):
    """A tuple, and the time since the one before it."""

    query: str
    gap_seconds: float


def memory_floor(
    charts: Mapping[str, Sequence[Point]], arrivals: Mapping[str, FloatArray]
) -> float:
    """The peak that total queue memory reaches under every schedule."""
    first = {query: _segments(chart) for query, chart in charts.items()}
    order = sorted(_chained(first.values()), key=lambda backlog: -backlog.gain)
    memory = peak = 0.0
    for query, gap in in_order(arrivals):
        memory -= sum(backlog.gain * done for backlog, done in _work(order, gap))
        memory += charts[query][0][1]
        first[query].seconds += first[query].seconds_a_tuple
        peak = max(peak, memory)
    return peak


def latency_floor(
    seconds: Mapping[str, float], outputs: Mapping[str, float], arrivals: Mapping[str, FloatArray]
) -> float:
    """The mean latency, by outputs, that every schedule has at least."""
    backlogs = {each: Backlog(outputs[each] / seconds[each], seconds[each]) for each in seconds}
    order = sorted(backlogs.values(), key=lambda backlog: -backlog.gain)
    total = weighed = now = 0.0
    for query, gap in in_order(arrivals):
        weighed += _weighed_moments(order, now, gap)
        now += gap
        backlogs[query].seconds += seconds[query]
        weighed += outputs[query] * (seconds[query] / 2 - now)
        total += outputs[query]
    rest = sum(backlog.seconds for backlog in order)
    return (weighed + _weighed_moments(order, now, rest)) / total


def in_order(arrivals: Mapping[str, FloatArray]) -> Iterator[Arrival]:
    """All arrivals of all queries, in order of time."""
    now = 0.0
    merged = sorted((time, query) for query, times in arrivals.items() for time in times.tolist())
    for time, query in merged:
        yield Arrival(query, time - now)
        now = time


def _work(order: Iterable[Backlog], seconds: float) -> Iterator[tuple[Backlog, float]]:
    """Serve the backlogs in order for so long; followers come later in the order."""
    for backlog in order:
        done = min(backlog.seconds, seconds)
        if done > 0:
            backlog.seconds -= done
            seconds -= done
            if backlog.follower is not None:
                tuples = done / backlog.seconds_a_tuple
                backlog.follower.seconds += tuples * backlog.follower.seconds_a_tuple
            yield backlog, done


def _weighed_moments(order: Iterable[Backlog], now: float, seconds: float) -> float:
    total = 0.0
    for backlog, done in _work(order, seconds):
        total += backlog.gain * done * (now + done / 2)
        now += done
    return total


def _segments(chart: Sequence[Point]) -> Backlog:
    """The first segment of a chart's lower envelope, linked with those behind it."""
    *others, last = (
        Backlog(segment.slope, chart[segment.last + 1][0] - chart[segment.first][0])
        for segment in partition(chart)
    )
    for backlog in reversed(others):
        backlog.follower, last = last, backlog
    return last


def _chained(firsts: Iterable[Backlog]) -> Iterator[Backlog]:
    for first in firsts:
        backlog: Backlog | None = first
        while backlog is not None:
            yield backlog
            backlog = backlog.follower
