"""A window join that runs in the threads of its two sources, or behind queues.

Two sources of 180,000 elements at 1,000 a second each, a join over one-minute windows. Without a
queue a source cannot emit before the join is done with its last element; with one it can, and the
backlog grows instead.
"""

from bisect import bisect_left
from collections.abc import Mapping

import numpy as np

from millpond.scheduling.snapshot import FloatArray
from millpond.scheduling.strategies.gts import Gts
from millpond.simulator import Conditions, Record, SimulatedPlan, Window, simulate

ELEMENTS = 180_000
ELEMENTS_PER_SECOND = 1000.0
WINDOW_SECONDS = 60.0
MATCH_PROBABILITY = 1e-5
TOGETHER = 10
"""So many elements of a source are handed over at once."""
SLOWS_AFTER_SECONDS: Mapping[str, float] = {"hash join": 58.0, "nested loops join": 17.0}
"""When each join's input begins to fall in the paper; the cost of a probe is fitted to it."""


def probe_seconds(join: str, factor: float = 1.0) -> float:
    """With 2,000 elements a second, each meeting all of the other window, time is up just then."""
    partners = ELEMENTS_PER_SECOND * SLOWS_AFTER_SECONDS[join]
    return factor / (2 * ELEMENTS_PER_SECOND * partners)


def falls_after(rates: FloatArray, seconds: FloatArray) -> float:
    """The first second in which sources emit less than they should."""
    below = np.flatnonzero(rates < 0.99 * 2 * ELEMENTS_PER_SECOND)
    return float(seconds[below[0]]) if len(below) else float("inf")


def coupled(
    join: str, elements: int, factor: float = 1.0, generator: np.random.Generator | None = None
) -> FloatArray:
    """When elements are emitted by two sources whose threads run the join, one at a time.

    They are due evenly, or with gaps that the generator draws.
    """
    emitted: tuple[list[float], list[float]] = ([], [])
    schedule = [_schedule(elements, generator) for _ in emitted]
    due, free_seconds = [0.0, 0.0], 0.0
    for _ in range(2 * elements // TOGETHER):
        side = 0 if due[0] <= due[1] else 1
        mine, other = emitted[side], emitted[1 - side]
        start = max(due[side], free_seconds)
        partners = TOGETHER * (len(other) - bisect_left(other, start - WINDOW_SECONDS))
        free_seconds = start + TOGETHER * partners * probe_seconds(join, factor)
        mine.append(start)
        due[side] = max(free_seconds, schedule[side][len(mine)])
        if len(mine) * TOGETHER >= elements:
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
    window = Window(
        seconds=WINDOW_SECONDS,
        match_probability=MATCH_PROBABILITY,
        probe_seconds=probe_seconds(join),
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
