from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import StrategyError
from millpond.scheduling.registry import names
from millpond.scheduling.strategies.chain import Chain
from millpond.scheduling.strategies.direct_interoperability import DirectInteroperability
from millpond.scheduling.strategies.gts import Gts
from millpond.scheduling.strategies.periodically_oldest import PeriodicallyOldest
from millpond.scheduling.strategies.threshold import Threshold
from millpond.scheduling.strategy_text import driving_spark, engine_strategy, parse_strategy


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("fifo", "fifo", {}),
        ("two words", "two words", {}),
        (" fifo ( ) ", "fifo", {}),
        ("chain(max_tuples=1_000)", "chain", {"max_tuples": 1000}),
        ("chain(stay = TRUE, max_tuples = none,)", "chain", {"stay": True, "max_tuples": None}),
        ("threshold(beta = 0.8)", "threshold", {"beta": 0.8}),
        ("threshold(memory_bytes = 64e6)", "threshold", {"memory_bytes": 64e6}),
        ("gts(strategy = round-robin)", "gts", {"strategy": "round-robin"}),
        ("gts(strategy = 'chain')", "gts", {"strategy": "chain"}),
        ('x(a = "b, (c)", d = -1)', "x", {"a": "b, (c)", "d": -1}),
    ],
)
def test_a_name_with_settings_is_read(text: str, name: str, settings: dict[str, object]) -> None:
    assert parse_strategy(text) == (name, settings)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "chain(", "chain)", "chain(stay)", "chain(stay=)", "chain(=1)", "chain(,)"),
        *("chain(stay = true) x", "chain(a = (1))", "chain(a = 1 b = 2)", "chain(a = 'b)"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(StrategyError, match=r"cannot be read; write a name, or a name with"):
        parse_strategy(text)


def test_a_setting_given_twice_is_refused() -> None:
    with pytest.raises(StrategyError, match='strategy "chain": stay is given twice'):
        parse_strategy("chain(stay = true, stay = false)")


@given(st.text("chain(,)=0.5e'-_ \n", max_size=30) | st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        engine_strategy(text, 1e9)
    except StrategyError:
        return
    assert parse_strategy(text).name in names()


def test_a_strategy_is_made_with_its_settings() -> None:
    chain = engine_strategy("chain(max_tuples = 7)", 1e9)
    assert isinstance(chain, Chain)
    assert chain.service.max_tuples == 7


def test_the_budget_is_the_memory_of_those_that_mind_it() -> None:
    for text, expected in (("threshold", 1e9), ("threshold(memory_bytes = 5e6)", 5e6)):
        strategy = engine_strategy(text, 1e9)
        assert isinstance(strategy, Threshold)
        assert strategy.memory_bytes == expected
    cured = engine_strategy("periodically-oldest(inner = threshold, period_seconds = 2)", 1e9)
    assert isinstance(cured, PeriodicallyOldest)
    assert isinstance(cured.inner, Threshold)
    assert cured.inner.memory_bytes == 1e9


@pytest.mark.parametrize(
    "text", ["chain", "periodically-oldest(inner = chain)", "gts(strategy = chain)"]
)
def test_one_that_needs_the_simulator_is_refused_with_another_to_choose(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "it needs the simulator; choose fifo"
    monkeypatch.setattr(Chain, "simulator_only", reason, raising=False)
    assert "chain" not in driving_spark()
    with pytest.raises(StrategyError, match=f"cannot drive Spark: {reason}"):
        engine_strategy(text, 1e9)


def test_a_mode_has_the_strategy_in_its_threads() -> None:
    gts = engine_strategy("chain(max_tuples = 7)", 1e9, "gts")
    assert isinstance(gts, Gts)
    assert (gts.level.strategy, gts.level.max_tuples) == ("chain", 7)
    assert isinstance(engine_strategy("round-robin", 1e9, "di"), DirectInteroperability)


@pytest.mark.parametrize(
    ("text", "mode", "complaint"),
    [
        ("hmts", "gts", r'strategy "hmts" has threads of its own; SET mode = .free., or name'),
        ("threshold(beta = 0.5)", "hmts", r'mode "hmts" can not hand beta on to strategy "thr'),
    ],
)
def test_what_a_mode_can_not_do_is_said(text: str, mode: str, complaint: str) -> None:
    with pytest.raises(StrategyError, match=complaint):
        engine_strategy(text, 1e9, mode)
