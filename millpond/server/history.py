"""What the engine was like since it was started, with marks of changes.

A sample a second over the last half hour; before, ten samples are one, and further back a hundred:
what is kept is bounded, and reaches back to the start for years.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from millpond.delivery.latency import Latencies, LatencyRecord
from millpond.delivery.results import ResultLog
from millpond.entities.control_tables import plain
from millpond.facade.engine import Engine
from millpond.storage.backlog import Backlog

Sample: TypeAlias = "dict[str, Any]"

SAMPLES = 1_800
"""So many samples of each coarseness are kept: half an hour of those a second."""

LEVELS, MERGED = 7, 10
"""So many series are kept, in each of which so many samples of the one before are one."""

PEAKS = (
    "backlog_bytes",
    "memory_bytes",
    "budget_bytes",
    "latency_p95_seconds",
    "latency_p99_seconds",
)
"""Of what samples have in common the largest counts; of other measures it is the mean."""

BUSIEST = 8
"""The latencies of so many queries are remembered in each sample, those with most results."""


MOST_RECORDS = 1_000


class History:
    """A bounded series of samples."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._started = time.time()
        self._levels = [Level() for _ in range(LEVELS)]
        self._marks: deque[dict[str, Any]] = deque(maxlen=200)
        self._before: tuple[float, int, int] | None = None
        self._waited: tuple[float, float] | None = None
        self._records: dict[str, tuple[ResultLog, LatencyRecord]] = {}

    def mark(self, what: str) -> None:
        """Something was changed that charts should show."""
        self._marks.append({"time": time.time(), "what": what})

    def take(self) -> None:
        """Takes a sample."""
        engine = self._engine
        with engine.held():
            streams = [each for each in engine.inputs.streams.values() if not each.is_kept]
            inputs = sum(each.queue.arrivals.per_second() for each in streams)
            known = self._latencies()
            out = sum(log.rows for log in engine.deliveries if log.slice is None)
            arrived = sum(each.arrived for each in streams)
            sample: Sample = {
                "time": time.time(),
                "budget_bytes": engine.ground.budget.limit_bytes,
                "strategy": engine.settings.strategy,
                "mode": engine.settings.mode,
                "rows_in_per_second": inputs,
                "backlog_bytes": 0,
                "mean_backlog_bytes": 0.0,
                "memory_bytes": 0,
                "load": 0.0,
                "driver_steps": 0,
                "executor_steps": 0,
            }
            if engine.has_runtime:
                runtime = engine.runtime
                sample |= {
                    "backlog_bytes": runtime.backlog.bytes,
                    "mean_backlog_bytes": self._mean_backlog(runtime.backlog),
                    "memory_bytes": runtime.backlog.memory_bytes,
                    "load": sum(s.busy.per_second() for s in runtime.statistics.values()),
                    "driver_steps": runtime.tally.driver_steps,
                    "executor_steps": runtime.tally.executor_steps,
                }
        weight = sum(each.results for each in known)
        for part in ("mean", "p50", "p95", "p99"):
            total = sum(getattr(e, f"{part}_seconds") * e.results for e in known)
            sample[f"latency_{part}_seconds"] = plain(total / weight) if weight else None
        sample |= self._rates(sample["time"], arrived, out)
        self._keep(sample)

    def _keep(self, sample: Sample) -> None:
        for level in self._levels:
            merged = level.add(sample)
            if merged is None:
                return
            sample = merged

    def _mean_backlog(self, backlog: Backlog) -> float:
        """How much has waited since the last sample, on the average."""
        before, now = self._waited, (time.monotonic(), backlog.byte_seconds())
        self._waited = now
        if before is None or now[0] <= before[0]:
            return float(backlog.bytes)
        return (now[1] - before[1]) / (now[0] - before[0])

    def _latencies(self) -> list[Latencies]:
        """The latencies of what was put out since the last time."""
        logs = [log for log in self._engine.deliveries if log.slice is None]  # or of a group
        busiest = heapq.nlargest(BUSIEST, logs, key=lambda log: log.rows)
        if len(self._records) > MOST_RECORDS:
            self._records.clear()
        found = []
        for log in busiest:
            key, now = log.entry.identity, log.latency.copy()
            of, before = self._records.get(key, (None, now))
            self._records[key] = log, now
            since = now.since(before) if of is log else now.known()
            if since.results:
                found.append(since)
        return found

    def _rates(self, now: float, arrived: int, out: int) -> dict[str, float]:
        before, self._before = self._before, (now, arrived, out)
        if before is None or now <= before[0]:
            return {"arrived_per_second": 0.0, "rows_out_per_second": 0.0}
        seconds = now - before[0]
        return {
            "arrived_per_second": max(0, arrived - before[1]) / seconds,
            "rows_out_per_second": max(0, out - before[2]) / seconds,
        }

    def since(self, moment: float, most: int | None = None) -> dict[str, Any]:
        """The samples and marks after a moment, in seconds since 1970.

        ``most``: so many samples, about, which reach back to that moment or to the start.
        """
        if most is None:
            samples = [each for each in self._levels[0].all() if each["time"] > moment]
        else:
            samples = thinned(list(self._reaching_back(moment)), most)
        marks = [each for each in list(self._marks) if each["time"] > moment]
        return {"samples": samples, "marks": marks, "started": self._started}

    def _reaching_back(self, moment: float) -> Iterator[Sample]:
        """Samples back to a moment, or to the start: of the finest series that has all of them, and
        where that ends, of the finer ones; what is not yet one sample there are several here."""
        found = (at for at, level in enumerate(self._levels) if level.reaches(moment))
        for level in reversed(self._levels[: next(found, LEVELS - 1) + 1]):
            for sample in level.all():
                if sample["time"] > moment:
                    moment = sample["time"]
                    yield sample


class Level:
    """The last samples of some coarseness."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._open: list[Sample] = []
        self._lost = -math.inf
        """The time of the last sample that was let go."""

    def add(self, sample: Sample) -> Sample | None:
        """Takes a sample; what the last of them come to, once they are enough to be one."""
        if len(self._samples) == SAMPLES:
            self._lost = self._samples[0]["time"]
        self._samples.append(sample)
        self._open.append(sample)
        if len(self._open) < MERGED:
            return None
        whole, self._open = merged(self._open), []
        return whole

    def reaches(self, moment: float) -> bool:
        """Whether all is there that came after a moment."""
        return self._lost <= moment

    def all(self) -> list[Sample]:
        """The samples, the oldest first."""
        return list(self._samples)


def merged(samples: Sequence[Sample]) -> Sample:
    """What samples come to: the last time and counts, the largest peaks, means of the rest.

    >>> merged([{"time": 1, "load": 1.0, "backlog_bytes": 9}, {"time": 2, "load": 2.0,
    ...                                                        "backlog_bytes": 3}])
    {'time': 2, 'load': 1.5, 'backlog_bytes': 9}
    """
    whole = dict(samples[-1])
    for key, last in samples[-1].items():
        known = [each[key] for each in samples if isinstance(each.get(key), int | float)]
        if known and key in PEAKS:
            whole[key] = max(known)
        elif known and (isinstance(last, float) or last is None) and key != "time":
            whole[key] = sum(known) / len(known)
    return whole


def thinned(samples: list[Sample], most: int) -> list[Sample]:
    """At most so many samples that stand for all, each for as many as the others."""
    together = -(-len(samples) // most)
    if together <= 1:
        return samples
    starts = range(0, len(samples), together)
    return [merged(samples[first : first + together]) for first in starts]
