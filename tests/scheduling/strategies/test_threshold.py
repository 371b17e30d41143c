from __future__ import annotations

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.registry import make
from millpond.scheduling.strategies.threshold import Threshold, thresholds
from tests.scheduling.literal_plans import paths, ran, tell

TRADE_OFF = paths([(1.0, 0.1), (90.0, 1.0)], [(4.0, 0.5), (2.0, 1.0)])
"""Path 2-3 has the higher capacity (1/5 against 1/10), leaf 0 frees more memory (0.9 a second)."""


def watched(**settings: object) -> Threshold:
    strategy = make("threshold", **{"memory_bytes": 100.0, **settings})
    assert isinstance(strategy, Threshold)
    strategy.plan_changed(TRADE_OFF)
    return strategy


def modes(strategy: Threshold, looks: list[tuple[float, float]]) -> list[bool]:
    found = []
    for now, queue_bytes in looks:
        tell(strategy, {}, now, queue_bytes)
        found.append(strategy.is_saving)
    return found


@pytest.mark.parametrize(
    ("mean_bytes", "expected"),
    [(0.0, (50.0, 0.0)), (40.0, (70.0, 40.0)), (80.0, (90.0, 80.0)), (95.0, (90.0, 81.0))],
)
def test_thresholds_are_formula_3_3(mean_bytes: float, expected: tuple[float, float]) -> None:
    assert thresholds(100.0, mean_bytes, 0.9) == pytest.approx(expected)


def test_normal_mode_is_path_capacity() -> None:
    strategy = watched()
    tell(strategy, {0: (5, 0.0), 2: (5, 0.0)}, queue_bytes=10.0)
    assert ran(strategy.decide()) == 2


def test_saving_mode_is_the_simplified_segment() -> None:
    strategy = watched()
    tell(strategy, {0: (5, 0.0), 2: (5, 0.0)}, queue_bytes=60.0)
    assert ran(strategy.decide()) == 0


def test_saving_begins_at_the_upper_and_ends_at_the_lower_threshold() -> None:
    strategy = watched(interval_seconds=1.0)
    looks = [(0.0, 30.0), (10.0, 30.0), (20.0, 64.0), (21.0, 70.0), (22.0, 50.0), (23.0, 34.0)]
    # The mean is 30 after ten seconds, 47 after twenty: T_max 65 and 73.5.
    assert modes(strategy, looks) == [False, False, False, False, False, False]
    assert modes(strategy, [(24.0, 80.0), (25.0, 60.0), (26.0, 30.0)]) == [True, True, False]


def test_memory_is_looked_at_more_often_near_the_limit() -> None:
    far, near = watched(interval_seconds=10.0), watched(interval_seconds=10.0)
    assert modes(far, [(0.0, 0.0), (9.9, 99.0), (10.0, 99.0)]) == [False, False, True]
    assert modes(near, [(0.0, 40.0), (5.9, 99.0), (6.0, 99.0)]) == [False, False, True]


def test_looks_are_never_closer_than_the_shortest_interval() -> None:
    strategy = watched(interval_seconds=10.0, shortest_interval_seconds=2.0)
    assert modes(strategy, [(0.0, 100.0), (1.9, 0.0), (2.0, 0.0)]) == [True, True, False]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"beta": 0.5}, "beta is 0.5; give a number above 0.5 and below 1"),
        ({"beta": 1.0}, "beta is 1.0; give a number above 0.5 and below 1"),
        ({"gamma": 2.0}, "gamma is 2.0"),
        ({"memory_bytes": 0}, "memory_bytes is 0"),
        ({"shortest_interval_seconds": 5.0}, "shortest_interval_seconds is 5.0"),
        ({"alpha": 0.5}, "its settings: memory_bytes, beta"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], text: str) -> None:
    with pytest.raises(StrategyError, match=text):
        make("threshold", **settings)
