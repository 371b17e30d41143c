"""The place of a step follows what steps have cost."""

from __future__ import annotations

import math

import pytest

from millpond.execution.costs import Costs, Line
from millpond.execution.places import EXPECTED_WEIGHT, Places
from millpond.execution.steps import DRIVER, EXECUTORS, Outcome
from millpond.execution.surroundings import Limits, Missed


def places(driver: Line | None = None, executors: Line | None = None, **limits) -> Places:
    placed = Places(Limits(**limits))
    for place, line in ((DRIVER, driver), (EXECUTORS, executors)):
        if line is not None:
            record(placed, place, line)
    return placed


def record(placed: Places, place: str, line: Line, times: int = 20) -> None:
    for rows in [1_000, 20_000] * times:
        placed.record(rows, Outcome(None, place, seconds=line.at(rows)))


def test_costs_are_a_line_through_what_was_measured():
    costs = Costs()
    for rows in (10, 1_000, 50_000):
        costs.record(rows, 0.5 + rows / 1_000)
    assert (costs.line.step, costs.line.row) == (pytest.approx(0.5), pytest.approx(0.001))


def test_steps_of_one_size_leave_the_slope_to_the_expectation():
    costs = Costs()
    for _ in range(50):
        costs.record(1_000, 0.010)
    line = costs.expected(Line(0.002, 8e-6), EXPECTED_WEIGHT).line
    assert line.at(1_000) == pytest.approx(0.010, rel=0.01)
    assert line.row == pytest.approx(8e-6, rel=0.01)


def test_without_experience_small_steps_stay():
    placed = places(driver_rows=50_000)
    assert placed.choose(1) == DRIVER
    assert placed.choose(10_000) == DRIVER
    assert placed.choose(500_000) == EXECUTORS
    jobs = places(residents=0)
    assert jobs.choose(50_000) == DRIVER, "a job costs more than residents do"


def test_the_reason_for_a_place_is_told():
    assert places(driver_rows=0).reason(5, is_awaited=False) == "executors: driver_rows is 0"
    by_rows = places(by_cost=False)
    assert by_rows.reason(5, is_awaited=False) == "driver: driver_rows is 50,000"
    by_cost = places().reason(1_000, is_awaited=True)
    assert by_cost.startswith("driver: 1,000 rows cost 3.5 ms in the driver, ")
    assert by_cost.endswith("these would have saved 0.0 s so far, and take 3 s to start")


def test_executors_are_worth_their_start_when_as_much_was_missed():
    missed = Missed()
    placed = Places(Limits(), missed)
    steps = 0
    while not missed.is_worth_a_start:
        placed.record(100_000, Outcome(None, DRIVER, seconds=0.5))
        steps += 1
    assert 10 < steps < 50, "0.1 s are missed in each"
    small = Missed()
    for _ in range(1_000):
        Places(Limits(), small).record(100, Outcome(None, DRIVER, seconds=0.1))
    assert small.seconds < 1, "few rows that take long are not shared out"


def test_an_operator_that_is_slow_here_is_tried_there():
    placed = places(Line(0.01, 1e-3), buckets=2)
    assert placed.choose(10_000) == EXECUTORS
    assert placed.choose(2_000, is_awaited=True) == DRIVER
    assert placed.choose(1) == DRIVER


def test_by_rows_nothing_is_tried():
    placed = places(Line(0.01, 1e-3), by_cost=False)
    assert placed.choose(10_000) == DRIVER
    assert placed.choose(50_001) == EXECUTORS


def test_a_burst_goes_there_and_the_trickle_comes_back():
    placed = places(Line(0.001, 1e-4), Line(0.1, 1e-5))
    assert placed.choose(20_000) == EXECUTORS
    assert placed.choose(100) == DRIVER


def test_what_was_slow_once_is_tried_again():
    placed = places(Line(0.01, 1e-3), Line(9.0, 1e-3))
    assert placed.choose(20_000) == DRIVER
    record(placed, DRIVER, Line(0.01, 1e-3), 300)
    assert placed.choose(20_000) == EXECUTORS


def test_the_first_job_says_nothing_of_others():
    placed = places(Line(0.001, 1e-4))
    before = placed.lines[EXECUTORS]
    placed.record(1_000, Outcome(None, EXECUTORS, seconds=20.0))
    assert placed.lines[EXECUTORS] == before
    placed.record(1_000, Outcome(None, EXECUTORS, seconds=20.0))
    assert placed.lines[EXECUTORS] != before


def test_while_spark_is_awaited_the_driver_takes_what_it_is_done_with_earlier():
    placed = places(driver_rows=50_000)
    assert placed.choose(500_000, is_awaited=True) == DRIVER
    assert placed.choose(50_000_000, is_awaited=True) == EXECUTORS
    slow = places(Line(0.01, 1e-3), driver_rows=50_000)
    assert slow.choose(60_000, is_awaited=True) == EXECUTORS
    assert places(driver_rows=0).choose(1, is_awaited=True) == EXECUTORS


def test_a_step_is_over_soon_if_such_steps_were():
    placed = places(driver_rows=50_000)
    assert placed.seconds_here(1) == math.inf, "nothing was measured"
    record(placed, DRIVER, Line(0.001, 1e-6))
    assert placed.seconds_here(1_000) <= 0.02 < placed.seconds_here(100_000)
