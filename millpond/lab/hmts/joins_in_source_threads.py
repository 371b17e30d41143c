"""A window join that runs in the threads of its two sources, or behind queues.

Two sources of 180,000 elements at 1,000 a second each, a join over one-minute windows. Without a
queue a source cannot emit before the join is done with its last element; with one it can, and the
backlog grows instead. Nested loops cost for each element of the other window, a hash join for each
partner that it finds there: elements of the sources are uniform in 100,000 and in 10,000 values.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from millpond.scheduling.snapshot import FloatArray
from millpond.scheduling.strategies.gts import Gts
from millpond.simulator import Conditions, Record, SimulatedPlan, Window, simulate

ELEMENTS = 180_000
ELEMENTS_PER_SECOND = 1000.0
WINDOW_SECONDS = 60.0
VALUES = (100_000, 10_000)
MATCH_PROBABILITY = 1 / max(VALUES)
TOGETHER = 10
"""So many elements of a source are handed over at once."""
HASH, LOOPS = "hash join", "nested loops join"
SLOWS_AFTER_SECONDS: Mapping[str, float] = {HASH: 58.0, LOOPS: 17.0}
"""When each join's input begins to fall in the paper; the cost of a partner is fitted to it."""
SMOOTHED, FALLEN = 5, 0.97
"""Where chance is at work: a rate has fallen when it is 3 % below for five seconds."""


def partner_seconds(join: str, factor: float = 1.0) -> float:
    """With 2,000 elements a second time is up just then.

    Each meets all of the other window by nested loops, and finds a share of it by hashing.
    """
    partners = ELEMENTS_PER_SECOND * SLOWS_AFTER_SECONDS[join]
    found = MATCH_PROBABILITY if join == HASH else 1.0
    return factor / (2 * ELEMENTS_PER_SECOND * partners * found)


def busy_seconds(join: str) -> float:
    """The cost of a partner at which the join is just busy when its windows are full."""
    return partner_seconds(join) * SLOWS_AFTER_SECONDS[join] / WINDOW_SECONDS


def falls_after(rates: FloatArray, seconds: FloatArray) -> float:
    """The first second in which sources emit less than they should."""
    below = np.flatnonzero(rates < 0.99 * 2 * ELEMENTS_PER_SECOND)
    return float(seconds[below[0]]) if len(below) else float("inf")


def falls_for_long_after(rates: FloatArray, seconds: FloatArray) -> float:
    """The middle of the first seconds in which sources emit clearly less than they should."""
    smoothed = np.convolve(rates, np.ones(SMOOTHED) / SMOOTHED, mode="valid")
    below = np.flatnonzero(smoothed < FALLEN * 2 * ELEMENTS_PER_SECOND)
    return float(seconds[below[0] + SMOOTHED // 2]) if len(below) else float("inf")


class Windows(ABC):
    """The elements in both windows, in the blocks in which they came."""

    def __init__(self) -> None:
        self._emitted: tuple[list[float], list[float]] = ([], [])
        self._gone = [0, 0]

    def partners(self, side: int, now_seconds: float) -> int:
        """How many partners the next block of a side has to be charged for, then keep it."""
        other = 1 - side
        times, gone = self._emitted[other], self._gone[other]
        while gone < len(times) and times[gone] < now_seconds - WINDOW_SECONDS:
            self._forget(other, gone)
            gone += 1
        self._gone[other] = gone
        self._emitted[side].append(now_seconds)
        return self._met(side, len(times) - gone)

    @abstractmethod
    def _met(self, side: int, blocks: int) -> int:
        """What the block that a side has just emitted meets in so many of the other's."""

    @abstractmethod
    def _forget(self, side: int, block: int) -> None:
        """A block leaves the window of its side."""


class LoopedWindows(Windows):
    """Each element meets all of the other window."""

    def _met(self, side: int, blocks: int) -> int:
        return TOGETHER * TOGETHER * blocks

    def _forget(self, side: int, block: int) -> None:
        pass


class HashedWindows(Windows):
    """Each element meets those of its value."""

    def __init__(self, elements: int, seed: int) -> None:
        super().__init__()
        generator = np.random.default_rng((63, seed))
        self._values: list[list[int]] = [
            generator.integers(0, values, elements).tolist() for values in VALUES
        ]
        self._counts = [[0] * max(VALUES) for _ in VALUES]

    def _met(self, side: int, blocks: int) -> int:
        values, mine, other = self._block(side, -1), self._counts[side], self._counts[1 - side]
        for value in values:
            mine[value] += 1
        return sum(other[value] for value in values)

    def _forget(self, side: int, block: int) -> None:
        counts = self._counts[side]
        for value in self._block(side, block):
            counts[value] -= 1

    def _block(self, side: int, number: int) -> list[int]:
        """The values of a block; the last one emitted is number -1."""
        place = len(self._emitted[side]) - 1 if number < 0 else number
        return self._values[side][place * TOGETHER : (place + 1) * TOGETHER]


def coupled(
    join: str,
    elements: int,
    factor: float = 1.0,
    generator: np.random.Generator | None = None,
    seed: int = 0,
) -> FloatArray:
    """When elements are emitted by two sources whose threads run the join, one at a time.

    They are due evenly, or with gaps that the generator draws; values are drawn by the seed.
    """
    windows = HashedWindows(elements, seed) if join == HASH else LoopedWindows()
    emitted: tuple[list[float], list[float]] = ([], [])
    schedule = [_schedule(elements, generator) for _ in emitted]
    due, free_seconds, cost = [0.0, 0.0], 0.0, partner_seconds(join, factor)
    for _ in range(2 * elements // TOGETHER):
        side = 0 if due[0] <= due[1] else 1
        start = max(due[side], free_seconds)
        free_seconds = start + windows.partners(side, start) * cost
        emitted[side].append(start)
        due[side] = max(free_seconds, schedule[side][len(emitted[side])])
        if len(emitted[side]) * TOGETHER >= elements:
            due[side] = float("inf")
    return np.sort(np.concatenate(emitted))


def _schedule(elements: int, generator: np.random.Generator | None) -> list[float]:
    """When a source would emit its blocks, and one more, if it had not to wait."""
    count = elements // TOGETHER + 1
    if generator is None:
        return [place * TOGETHER / ELEMENTS_PER_SECOND for place in range(count)]
    gaps = generator.exponential(1 / ELEMENTS_PER_SECOND, (count, TOGETHER)).sum(axis=1)
    return [float(each) for each in np.cumsum(gaps) - gaps[0]]


def decoupled(join: str, elements: int) -> Record:
    """The same join behind queues."""
    plan = SimulatedPlan()
    left, right = plan.stream("left"), plan.stream("right")
    cost = partner_seconds(join)
    window = Window(
        seconds=WINDOW_SECONDS,
        match_probability=MATCH_PROBABILITY,
        probe_seconds=0.0 if join == HASH else cost,
        match_seconds=cost if join == HASH else 0.0,
    )
    plan.query("q", plan.join(join, left, right, cost_seconds=0.0, window=window))
    times = np.arange(elements) // TOGETHER * TOGETHER / ELEMENTS_PER_SECOND
    strategy = Gts("fifo", max_tuples=20 * TOGETHER)
    return simulate(plan, strategy, {"left": times, "right": times}, Conditions())


def per_second(emitted: FloatArray, seconds: FloatArray) -> FloatArray:
    """Elements of both sources emitted within the second before each of these."""
    order = np.sort(emitted)
    counts = np.diff(np.searchsorted(order, np.append(0.0, seconds)))
    rates: FloatArray = counts.astype(np.float64) * TOGETHER
    return rates
