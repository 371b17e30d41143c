from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import StrategyError
from millpond.scheduling.charts.progress_chart import (
    Point,
    Segment,
    check_chart,
    partition,
    path_chart,
    slope,
)
from millpond.scheduling.snapshot import InputSnapshot, OperatorPath, OperatorSnapshot, PlanSnapshot
from tests.scheduling.every_path import every_path
from tests.scheduling.pictures import path


def charts() -> st.SearchStrategy[list[Point]]:
    steps = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 40)), min_size=1, max_size=12)

    def build(drawn: list[tuple[int, int]]) -> list[Point]:
        points, now = [(0.0, 20.0)], 0
        for seconds, size in drawn:
            now += seconds
            points.append((float(now), float(size)))
        return [*points[:-1], (points[-1][0], 0.0)]

    return steps.map(build)


def by_definition(points: list[Point]) -> list[tuple[int, int]]:
    """The paper's construction: from each point to its steepest descent operator point."""
    found, place = [], 0
    while place < len(points) - 1:
        later = range(place + 1, len(points))
        best = max(later, key=lambda each: (slope(points[place], points[each]), -each))
        found.append((place, best - 1))
        place = best
    return found


def test_a_sandwiched_selective_operator_draws_its_predecessors_into_its_chain() -> None:
    points = [(0, 1.0), (2, 0.875), (4, 0.75), (5, 0.375), (9, 0.0)]
    assert partition(points) == (Segment(0, 2, 0.125), Segment(3, 3, 0.09375))


def test_a_chart_that_rises_belongs_to_the_descent_behind_it() -> None:
    points = [(0, 1.0), (1, 1.5), (2, 0.5), (4, 0.0)]
    assert partition(points) == (Segment(0, 1, 0.25), Segment(2, 2, 0.25))


def test_equal_slopes_stay_apart() -> None:
    assert partition([(0, 1.0), (1, 0.5), (2, 0.0)]) == (Segment(0, 0, 0.5), Segment(1, 1, 0.5))


@given(charts())
def test_the_envelope_is_the_one_of_the_definition(points: list[Point]) -> None:
    assert [(each.first, each.last) for each in partition(points)] == by_definition(points)


@given(charts())
def test_the_envelope_is_convex_and_below_the_chart(points: list[Point]) -> None:
    segments = partition(points)
    slopes = [segment.slope for segment in segments]
    assert slopes == sorted(slopes, reverse=True)
    for segment in segments:
        start = points[segment.first]
        for time, size in points[segment.first : segment.last + 2]:
            assert size >= start[1] - segment.slope * (time - start[0]) - 1e-9


@given(charts())
def test_the_segments_cover_every_step_once(points: list[Point]) -> None:
    steps = [step for each in partition(points) for step in range(each.first, each.last + 1)]
    assert steps == list(range(len(points) - 1))


def test_work_that_takes_no_time_is_infinitely_steep() -> None:
    assert slope((1, 1), (1, 0.5)) == float("inf")
    assert slope((1, 1), (1, 1)) == 0.0
    assert slope((1, 1), (1, 2)) == float("-inf")


def test_a_path_chart_adds_up_costs_and_shrinks_by_selectivities() -> None:
    plan = path((1.0, 0.5), (2.0, 0.5), (4.0, 0.5))
    assert path_chart(plan, every_path(plan)[0]) == [(0, 1), (1, 0.5), (2, 0.25), (3, 0)]


def test_a_path_chart_counts_bytes() -> None:
    wide = InputSnapshot("s", 1.0, 1.0, tuple_bytes=100)
    narrow = InputSnapshot(0, 1.0, 1.0, tuple_bytes=10)
    plan = PlanSnapshot(
        (
            OperatorSnapshot(0, "project", (wide,), (1,), output_bytes=10),
            OperatorSnapshot(1, "last", (narrow,)),
        )
    )
    assert path_chart(plan, OperatorPath("s", (0, 1))) == [(0, 100), (1, 10), (2, 0)]


@pytest.mark.parametrize("points", [[], [(0, 1)], [(0, 1), (-1, 0)], [(0, 1), (1, -1)]])
def test_charts_that_make_no_sense_are_refused(points: list[Point]) -> None:
    with pytest.raises(StrategyError):
        check_chart(points)
