"""Small instances for the Path Capacity paper's theorems, and optima found by exhaustive search.

As for the Chain paper's theorems a chart's points lie at whole instants, tuples arrive at instants,
and work is done in units of time.
"""

from collections.abc import Sequence
from itertools import pairwise, product
from typing import TypeAlias

import numpy as np

from millpond.lab.chain.instances import Instance, random_instance, step_sizes
from millpond.scheduling.charts.progress_chart import Point, slope
from millpond.scheduling.snapshot import FloatArray
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, Record, SimulatedPlan, simulate

Work: TypeAlias = tuple[tuple[int, ...], ...]
"""For each query the work done on each of its unfinished tuples, in falling order."""
Counts: TypeAlias = tuple[int, ...]
"""For each query how many of its tuples were served."""


def batch(generator: np.random.Generator, queries: int, tuples: int) -> Instance:
    """A random instance whose tuples all wait at instant 0."""
    drawn = random_instance(generator, queries, operators=3, tuples=tuples, longest=2)
    return Instance(drawn.charts, tuple((0,) * len(times) for times in drawn.arrivals))


def over_time(generator: np.random.Generator, queries: int, tuples: int) -> Instance:
    """A random instance whose tuples arrive one after the other."""
    return random_instance(generator, queries, operators=3, tuples=tuples, longest=2)


def with_whole_arrivals(instance: Instance, strategy: Strategy) -> Instance | None:
    """The instance, if no tuple is partly served under the strategy when others arrive."""
    record = run_instance(instance, strategy)
    works = [int(chart[-1][0]) for chart in instance.charts]
    for now in {time for times in instance.arrivals for time in times}:
        if any(
            _part_done(instance, record, query, now) % works[query] for query in _queries(works)
        ):
            return None
    return instance


def _part_done(instance: Instance, record: Record, query: int, now: int) -> int:
    first = sum(len(chart) - 1 for chart in instance.charts[:query])
    mine = range(first, first + len(instance.charts[query]) - 1)
    steps = (each for each in record.trace if each.operator in mine)
    return round(sum(max(0.0, min(now, one.end_seconds) - one.start_seconds) for one in steps))


def _queries(works: Sequence[int]) -> range:
    return range(len(works))


def flat(instance: Instance) -> Instance:
    """The same work, but a tuple keeps its size until it leaves."""
    charts = tuple(_flat(chart) for chart in instance.charts)
    return Instance(charts, instance.arrivals)


def _flat(chart: Sequence[Point]) -> tuple[Point, ...]:
    return (*((time, 1.0) for time, _ in chart[:-1]), chart[-1])


def run_instance(
    instance: Instance,
    strategy: Strategy,
    outputs: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
) -> Record:
    """Simulate an instance; a tuple of query i yields `outputs[i]` tuples in the end."""
    plan = SimulatedPlan()
    arrivals = {}
    for number, (chart, times) in enumerate(zip(instance.charts, instance.arrivals, strict=True)):
        stream = plan.stream(f"s{number}")
        sizes = [size for _, size in chart]
        last = 1.0 if outputs is None else outputs[number] / sizes[-2]
        added = plan.chart(f"q{number}", stream, chart, last)
        if weights is not None:
            plan.queries[f"q{number}"] = (added[-1], weights[number])
        arrivals[stream] = np.array(times, dtype=np.float64)
    return simulate(plan, strategy, arrivals, Conditions(tuples="fluid", trace=True))


def sizes_at_instants(instance: Instance, record: Record) -> FloatArray:
    """Total queue size at every instant."""
    return record.memory.at(np.arange(instance.last_instant + 1.0))


def total_latency(record: Record, by_output: bool = False) -> float:
    """Latencies summed over the tuples that arrived, or over those that left."""
    weights = record.output_mass if by_output else np.ones_like(record.output_mass)
    return float((record.output_latency_seconds * weights).sum())


def least_total_latency(instance: Instance, weights: Sequence[float] | None = None) -> float:
    """The least summed latency of any schedule, which may move on any tuple at any instant."""
    works = [int(chart[-1][0]) for chart in instance.charts]
    each = [1.0] * len(works) if weights is None else list(weights)
    costs: dict[Work, float] = {((),) * len(works): 0.0}
    for now in range(instance.last_instant + 1):
        fresh = [(0,) * times.count(now) for times in instance.arrivals]
        after: dict[Work, float] = {}
        for before, spent in costs.items():
            state = tuple((*old, *new) for old, new in zip(before, fresh, strict=True))
            cost = spent + sum(len(one) * weight for one, weight in zip(state, each, strict=True))
            for moved in _moves(state, works):
                after[moved] = min(cost, after.get(moved, cost))
        costs = after
    return min(costs.values())


def _moves(state: Work, works: Sequence[int]) -> list[Work]:
    found = []
    for query, done in enumerate(state):
        for place, work in enumerate(done):
            left = () if work + 1 == works[query] else (work + 1,)
            moved = tuple(sorted((*done[:place], *left, *done[place + 1 :]), reverse=True))
            found.append((*state[:query], moved, *state[query + 1 :]))
    return found or [state]


def least_path_based_sizes(instance: Instance, tuple_sizes: Sequence[float] = ()) -> FloatArray:
    """The smallest total size at each instant of any schedule that never leaves a tuple half-way.

    It may idle, and it may know the future.
    """
    scale = list(tuple_sizes) or [1.0] * len(instance.charts)
    shapes = [
        [size * factor for size in step_sizes(chart)]
        for chart, factor in zip(instance.charts, scale, strict=True)
    ]
    arrived = _arrived_sizes(instance, scale)
    least = arrived.copy()
    todo: list[set[Counts]] = [set() for _ in range(len(arrived) + 1)]
    todo[0].add((0,) * len(shapes))
    for now, states in enumerate(todo[:-1]):
        for served in states:
            gone = sum(count * factor for count, factor in zip(served, scale, strict=True))
            least[now] = min(least[now], arrived[now] - gone)
            todo[now + 1].add(served)
            for query, shape in enumerate(shapes):
                if served[query] < sum(time <= now for time in instance.arrivals[query]):
                    end = _serve(shape, now, gone, arrived, least)
                    after = (*served[:query], served[query] + 1, *served[query + 1 :])
                    todo[min(end, len(arrived))].add(after)
    return least


def _arrived_sizes(instance: Instance, scale: Sequence[float]) -> FloatArray:
    total: FloatArray = np.zeros(instance.last_instant + 1)
    for times, factor in zip(instance.arrivals, scale, strict=True):
        for time in times:
            total[time:] += factor
    return total


def _serve(
    shape: Sequence[float], now: int, gone: float, arrived: FloatArray, least: FloatArray
) -> int:
    for done in range(1, min(len(shape), len(least) - now)):
        size = arrived[now + done] - gone - shape[0] + shape[done]
        least[now + done] = min(least[now + done], size)
    return now + len(shape) - 1


def segments_are_chains(chart: Sequence[Point]) -> bool:
    """Whether the mean slopes of Segment's runs fall, so that they are the envelope's segments."""
    slopes = [slope(point, later) for point, later in pairwise(chart)]
    starts = [0, *(n for n in range(1, len(slopes)) if slopes[n] < slopes[n - 1])]
    ends = [*starts[1:], len(slopes)]
    means = [slope(chart[first], chart[end]) for first, end in zip(starts, ends, strict=True)]
    return all(later < mean for mean, later in pairwise(means))


def same_random(seeds: Sequence[int], count: int, offset: int) -> list[np.random.Generator]:
    """A generator for each of `count` instances a seed."""
    return [
        np.random.default_rng((offset, seed, number))
        for seed, number in product(seeds, range(count))
    ]
