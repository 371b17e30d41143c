"""What a step costs beside its execution."""

from __future__ import annotations

import pytest

from millpond.execution.turns import Turns


def test_a_turn_costs_what_is_between_two_ends_beside_the_step() -> None:
    turns = Turns()
    turns.over(0.5, now=10.0)
    assert turns.seconds == 0.0
    turns.over(0.5, now=10.502)
    assert turns.seconds == pytest.approx(0.002)
    turns.over(0.1, now=10.604)
    assert turns.seconds == pytest.approx(0.002)


def test_waiting_is_no_part_of_a_turn() -> None:
    turns = Turns()
    turns.over(0.1, now=1.0)
    turns.interrupted()
    turns.over(0.1, now=9.0)
    assert turns.seconds == 0.0
