"""Random instances for the Chain paper's theorems, and the optimum found by exhaustive search.

A chart's points lie at whole instants. At each instant tuples arrive, then one tuple is moved on by
one unit of time: the paper's discrete model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from millpond.scheduling.charts.progress_chart import Point, partition
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, SimulatedPlan, simulate

Sizes: TypeAlias = tuple[float, ...]
"""The size of a tuple after 0, 1, 2, ... units of work."""


@dataclass(frozen=True)
class Instance:
    """One chart and the arrival instants for each query."""

    charts: tuple[tuple[Point, ...], ...]
    arrivals: tuple[tuple[int, ...], ...]

    @property
    def last_instant(self) -> int:
        """An instant by which everything is done."""
        works = zip(self.charts, self.arrivals, strict=True)
        total = sum(int(chart[-1][0]) * len(times) for chart, times in works)
        return total + max((time for times in self.arrivals for time in times), default=0)


def random_instance(
    generator: np.random.Generator, queries: int, operators: int, tuples: int, longest: int = 3
) -> Instance:
    """Up to so many operators a query and exactly so many tuples, selectivities at most one."""
    charts = tuple(_random_chart(generator, operators, longest) for _ in range(queries))
    arrivals: list[list[int]] = [[] for _ in range(queries)]
    now = 0
    for _ in range(tuples):
        now += int(generator.choice([0, 0, 1, 2, 6]))
        arrivals[int(generator.integers(queries))].append(now)
    return Instance(charts, tuple(tuple(times) for times in arrivals))


def _random_chart(
    generator: np.random.Generator, operators: int, longest: int
) -> tuple[Point, ...]:
    count = int(generator.integers(1, operators + 1))
    times = np.cumsum(generator.integers(1, longest + 1, size=count))
    sizes = np.sort(generator.integers(1, 64, size=count - 1))[::-1] / 64
    return ((0.0, 1.0), *zip(times.tolist(), [*sizes.tolist(), 0.0], strict=True))


def step_sizes(chart: Sequence[Point]) -> Sizes:
    """Sizes on the chart itself: a tuple keeps its size until an operator is through with it."""
    sizes = [chart[0][1]]
    for (before, size), (after, smaller) in pairwise(chart):
        sizes += [size] * (int(after - before) - 1) + [smaller]
    return tuple(sizes)


def envelope_sizes(chart: Sequence[Point]) -> Sizes:
    """Sizes on the lower envelope, along which a tuple shrinks evenly."""
    corners = [chart[0], *(chart[segment.last + 1] for segment in partition(chart))]
    times = np.arange(int(chart[-1][0]) + 1)
    at = np.interp(times, [time for time, _ in corners], [size for _, size in corners])
    return tuple(at.tolist())


def envelope(chart: Sequence[Point]) -> tuple[Point, ...]:
    """The lower envelope simulation: the envelope's size at every instant as a chart of its own."""
    return tuple((float(time), size) for time, size in enumerate(envelope_sizes(chart)))


def queue_sizes(instance: Instance, strategy: str, on_envelope: bool = False) -> FloatArray:
    """Total queue size at every instant under a strategy that is asked once a unit of time."""
    plan = SimulatedPlan()
    arrivals = {}
    for number, (chart, times) in enumerate(zip(instance.charts, instance.arrivals, strict=True)):
        stream = plan.stream(f"s{number}")
        plan.chart(f"q{number}", stream, envelope(chart) if on_envelope else chart)
        arrivals[stream] = np.array(times, dtype=np.float64)
    scheduled = make(strategy, slice_seconds=1.0)
    record = simulate(plan, scheduled, arrivals, Conditions(tuples="fluid"))
    return record.memory.at(np.arange(instance.last_instant + 1.0))


def least_sizes(instance: Instance, on_envelope: bool = False) -> FloatArray:
    """The smallest total queue size any schedule can have, at each instant by itself."""
    shape = envelope_sizes if on_envelope else step_sizes
    sizes = [shape(chart) for chart in instance.charts]
    reachable: set[State] = {((),) * len(sizes)}
    least = []
    for now in range(instance.last_instant + 1):
        fresh = [times.count(now) for times in instance.arrivals]
        reachable = {_arrive(state, fresh) for state in reachable}
        least.append(min(_total(state, sizes) for state in reachable))
        reachable = {after for state in reachable for after in _moves(state, sizes)}
    return np.array(least)


State: TypeAlias = tuple[tuple[int, ...], ...]
"""For each query the work done on its tuples, in order."""


def _arrive(state: State, fresh: Sequence[int]) -> State:
    return tuple((*done, *(0,) * count) for done, count in zip(state, fresh, strict=True))


def _total(state: State, sizes: Sequence[Sizes]) -> float:
    pairs = zip(state, sizes, strict=True)
    return sum(mine[work] for done, mine in pairs for work in done)


def _moves(state: State, sizes: Sequence[Sizes]) -> list[State]:
    """Every state one unit of work leads to; finished tuples are dropped, the others sorted."""
    found = []
    for query, done in enumerate(state):
        for place, work in enumerate(done):
            if place and done[place - 1] == work:
                continue
            left = () if work + 2 == len(sizes[query]) else (work + 1,)
            moved = tuple(sorted((*done[:place], *left, *done[place + 1 :]), reverse=True))
            found.append((*state[:query], moved, *state[query + 1 :]))
    return found or [state]
