from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from millpond.errors import StrategyError
from millpond.scheduling.check_settings import check_settings
from millpond.scheduling.registry import find, make
from millpond.scheduling.strategies.fifo import Fifo

if TYPE_CHECKING:
    from decimal import Decimal


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("chain", {"slices": 3}, "its settings: max_tuples, slice_seconds, stay"),
        ("threshold", {"memory": 3}, 'no setting "memory"; did you mean memory_bytes?'),
        ("gts", {"strategy": "fifo", "turn": 1}, 'strategy "gts" has no setting "turn"'),
        ("dynamic-priority", {"slices": 3}, 'strategy "path-capacity" has no setting "slices"'),
    ],
)
def test_an_unknown_setting_is_refused_with_the_known_ones(
    name: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(StrategyError) as refused:
        make(name, **settings)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("name", "setting", "value", "asked"),
    [
        ("threshold", "beta", "much", "a number"),
        ("threshold", "beta", None, "a number"),
        ("chain", "max_tuples", "3", "a whole number or none"),
        ("chain", "max_tuples", 1.5, "a whole number or none"),
        ("chain", "max_tuples", True, "a whole number or none"),
        ("chain", "stay", 1, "true or false"),
        ("fifo-chain", "seed", 0.5, "a whole number"),
        ("hmts", "turn_seconds", [], "a number or none"),
        ("gts", "strategy", 3, "a name"),
        ("dynamic-priority", "inner", 3, "a name or a Strategy"),
    ],
)
def test_a_setting_of_another_kind_is_refused_with_the_right_one(
    name: str, setting: str, value: object, asked: str
) -> None:
    with pytest.raises(StrategyError) as refused:
        make(name, **{setting: value})
    assert str(refused.value) == f'strategy "{name}": {setting} is {value!r}; give {asked}'


def test_a_setting_of_the_right_kind_is_taken() -> None:
    make("chain", max_tuples=np.int64(3), slice_seconds=1, stay=True)
    make("chain", max_tuples=None, slice_seconds=np.float64(0.5))
    make("dynamic-priority", inner=Fifo(), period_seconds=2)
    check_settings("chain", find("chain"), {})


def test_settings_that_do_not_say_their_kind_are_left_to_the_strategy() -> None:
    def unannotated(depth, limit: Decimal = 0):  # type: ignore[no-untyped-def,assignment]
        return Fifo()

    check_settings("unannotated", unannotated, {"depth": "any", "limit": None})
    with pytest.raises(StrategyError, match="its settings: depth, limit"):
        check_settings("unannotated", unannotated, {"width": 1})
