"""What strategies are told of all paths from a plan's edges is what every path by itself says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.scheduling.by_run import ByRun, RankedRun, _best_stops
from millpond.scheduling.charts import segment_runs
from millpond.scheduling.charts.capacity import released_per_second, rounded
from millpond.scheduling.charts.chain_borders import chain_borders, path_borders
from millpond.scheduling.charts.progress_chart import path_chart, steepest_descents
from millpond.scheduling.charts.segment_list import SegmentList
from millpond.scheduling.charts.steepest_paths import ChainSlopes, chain_slopes
from millpond.scheduling.charts.swiftest_paths import SwiftestPaths, priority_of
from millpond.scheduling.charts.ways import Ways
from millpond.scheduling.ladder import WeighedDescents, _weighed, outputs_owed, weighed_priorities
from millpond.scheduling.registry import make, names
from millpond.scheduling.snapshot import (
    InputSnapshot,
    Observation,
    OperatorPath,
    OperatorSnapshot,
    OperatorState,
    PlanSnapshot,
    WeightedQuery,
)
from millpond.scheduling.strategies.path_capacity import PathCapacity, path_run
from millpond.scheduling.strategies.periodically_oldest import OldestPath
from millpond.scheduling.strategies.segment import Segment
from millpond.scheduling.strategies.simplified_segment import SimplifiedSegment
from millpond.scheduling.strategy_text import parse_strategy
from millpond.scheduling.threads.rival_placements import place_queues_by_segments
from tests.drawn_examples import examples
from tests.scheduling.every_path import every_path

COSTS, SELECTIVITIES = (0.0, 0.1, 1.0, 1.0, 3.0, 10.0), (0.0, 0.1, 0.5, 1.0, 1.0, 1.7)
SIZES, RATES, WEIGHTS = (0.0, 1.0, 1.0, 4.0), (0.5, 2.0), (1.0, 1.0, 2.0, 5.0)


def random_plan(seed: int) -> PlanSnapshot:
    """A plan of any shape: forks, joins, edges past operators, results that others read."""
    random = Random(seed)
    count = random.randint(1, 9)
    sources = [_sources(random, identity) for identity in range(count)]
    readers = {
        identity: [reader for reader in range(count) if identity in sources[reader]]
        for identity in range(count)
    }
    order = random.sample(range(count), count)
    return PlanSnapshot(
        tuple(_operator(random, each, sources[each], readers[each]) for each in order)
    )


PLANS = st.integers(0, 2**32).map(random_plan)


def _sources(random: Random, identity: int) -> list[int | str]:
    choices: list[int | str] = [*range(max(0, identity - 4), identity), "r", "s"]
    return random.sample(choices, random.randint(1, min(3, len(choices))))


def _one_of(random: Random, values: Sequence[float]) -> float:
    """One of the values, so that there are ties, or one between them."""
    return random.choice([*values, random.uniform(0.01, max(values))])


def _operator(
    random: Random, identity: int, sources: Sequence[int | str], readers: list[int]
) -> OperatorSnapshot:
    inputs = tuple(
        InputSnapshot(source, *(_one_of(random, each) for each in (COSTS, SELECTIVITIES, SIZES)))
        for source in sources
    )
    share = WeightedQuery(f"q{random.randint(0, 2)}", random.choice(WEIGHTS))
    return OperatorSnapshot(
        identity,
        f"o{identity}",
        tuple(replace(each, tuples_per_second=random.choice(RATES)) for each in inputs),
        tuple(random.sample(readers, len(readers))),
        (share,),
        _one_of(random, SIZES),
        random.choice((0.0, 2.0)),
        delivers=not readers or random.random() < 0.4,
    )


def _largest(
    plan: PlanSnapshot, values: Callable[[OperatorPath], Sequence[float]]
) -> dict[int, float]:
    found = dict.fromkeys(plan.by_id, 0.0)
    for path in every_path(plan):
        for operator, value in zip(path.operators, values(path), strict=True):
            found[operator] = max(found[operator], value)
    return found


def _same(found: Mapping[int, float], wanted: Mapping[int, float]) -> bool:
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    return True


@examples(120)
@given(PLANS)
def test_the_number_of_paths_and_the_first_ones_are_those_of_the_list(plan: PlanSnapshot) -> None:
    ways, paths = Ways(plan), every_path(plan)
    for operator in plan.by_id:
        through = [path for path in paths if operator in path.operators]
        assert ways.paths_to[operator] * ways.paths_from[operator] == len(through)
        assert ways.first_path(operator) == through[0]
    assert [ways.order_of(path) for path in paths] == sorted(map(ways.order_of, paths))
    assert set(ways.first_paths()) == {ways.first_path(each) for each in plan.by_id}


@examples(150)
@given(PLANS)
def test_the_slope_of_a_chain_is_the_steepest_of_all_paths(plan: PlanSnapshot) -> None:
    wanted = _largest(plan, lambda path: chain_slopes(plan, path))
    assert _same(ChainSlopes(Ways(plan)).found(), wanted)


@examples(120)
@given(PLANS, st.sampled_from([0.0, 0.4, 0.8, 1.0]))
def test_the_descents_of_auto_are_the_steepest_of_all_paths(
    plan: PlanSnapshot, share: float
) -> None:
    paths = every_path(plan)
    mean_bytes = sum(path_chart(plan, path)[0][1] for path in paths) / len(paths) or 1.0
    mean_outputs = sum(outputs_owed(plan, path) for path in paths) / len(paths) or 1.0

    def descents(path: OperatorPath) -> list[float]:
        delay = (1 - share) * outputs_owed(plan, path) / mean_outputs
        return steepest_descents(_weighed(path_chart(plan, path), share / mean_bytes, delay))

    assert _same(weighed_priorities(plan, share), _largest(plan, descents))


@examples(150)
@given(PLANS)
def test_borders_between_chains_are_those_of_any_path(plan: PlanSnapshot) -> None:
    wanted = set().union(*(path_borders(plan, path) for path in every_path(plan)))
    assert chain_borders(plan) == wanted


def _same_stops(strategy: ByRun, plan: PlanSnapshot, runs: Sequence[RankedRun]) -> bool:
    """Whether every round of a strategy is that of the runs that are listed."""
    wanted = _best_stops(runs)
    strategy.plan_changed(plan)
    assert strategy._best.keys() == wanted.keys()
    for operator, stop in strategy._best.items():
        assert stop.number == wanted[operator].number
        assert stop.run == wanted[operator].run
    return True


@examples(150)
@given(PLANS)
def test_the_best_path_through_an_operator_is_the_first_of_the_list(plan: PlanSnapshot) -> None:
    runs = [path_run(plan, path, priority_of(plan, path)) for path in every_path(plan)]
    assert _same_stops(PathCapacity(), plan, runs)


@examples(100)
@given(PLANS)
def test_the_oldest_is_carried_on_along_the_first_path_of_the_list(plan: PlanSnapshot) -> None:
    runs = [path_run(plan, path, 0.0) for path in every_path(plan)]
    assert _same_stops(OldestPath(), plan, runs)


def _cut(strategy: Segment, plan: PlanSnapshot, path: OperatorPath) -> list[tuple[int, ...]]:
    """The segments of one path, by the paper's words."""
    released = [rounded(released_per_second(plan.by_id[each])) for each in path.operators]
    places = range(1, len(released))
    falls = [place for place in places if strategy.falls(released[place - 1], released[place])]
    if isinstance(strategy, SimplifiedSegment):
        falls = falls[:1]
    starts, ends = [0, *falls], [*falls, len(path.operators)]
    return [path.operators[a:b] for a, b in zip(starts, ends, strict=True)]


@examples(120)
@given(PLANS, st.sampled_from(["segment", "simplified-segment"]))
def test_segments_are_those_of_all_paths(plan: PlanSnapshot, name: str) -> None:
    strategy = make(name)
    assert isinstance(strategy, Segment)
    listed = SegmentList()
    listed.register("all", [run for path in every_path(plan) for run in _cut(strategy, plan, path)])
    strategy.plan_changed(plan)
    assert strategy.segments.runs == listed.runs
    largest = max(listed.runs, key=len)
    assert all(not set(each) < set(largest) for each in listed.runs)


@examples(120)
@given(PLANS, st.sampled_from([0.3, 0.75, 1.0]))
def test_queues_between_segments_stand_where_a_path_has_its_first_drop(
    plan: PlanSnapshot, gamma: float
) -> None:
    released = {each.id: released_per_second(each) for each in plan.operators}
    wanted = set()
    for path in every_path(plan):
        edges = zip(path.operators, path.operators[1:], strict=False)
        drops = (edge for edge in edges if released[edge[1]] < gamma * released[edge[0]])
        wanted |= {edge for edge in [next(drops, None)] if edge is not None}
    assert place_queues_by_segments(plan, gamma) == wanted


# -- plans with more paths than can be listed -----------------------------------------------


def diamonds(count: int, rising: bool = False) -> PlanSnapshot:
    """So many forks, each with a join behind it that is the fork of the next: 2^count paths."""
    operators: list[OperatorSnapshot] = []
    last = 3 * count
    for number in range(last + 1):
        level, place = divmod(number, 3)
        reads: list[int | str] = [number - place] if place else [number - 2, number - 1]
        if number == 0:
            reads = ["s"]
        behind = (
            () if number == last else (number + 1, number + 2) if place == 0 else (3 * level + 3,)
        )
        cost = 1.0 / (number + 1) if rising else 1.0 + (7 * number % 11) / 10
        selectivity = 0.9 if rising else 0.85 + (5 * number % 13) / 50
        inputs = tuple(InputSnapshot(source, cost, selectivity) for source in reads)
        operators.append(
            OperatorSnapshot(number, f"o{number}", inputs, behind, (WeightedQuery("q"),))
        )
    return PlanSnapshot(tuple(operators))


@pytest.mark.parametrize("rising", [False, True])
def test_the_work_of_many_diamonds_is_a_few_passes_over_the_plan(rising: bool) -> None:
    plan = diamonds(40, rising)
    most = 12 * len(plan.operators) ** 2
    chains, descents = ChainSlopes(Ways(plan)), WeighedDescents(Ways(plan), 0.4, 0.6)
    swiftest = SwiftestPaths(plan)
    for search in (chains, descents, swiftest):
        search.found()
        assert search.passes < most
    assert Ways(plan).paths_from[0] == 2**40


@pytest.mark.parametrize("rising", [False, True])
def test_segments_of_many_diamonds_are_cut_where_paths_part_and_meet(rising: bool) -> None:
    strategy = Segment()
    strategy.plan_changed(diamonds(40, rising))
    runs = strategy.segments.runs
    assert len(runs) <= segment_runs.MOST_SEGMENTS
    assert {operator for run in runs for operator in run} == set(range(121))


class Counted(dict[int, OperatorSnapshot]):
    """Operators by their id, which may be looked at so many times."""

    left = 1_000_000

    def __getitem__(self, identity: int) -> OperatorSnapshot:
        self.left -= 1
        assert self.left > 0, "the work does not follow from the number of operators"
        return super().__getitem__(identity)


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        *names(),
        "gts(strategy = chain)",
        "hmts(placement = chains)",
        "hmts(placement = segments)",
        "component-based(objective = memory)",
        "maximum-slope-segment(objective = memory)",
        "dynamic-priority(inner = segment)",
    ],
)
def test_every_strategy_decides_at_once_on_many_diamonds(text: str, rising: bool) -> None:
    plan = diamonds(40, rising)
    plan.__dict__["by_id"] = Counted(plan.by_id)
    name, settings = parse_strategy(text)
    strategy = make(name, **settings)
    strategy.plan_changed(plan)
    strategy.observe(Observation(0.0, [OperatorState(0, 1.0, 1.0, 0.0, ready=True)], 1.0))
    assert strategy.decide() is not None
