from __future__ import annotations

import pytest

from millpond.errors import StrategyError
from millpond.scheduling import registry
from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.strategy import Strategy


@pytest.mark.parametrize("name", registry.names())
def test_every_strategy_can_be_made_without_settings(name: str) -> None:
    assert isinstance(registry.make(name), Strategy)


@pytest.mark.parametrize("name", registry.names())
def test_an_empty_plan_has_nothing_to_decide(name: str) -> None:
    strategy = registry.make(name)
    strategy.plan_changed(PlanSnapshot(()))
    assert strategy.decide() is None


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(StrategyError, match='no strategy "chian"; did you mean "chain"'):
        registry.make("chian")


@pytest.mark.parametrize("settings", [{"max_tuples": 0}, {"slice_seconds": 0.0}])
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(StrategyError, match=f'strategy "fifo": {next(iter(settings))} is '):
        registry.make("fifo", **settings)
