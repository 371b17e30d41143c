from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import StrategyError
from millpond.scheduling.charts.segment_list import SegmentList
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import OperatorSnapshot, PlanSnapshot
from millpond.scheduling.strategies.segment import Segment
from millpond.scheduling.strategies.simplified_segment import SimplifiedSegment
from tests.drawn_examples import examples
from tests.scheduling.literal_plans import operator, paths, ran, tell

FALLING_THEN_RISING = paths([(1.0, 0.5), (5.0, 0.9), (1.0, 0.2), (1.0, 1.0)])
"""Frees 0.5, 0.02, 0.8 and 1 a second."""


def runs(strategy: Segment, plan: PlanSnapshot) -> tuple[tuple[int, ...], ...]:
    strategy.plan_changed(plan)
    return strategy.segments.runs


def test_a_path_is_cut_where_less_memory_is_freed() -> None:
    assert runs(Segment(), FALLING_THEN_RISING) == ((0,), (1, 2, 3))


def test_a_path_of_rising_releases_is_one_segment() -> None:
    assert runs(Segment(), paths([(1.0, 0.9), (1.0, 0.8), (1.0, 1.0)])) == ((0, 1, 2),)


def test_the_segment_that_frees_most_runs_to_its_end() -> None:
    strategy = Segment()
    strategy.plan_changed(FALLING_THEN_RISING)
    tell(strategy, {0: (1, 5.0), 1: (1, 0.0)})
    assert ran(strategy.decide()) == 0
    tell(strategy, {1: (2, 0.0)}, empty=[0])
    assert [ran(strategy.decide())] == [1]
    tell(strategy, {0: (1, 6.0), 2: (2, 0.0)}, empty=[1])
    assert ran(strategy.decide()) == 2
    tell(strategy, {3: (1, 0.0)}, empty=[2])
    assert ran(strategy.decide()) == 3
    tell(strategy, {}, empty=[3])
    assert ran(strategy.decide()) == 0


def test_priority_is_the_memory_release_capacity_of_the_segment() -> None:
    strategy = Segment()
    strategy.plan_changed(FALLING_THEN_RISING)
    assert strategy.priority(0) == pytest.approx(0.5)
    assert strategy.priority(3) == pytest.approx(1 / (5 + 0.9 + 0.18))


def fork(with_second: bool = True) -> PlanSnapshot:
    """Query a is 0-1-2, all rising; query b shares 0 and 1, then falls."""
    both = ["a", "b"] if with_second else ["a"]
    found = [
        operator(0, "s", 1.0, 0.9, [1], both),
        operator(1, 0, 1.0, 0.8, [2, 3] if with_second else [2], both),
        operator(2, 1, 1.0, 0.5, [], ["a"]),
        operator(3, 1, 50.0, 0.5, [], ["b"]),
    ]
    return PlanSnapshot(tuple(found if with_second else found[:3]))


def test_segments_inside_others_are_pruned() -> None:
    strategy = Segment()
    assert runs(strategy, fork()) == ((0, 1, 2), (3,))
    assert [strategy.segments.count(each) for each in range(4)] == [2, 2, 1, 1]


def test_queries_come_and_go() -> None:
    strategy = Segment()
    assert runs(strategy, fork(with_second=False)) == ((0, 1, 2),)
    assert runs(strategy, fork()) == ((0, 1, 2), (3,))
    assert runs(strategy, fork(with_second=False)) == ((0, 1, 2),)


def test_dropping_the_longer_query_leaves_the_shared_operators() -> None:
    segments = SegmentList()
    segments.register("a", [(0, 1, 2)])
    segments.register("b", [(0, 1), (3,)])
    segments.drop("a")
    assert segments.runs == ((0, 1), (3,))
    assert segments.count(2) == 0


def test_new_statistics_cut_anew() -> None:
    strategy = Segment()
    runs(strategy, FALLING_THEN_RISING)
    assert runs(strategy, paths([(1.0, 0.5), (1.0, 0.1), (5.0, 0.9), (1.0, 1.0)])) == (
        (0, 1),
        (2, 3),
    )


@st.composite
def forests(draw: st.DrawFn) -> PlanSnapshot:
    """Trees that fork, with a query behind every leaf of them."""
    count = draw(st.integers(1, 12))
    reads = [draw(st.integers(-1, identity - 1)) for identity in range(count)]
    sinks = [identity for identity in range(count) if identity not in reads]
    queries: dict[int, list[str]] = {identity: [] for identity in range(count)}
    for sink in sinks:
        at = sink
        while at >= 0:
            queries[at].append(f"q{sink}")
            at = reads[at]
    return PlanSnapshot(tuple(_drawn(draw, identity, reads, queries) for identity in range(count)))


def _drawn(
    draw: st.DrawFn, identity: int, reads: list[int], queries: dict[int, list[str]]
) -> OperatorSnapshot:
    source = reads[identity] if reads[identity] >= 0 else f"s{identity}"
    readers = [reader for reader, read in enumerate(reads) if read == identity]
    cost = draw(st.sampled_from([0.1, 1.0, 4.0]))
    selectivity = draw(st.sampled_from([0.1, 0.5, 0.9, 1.3]))
    return operator(identity, source, cost, selectivity, readers, queries[identity])


@examples(40)
@given(forests(), st.randoms(use_true_random=False))
def test_any_order_of_coming_and_going_gives_the_same_list(
    plan: PlanSnapshot, random: Random
) -> None:
    wanted = Segment()._by_query(plan)
    names = sorted(wanted)
    random.shuffle(names)
    staying = {name: wanted[name] for name in names[: len(names) // 2]}
    moved, fresh = SegmentList(), SegmentList()
    for name in names:
        moved.register(name, wanted[name])
    for name in names[len(names) // 2 :]:
        moved.drop(name)
    fresh.update(staying)
    assert moved.runs == fresh.runs
    assert all(moved.count(each.id) == fresh.count(each.id) for each in plan.operators)


@examples(40)
@given(forests())
def test_segments_cover_all_operators_and_none_contains_another(plan: PlanSnapshot) -> None:
    found = [set(run) for run in runs(Segment(), plan)]
    assert set().union(*found) == set(plan.by_id)
    assert not any(one < other for one in found for other in found)


def test_the_simplified_segment_has_two_parts_at_most() -> None:
    plan = paths([(1.0, 0.5), (5.0, 0.9), (1.0, 0.2), (5.0, 0.2), (9.0, 1.0)])
    assert runs(Segment(), plan) == ((0,), (1, 2), (3,), (4,))
    assert runs(SimplifiedSegment(), plan) == ((0,), (1, 2, 3, 4))


def test_gamma_lets_similar_operators_join_the_leaf() -> None:
    plan = paths([(1.0, 0.5), (1.0, 0.6), (1.0, 0.9), (1.0, 1.0)])
    assert runs(SimplifiedSegment(gamma=1.0), plan) == ((0,), (1, 2, 3))
    assert runs(SimplifiedSegment(gamma=0.75), plan) == ((0, 1), (2, 3))
    assert runs(SimplifiedSegment(gamma=0.1), plan) == ((0, 1, 2, 3),)


def test_a_growing_operator_keeps_its_place_in_the_leaf_segment_only_if_none_grows_faster() -> None:
    assert runs(SimplifiedSegment(), paths([(1.0, 2.0), (1.0, 1.5), (1.0, 1.0)])) == ((0, 1, 2),)
    assert runs(SimplifiedSegment(), paths([(1.0, 1.5), (1.0, 2.0), (1.0, 1.0)])) == ((0,), (1, 2))


@pytest.mark.parametrize("gamma", [0.0, -0.5, 1.01, float("nan")])
def test_gamma_out_of_range_is_refused(gamma: float) -> None:
    with pytest.raises(StrategyError, match=r"gamma is .*; give a number above 0 and at most 1"):
        make("simplified-segment", gamma=gamma)
