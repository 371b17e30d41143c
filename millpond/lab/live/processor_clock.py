"""A clock that a busy machine does not disturb: the processor's, which stands still while others
run.

An engine is driven in one thread. Tuples come when the clock has reached their time, and while the
engine has nothing to do it jumps to the next that come. So backlog and latency are those of a
machine of this one's speed with nothing else to do and one processor, whatever else runs here. What
it cannot show is what several processors are for.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from millpond.facade.engine import Engine
from millpond.scheduling.runtime import SchedulingLoop
from millpond.scheduling.strategy import Strategy

TICKS_A_SECOND = 1_000_000


class ProcessorClock:
    """Seconds of this process on a processor, and those that were skipped."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._began, self._skipped = time.process_time(), seconds

    @property
    def now(self) -> float:
        """The time."""
        return time.process_time() - self._began + self._skipped

    def skip_to(self, seconds: float) -> None:
        """Nothing happens before then."""
        self._skipped += max(0.0, seconds - self.now)


@dataclass(frozen=True)
class Arrival:
    """Rows that come to a stream, all at one time."""

    seconds: float
    stream: str
    rows: pa.Table


@dataclass
class Course:
    """What waited when, how late results were, and how long it all took."""

    seconds: list[float] = field(default_factory=list)
    backlog_bytes: list[int] = field(default_factory=list)
    late_seconds: float = 0.0
    """The latencies of all results, summed."""
    results: int = 0
    busy_seconds: float = 0.0
    steps: int = 0

    @property
    def peak_bytes(self) -> int:
        """The most that waited."""
        return max(self.backlog_bytes, default=0)

    @property
    def mean_bytes(self) -> float:
        """What waited on average over time."""
        spans = np.diff(self.seconds)
        whole = float(spans.sum())
        return float((spans * self.backlog_bytes[:-1]).sum()) / whole if whole else 0.0

    @property
    def mean_late_seconds(self) -> float:
        """The mean latency of results, from the time at which their tuples came."""
        return self.late_seconds / self.results if self.results else 0.0


def driven(engine: Engine, strategy: Strategy, arrivals: Sequence[Arrival]) -> Course:
    """Drives an engine through arrivals, in order of their time, to the end of what they mean."""
    clock, course = ProcessorClock(arrivals[0].seconds if arrivals else 0.0), Course()
    loop, steps = SchedulingLoop(engine.runtime, strategy), _steps(engine)

    def note() -> None:
        course.seconds.append(clock.now)
        course.backlog_bytes.append(engine.runtime.backlog.bytes)

    def receive(table: pa.Table) -> None:
        stamped = np.asarray(table["ts"]).astype(np.int64) / TICKS_A_SECOND
        course.late_seconds += float((clock.now - stamped).sum())
        course.results += table.num_rows

    for name in engine.queries.outputs:
        engine.subscribe(name, receive)
    began = time.process_time()
    for each in arrivals:
        while clock.now < each.seconds:
            if not loop.turn():
                clock.skip_to(each.seconds)
            note()
        engine.push(each.stream, each.rows)
        note()
    while loop.turn():
        note()
    note()
    course.busy_seconds, course.steps = time.process_time() - began, _steps(engine) - steps
    for name in engine.queries.outputs:
        engine.unsubscribe(name, receive)
    return course


def _steps(engine: Engine) -> int:
    return sum(each.tally.steps for each in engine.runtime.statistics.values())
