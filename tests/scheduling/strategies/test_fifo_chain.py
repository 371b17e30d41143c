from __future__ import annotations

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.strategies.fifo_chain import FifoChain
from tests.scheduling.pictures import decide, path, together, waiting

PLAN = together(path((1, 1)), path((9, 1), first_id=1))
STATES = [waiting(0, 5.0), waiting(1, 1.0)]


def _choices(share: float, seed: int = 0) -> list[object]:
    strategy = FifoChain(fifo_share=share, seed=seed)
    strategy.plan_changed(PLAN)
    return [decide(strategy, STATES) for _ in range(200)]


def test_the_ends_of_the_mixture_are_chain_and_fifo() -> None:
    assert set(_choices(0.0)) == {RunOperator(0)}
    assert set(_choices(1.0)) == {RunOperator(1)}


def test_the_share_is_kept_on_average_and_the_seed_decides() -> None:
    chosen = _choices(0.5)
    assert 70 < chosen.count(RunOperator(1)) < 130
    assert chosen == _choices(0.5)
    assert chosen != _choices(0.5, seed=1)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_out_of_range_is_refused(share: float) -> None:
    with pytest.raises(StrategyError, match="fifo_share"):
        FifoChain(fifo_share=share)
