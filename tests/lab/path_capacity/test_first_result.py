from __future__ import annotations

import pytest

from millpond.lab.path_capacity.first_result import BLOCK_SECONDS, first_result


@pytest.mark.parametrize(("share", "seconds"), [(0.5, 50.0), (0.9, BLOCK_SECONDS)])
def test_chain_serves_the_leaf_first_unless_both_are_one_chain(
    share: float, seconds: float
) -> None:
    assert first_result("chain", share, 0.2) == pytest.approx(seconds, rel=0.01)


def test_fifo_takes_the_first_tuple_to_its_end() -> None:
    assert first_result("fifo", 0.5, 0.2) == pytest.approx(BLOCK_SECONDS)
