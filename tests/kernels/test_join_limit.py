"""A join counts its pairs before it makes them, and is cut in time where they are too many."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millpond.errors import OutgrownError
from millpond.kernels.join import JoinKernel, PairLimit, counted_pairs
from millpond.schema import FOREVER

KERNEL = JoinKernel((pa.int64(),), (pa.int64(),), (pa.int64(),))
LARGE = 2**40


def elements(times: list[int], keys: list[int], length: int | None = None) -> pa.Table:
    ends = [FOREVER if length is None else time + length for time in times]
    columns = {"_ts": times, "_te": ends, "_w": [1] * len(times), "k0": keys, "c0": keys}
    return KERNEL.new_run(pa.table({name: np.array(v, np.int64) for name, v in columns.items()}))


def pairs_of(left: pa.Table, right: pa.Table, limit: PairLimit) -> pa.Table:
    indexes = KERNEL.index(0), KERNEL.index(1)
    made, _ = KERNEL.together((left, right), indexes, lambda pairs: pairs, limit)
    return pa.concat_tables([KERNEL.output_schema.empty_table(), *made])


def test_pairs_of_new_rows_are_counted_at_the_later_of_their_times() -> None:
    left, right = elements([1, 2, 3], [7, 7, 7]), elements([1, 2, 3], [7, 7, 8])
    counted = counted_pairs((left, right), (KERNEL.index(0), KERNEL.index(1)), 0)
    by_time = {t: int(counted.pairs[counted.starts == t].sum()) for t in (1, 2, 3)}
    assert (counted.total, by_time) == (6, {1: 1, 2: 3, 3: 2})


def test_rows_that_are_never_there_together_are_not_counted() -> None:
    times = list(range(100))
    sides = elements(times, [7] * 100, length=1), elements(times, [7] * 100, length=1)
    assert counted_pairs(sides, (KERNEL.index(0), KERNEL.index(1)), 0).total == 100


def test_a_step_of_too_many_pairs_is_cut_at_an_instant_up_to_which_they_fit() -> None:
    times = list(range(0, 200, 2))
    sides = elements(times, [7] * 100), elements(times, [7] * 100)
    with pytest.raises(OutgrownError) as raised:
        pairs_of(*sides, PairLimit(900, LARGE))
    assert raised.value.until == 59  # thirty instants make 900 pairs, and nothing is at 59
    assert (
        pairs_of(*(elements(times[:30], [7] * 30) for _ in "lr"), PairLimit(900, LARGE)).num_rows
        == 900
    )


def test_the_first_instant_is_made_whatever_its_pairs_are_as_long_as_memory_holds_them() -> None:
    one = elements([5] * 50, [7] * 50)
    assert pairs_of(one, one, PairLimit(10, LARGE)).num_rows == 2500
    with pytest.raises(OutgrownError, match=r"2,500 pairs .* one instant .* SET budget") as raised:
        pairs_of(one, one, PairLimit(10, 1000))
    assert raised.value.until is None


def test_a_step_that_makes_more_bytes_than_its_pairs_told_is_halved() -> None:
    times = list(range(100))
    sides = elements(times, [7] * 100), elements(times, [7] * 100)
    with pytest.raises(OutgrownError) as raised:
        pairs_of(*sides, PairLimit(10**6, 1000))
    assert raised.value.until == 49  # a rough count has the pairs at the times of the left rows
