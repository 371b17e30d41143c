"""Entities: every attribute can be read, knobs do what they say, others are refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millpond import Engine
from millpond.entities.attributes import TYPES
from millpond.entities.whole import KINDS
from millpond.errors import MillpondError, StateError

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE RELATION R (a INT PRIMARY KEY, name STRING);
CREATE QUERY big WEIGHT 3 AS SELECT a, COUNT(*) AS n FROM S [RANGE 10] GROUP BY a;
CREATE QUERY pairs AS SELECT S.a, R.name FROM S [ROWS 5], R WHERE S.a = R.a;
"""


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine() as engine:
        engine.execute(SCRIPT)
        engine.push("R", [{"a": 1, "name": "one"}])
        engine.push("S", [{"t": t, "a": t % 3} for t in range(20)])
        engine.run_until_idle()
        yield engine


def test_every_attribute_of_every_entity_is_of_its_type(engine: Engine) -> None:
    kinds = set()
    engine.execute("CREATE PARTITION p; ALTER QUERY big SET PARTITION p")
    for entity in engine.entities():
        kinds.add(entity.kind.name)
        for attribute in entity.kind.attributes:
            value = entity.get(attribute.name)
            assert value is None or isinstance(value, TYPES[attribute.type]), attribute
    assert kinds == {kind.name for kind in KINDS}


def test_attributes_are_declared_with_names_and_meanings() -> None:
    for kind in KINDS:
        names = [attribute.name for attribute in kind.attributes]
        assert len(set(names)) == len(names)
        assert all(attribute.meaning for attribute in kind.attributes)


def test_statistics_tell_what_happened(engine: Engine) -> None:
    entities = engine.entities()
    assert entities.get("stream", "s").get("arrived") == 20
    assert entities.get("query", "BIG").get("results") == engine.result_count("big")
    assert entities.get("engine", "engine").get("queries") == 2
    assert sum(each.get("rows") for each in entities.of_kind("synopsis")) > 0


def test_a_weight_is_set_and_refused_beyond_its_limits(engine: Engine) -> None:
    big = engine.entities().get("query", "big")
    big.set("weight", 2)
    assert big.get("weight") == 2
    big.set("weight", "2.5")
    assert engine.query_entry("big").weight == 2.5
    for value in (0, -1, float("inf"), "many", True, None):
        with pytest.raises(StateError, match="weight"):
            big.set("weight", value)
    assert big.get("weight") == 2.5


def test_a_query_is_put_to_sleep_and_woken(engine: Engine) -> None:
    big = engine.entities().get("query", "big")
    big.set("active", False)
    assert big.get("state") == "inactive"
    big.set("active", "true")
    assert big.get("state") == "active"


def test_the_strategy_changes_and_a_bad_one_does_not(engine: Engine) -> None:
    scheduler = engine.entities().get("scheduler", "scheduler")
    scheduler.set("strategy", "chain")
    assert engine.settings.strategy == "chain"
    with pytest.raises(MillpondError, match="no strategy"):
        scheduler.set("strategy", "hope")
    scheduler.set("mode", "gts")
    engine.push("S", [{"t": 30, "a": 1}])
    engine.run_until_idle()
    assert [e.name for e in engine.entities().of_kind("thread")] == ["thread0"]


def test_settings_are_knobs_of_the_engine(engine: Engine) -> None:
    whole = engine.entities().get("engine", "engine")
    whole.set("budget", "2 MB")
    assert whole.get("budget_bytes") == 2 * 2**20
    with pytest.raises(StateError, match="measured, not set"):
        whole.set("seed", "7")


def test_a_queue_is_taken_out_and_put_in(engine: Engine) -> None:
    entities = engine.entities()
    inner = next(e for e in entities.of_kind("queue") if e.name == "op1")
    inner.set("present", False)
    engine.push("S", [{"t": 40, "a": 1}])
    engine.run_until_idle()
    assert inner.get("present") is False
    inner.set("present", True)
    with pytest.raises(StateError, match="behind an input"):
        entities.get("queue", "stream:s").set("present", False)


def test_what_is_gone_or_unknown_is_said_so(engine: Engine) -> None:
    entities = engine.entities()
    big = entities.get("query", "big")
    engine.drop("big")
    with pytest.raises(StateError, match="is gone"):
        big.get("weight")
    assert list(big.watch("weight")) == []
    with pytest.raises(StateError, match='no query "bog"'):
        entities.get("query", "bog")
    with pytest.raises(StateError, match="no kind"):
        entities.of_kind("tree")
    with pytest.raises(StateError, match="no attribute"):
        entities.get("query", "pairs").get("colour")


def test_watch_tells_changes_only(engine: Engine) -> None:
    entity = engine.entities().get("query", "big")
    seen = entity.watch("weight", seconds=0)
    assert next(seen) == 3
    entity.set("weight", 4)
    assert next(seen) == 4


@pytest.mark.parametrize("mode", ["gts", "ots", "di", "hmts"])
def test_each_operator_is_in_one_thread(mode):
    with Engine({"mode": mode}) as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
            "CREATE QUERY q AS SELECT a, count(*) AS n FROM S [RANGE 5] GROUP BY a;"
            "CREATE QUERY r AS SELECT a FROM S WHERE a > 1;"
        )
        engine.push("S", [(1, a) for a in range(50)])
        engine.run_until_idle()
        threads = [each.get("operators") for each in engine.entities().of_kind("thread")]
        operators = [name for thread in threads for name in thread.split(", ")]
        assert sorted(operators) == sorted(engine.runtime.running)
