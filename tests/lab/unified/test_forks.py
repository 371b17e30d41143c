from __future__ import annotations

import pytest

from millpond.lab.unified.forks import Fork, freed_by_first_operators, said
from millpond.scheduling.registry import make

FIGURE_9 = Fork(("s", 0, "s", 2), (1.0, 6.0, 1.0, 0.5), (0.6, 1.0, 0.5, 1.0))


@pytest.mark.parametrize(
    ("costs", "sizes", "expected"),
    [
        ((1.0, 6.0, 1.0, 0.5), (0.6, 1.0, 0.5, 1.0), "O1+O3+O4 | O2"),
        ((1.0, 8.0, 1.0, 4.0), (0.1, 1.0, 0.1, 1.0), "O1+O3 | O4 | O2"),
        ((8.0, 1.0, 8.0, 0.5), (0.6, 1.0, 0.5, 1.0), "O1+O2+O3+O4"),
    ],
)
def test_what_frees_memory_faster_joins_the_first_operators(
    costs: tuple[float, ...], sizes: tuple[float, ...], expected: str
) -> None:
    assert said(Fork(FIGURE_9.parents, costs, sizes)) == expected


def test_branches_begin_at_the_shared_stream() -> None:
    assert FIGURE_9.branches == [[0, 1], [2, 3]]
    assert FIGURE_9.first == {0, 2}


def test_the_best_beginning_is_found_by_trying_all() -> None:
    assert FIGURE_9.best_rate() == pytest.approx((1 - 0.6) / 2.5)


def test_the_shared_tuple_is_freed_by_the_last_first_operator() -> None:
    freed = freed_by_first_operators(FIGURE_9, make("fifo", max_tuples=1))
    assert sorted(freed) == pytest.approx([-0.6, 0.5])
