"""What the engine was like over the last minutes, a sample a second, with marks of changes."""

import heapq
import time
from collections import deque
from typing import Any

from millpond.delivery.latency import Latencies, LatencyRecord
from millpond.delivery.results import ResultLog
from millpond.entities.control_tables import plain
from millpond.facade.engine import Engine
from millpond.storage.backlog import Backlog

SAMPLES = 1_800
"""Half an hour."""

BUSIEST = 8
"""The latencies of so many queries are remembered in each sample, those with most results."""


MOST_RECORDS = 1_000


class History:
    """A bounded series of samples."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._samples: deque[dict[str, Any]] = deque(maxlen=SAMPLES)
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
            inputs = sum(i.queue.arrivals.per_second() for i in engine.inputs.streams.values())
            known = self._latencies()
            out = sum(log.rows for log in engine.deliveries if log.slice is None)
            arrived = sum(i.arrived for i in engine.inputs.streams.values())
            sample: dict[str, Any] = {
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
        self._samples.append(sample)

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

    def since(self, moment: float) -> dict[str, Any]:
        """The samples and marks after a moment, in seconds since 1970."""
        return {
            "samples": [each for each in list(self._samples) if each["time"] > moment],
            "marks": [each for each in list(self._marks) if each["time"] > moment],
        }
