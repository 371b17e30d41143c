"""What `python -m benchmarks.overload` feeds: bursts, by a clock that stands while others work."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond import Engine
from millpond.identities import StreamId

FACTORS = (1, 2, 5, 10)
BURST_SECONDS, CALM_SECONDS = 10.0, 10.0
CALM_LOAD = 0.2
"""How much of what can be done comes between bursts."""
WINDOW_TICKS, SLIDE_TICKS = 2_000, 250
"""A tick is a millisecond."""
PAGE_SECONDS, LOOK_SECONDS = 0.05, 0.1
FIRST_SECONDS = 1e6
"""Where the clock begins: what happened before it is long ago."""
GROUPS = 4


@dataclass(frozen=True)
class Burst:
    """A burst, in seconds since the beginning, at so many times what can be done."""

    factor: float
    first: float

    @property
    def last(self) -> float:
        """When it is over."""
        return self.first + BURST_SECONDS


@dataclass(frozen=True)
class Load:
    """All tuples of a run: their times in ticks, in order, groups and values."""

    bursts: tuple[Burst, ...]
    ticks: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]

    def truth(self, group: int, tick: int) -> dict[str, float]:
        """What the query's answer of a group is at a time."""
        first = np.searchsorted(self.ticks, tick - WINDOW_TICKS)
        last = np.searchsorted(self.ticks, tick, side="right")
        here = slice(first, last)
        hits = self.values[here][(self.groups[here] == group) & (self.values[here] < 2)]
        total = float(hits.sum())
        return {"n": len(hits), "s": total, "m": total / len(hits) if len(hits) else np.nan}


def load_of(bursts: int, rows_per_second: float, seed: int = 0) -> Load:
    """Tuples at even times, of lognormal values, more in bursts."""
    random, times, found, now = np.random.default_rng(seed), [], [], CALM_SECONDS
    spans = [(0.0, CALM_SECONDS, CALM_LOAD)]
    for number in range(bursts):
        burst = Burst(FACTORS[number % len(FACTORS)], now)
        found.append(burst)
        spans.append((burst.first, burst.last, burst.factor))
        now = burst.last + CALM_SECONDS
        spans.append((burst.last, now, CALM_LOAD))
    for first, last, factor in spans:
        count = round((last - first) * factor * rows_per_second)
        times.append(first + (last - first) * np.arange(count) / count)
    ticks = (1000 * np.concatenate(times)).astype(np.int64)
    groups = random.integers(0, GROUPS, len(ticks)).astype(np.int32)
    return Load(tuple(found), ticks, groups, random.lognormal(0, 1, len(ticks)))


class Clock:
    """Processor seconds of this process, and seconds that it is told have passed."""

    def __init__(self) -> None:
        self._told = FIRST_SECONDS - time.process_time()

    def __call__(self) -> float:
        """The time."""
        return self._told + time.process_time()

    def pass_until(self, moment: float) -> None:
        """Has it be a time, if it is not yet."""
        self._told += max(0.0, moment - self())


class Feed:
    """Pushes tuples when the clock says that it is their time, as far as there is room for them."""

    def __init__(self, engine: Engine, load: Load, clock: Clock) -> None:
        self._engine, self.load, self._clock = engine, load, clock
        self._began, self._look_again = clock(), 0.0
        step = PAGE_SECONDS
        self._edges = np.arange(step, load.ticks[-1] / 1000 + 2 * step, step)
        self._places = [0, *np.searchsorted(load.ticks, 1000 * self._edges).tolist()]
        self._page = 0
        self.memory: list[tuple[float, int]] = []
        """What the engine accounted for, over time."""
        self.kept: list[tuple[float, float]] = []
        """How many percent of the tuples were kept."""

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._began

    @property
    def is_over(self) -> bool:
        """Whether all has been pushed."""
        return self._page >= len(self._edges)

    def push_due(self) -> None:
        """Pushes what should be there by now."""
        self._look()
        while not self.is_over and self._edges[self._page] <= self.now and self._has_room():
            here = slice(self._places[self._page], self._places[self._page + 1])
            self._page += 1
            load = self.load
            if here.stop > here.start:
                columns = {"k": load.groups[here], "x": load.values[here], "at": load.ticks[here]}
                self._engine.push("S", pa.table(columns))

    def _has_room(self) -> bool:
        """Whether a push need not wait."""
        engine = self._engine
        queues = engine.inputs.queues_of("s")
        is_first = not engine.queries.has_runtime
        return is_first or engine.ground.budget.has_room(engine.runtime.backlog, queues, False)

    def _look(self) -> None:
        """Looks at what the engine accounts for, and at how much it keeps."""
        now, engine = self.now, self._engine
        if now >= self._look_again and engine.queries.has_runtime:
            self._look_again = now + LOOK_SECONDS
            known = engine.runtime.backlog.memory_bytes + engine.runtime.state_bytes()
            self.memory.append((now, known))
            self.kept.append((now, 100 * engine.inputs.rate(StreamId("S"))))

    def passing(self, seconds: float) -> None:
        """Has time pass, while which tuples come."""
        until = self._clock() + seconds
        while self._clock() < until:
            self._clock.pass_until(min(until, self._clock() + PAGE_SECONDS))
            self.push_due()

    def work(self) -> None:
        """Has the engine work until all tuples have come and all answers have been put out."""
        while not self.is_over:
            self.push_due()
            self._engine.run_until_idle()
            if not self.is_over:
                self._clock.pass_until(self._began + float(self._edges[self._page]))
        self._engine.finish()


PRESENT: list[tuple[Feed, float]] = []
"""The feed that is under way, and how long a tuple takes. Functions are sent about as code, with
what they name: so ``slow`` looks for it by the name of this module."""


def slow(values: pa.Array) -> pa.Array:
    """Takes its time for each value, while which tuples come, and gives it back."""
    here = importlib.import_module("benchmarks.overload_feed")
    for feed, row_seconds in here.PRESENT:
        feed.passing(row_seconds * (len(values) - values.null_count))
    return values
