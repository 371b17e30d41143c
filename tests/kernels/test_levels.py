"""Parts stay few, and no row is moved often."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels.levels import PARTS_A_LEVEL, SMALL_ROWS, level_of, parts_to_merge

STEPS = st.lists(st.integers(1, 10) | st.integers(1, 100_000), min_size=1, max_size=300)


def grown(steps):
    """The parts that remain of these steps, and how many rows were written for them."""
    sizes, written = [], 0
    for rows in steps:
        merged = parts_to_merge(sizes, rows)
        kept = len(sizes) - merged
        sizes[kept:] = [sum(sizes[kept:]) + rows]
        written += sizes[-1]
    return sizes, written


@given(STEPS)
def test_parts_are_few_and_hold_all_rows(steps):
    sizes, _ = grown(steps)
    assert sum(sizes) == sum(steps)
    assert len(sizes) <= (PARTS_A_LEVEL - 1) * (level_of(sum(steps)) + 1)


def test_each_row_is_written_a_logarithmic_number_of_times():
    for rows in (1, 100, 1_000):
        steps = [rows] * 10_000
        _, written = grown(steps)
        moves = 1 + math.log(sum(steps) / rows, PARTS_A_LEVEL)
        assert written <= sum(steps) * (moves + SMALL_ROWS / rows)
