"""Deadlines of tasks follow from what rows have cost; no clock is asked here."""

from millpond.execution.residents.durations import (
    DEADLINE_FACTOR,
    LEAST_SECONDS,
    MOST_OPERATORS,
    UNKNOWN_SECONDS,
    Durations,
)

OP = "store", "op1"


def durations(*tasks):
    known = Durations()
    for rows, seconds in tasks:
        known.record(OP, rows, seconds)
    return known


def test_before_anything_is_measured_a_task_may_take_long():
    assert durations().deadline(OP, 10) == UNKNOWN_SECONDS
    assert durations((10, 0.01)).deadline(("store", "op2"), 10) == UNKNOWN_SECONDS


def test_a_small_task_that_hangs_is_found_sooner_once_one_was_measured():
    known = durations((1_000, 0.01))
    assert known.deadline(OP, 1_000) == known.deadline(OP, 10) == LEAST_SECONDS < UNKNOWN_SECONDS


def test_what_a_few_rows_cost_says_nothing_of_a_thousand_times_as_many():
    assert durations((1_000, 0.01)).deadline(OP, 1_000_000) == UNKNOWN_SECONDS


def test_many_rows_may_take_as_long_as_their_rows_have_cost():
    """100 microseconds a row: a million take 100 seconds, ten of which are far from a deadline."""
    known = durations((100_000, 10.0))
    assert known.deadline(OP, 1_000_000) > DEADLINE_FACTOR * 90
    assert known.deadline(OP, 10_000_000) > known.deadline(OP, 1_000_000)


def test_a_task_of_a_few_rows_is_not_excused_by_one_of_many():
    known = durations((10_000_000, 200.0))
    assert known.deadline(OP, 1_000) == LEAST_SECONDS < DEADLINE_FACTOR * 200


def test_rows_that_cost_up_to_three_times_as_much_are_never_overdue():
    """Whatever was measured, up to ten times as many rows: the proof is in the factors."""
    for rows in (1, 10, 1_000, 100_000):
        for more in (1, 3, 10):
            known = durations((rows, 100.0 * rows))
            assert known.deadline(OP, more * rows) > 3 * 100.0 * rows * more


def test_the_dearest_rows_count_and_a_slow_machine_is_learnt():
    known = durations((1_000, 10.0), (1_000, 0.01))
    assert known.deadline(OP, 1_000) == DEADLINE_FACTOR * 10.0
    known.record(OP, 1_000, 100.0)
    assert known.deadline(OP, 1_000) == DEADLINE_FACTOR * 100.0


def test_one_slow_task_is_not_usual_for_long():
    known = durations((1_000, 100.0), *[(1_000, 1.0)] * 60)
    assert 1.0 < known.usual(OP, 1_000) < 1.5
    assert known.deadline(OP, 1_000) == DEADLINE_FACTOR * 100.0


def test_operators_that_are_gone_are_forgotten():
    known = Durations()
    for number in range(MOST_OPERATORS + 10):
        known.record(("store", f"op{number}"), 1, 1.0)
    assert known.usual(("store", "op0"), 1) == 0
    assert known.usual(("store", f"op{MOST_OPERATORS + 9}"), 1) > 0
