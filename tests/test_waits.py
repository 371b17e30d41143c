"""Queries that wait for time say so: for which input, since when; and that is no latency."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from millpond import Engine
from millpond.insight.bottleneck import bottleneck, operator_views
from millpond.sharing import waits
from tests.patience import wait_until

SCRIPT = """
CREATE STREAM Aa (at TIMESTAMP, a INT) TIMESTAMP BY at;
CREATE STREAM Bb (at TIMESTAMP, a INT) TIMESTAMP BY at;
CREATE QUERY both AS
  SELECT Aa.a FROM Aa [RANGE 1 HOUR], Bb [RANGE 1 HOUR] WHERE Aa.a = Bb.a;
CREATE QUERY alone AS SELECT a FROM Aa;
"""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(waits, "LEAST_SECONDS", 0.01)
    with Engine() as made:
        made.execute(SCRIPT)
        yield made


def waiting(engine: Engine, query: str) -> str:
    return str(engine.entities().get("query", query).get("waits"))


def test_a_query_names_the_input_that_holds_it_up(engine: Engine) -> None:
    assert waiting(engine, "both") == ""
    engine.push("Aa", [("2026-01-01 12:00:10", 7)])
    engine.advance("Aa", "2026-01-01 12:00:20")
    engine.run_until_idle()
    said = wait_until(lambda: waiting(engine, "both"))
    assert said.startswith("waits for Bb since ")
    assert said.endswith("; nothing has come in it")
    assert waiting(engine, "alone") == ""
    engine.advance("Bb", "2026-01-01 12:00:05")
    engine.run_until_idle()
    assert waiting(engine, "both").endswith("; its heartbeat is 2026-01-01T12:00:05")
    entity = engine.entities().get("query", "both")
    assert entity.get("waits_for") == "Bb"
    assert entity.get("waits_seconds") > 0.01
    (shown,) = engine.execute("SHOW QUERIES")
    details = dict(zip(shown["name"].to_pylist(), shown["detail"].to_pylist(), strict=True))
    assert "waits for Bb since" in details["both"]
    assert "waits" not in details["alone"]
    assert [name for name, _ in waits.waits(engine.queries, 10)] == ["both"]
    engine.push("Bb", [("2026-01-01 12:00:15", 8)])
    engine.advance("Bb", "2026-01-01 12:00:30")
    engine.run_until_idle()
    assert waiting(engine, "both") == ""


def test_queries_that_run_as_one_wait_as_one(engine: Engine) -> None:
    for constant in (1, 2, 3):
        engine.execute(
            f"CREATE QUERY shaped_{constant} AS SELECT Aa.a FROM Aa [RANGE 1 HOUR], "
            f"Bb [RANGE 1 HOUR] WHERE Aa.a = Bb.a AND Aa.a = {constant}"
        )
    assert len(list(engine.queries.groups)) == 1
    engine.push("Aa", [("2026-01-01 12:00:10", 2)])
    engine.advance("Aa", "2026-01-01 12:00:20")
    engine.run_until_idle()
    for constant in (1, 2, 3):
        said = wait_until(lambda each=constant: waiting(engine, f"shaped_{each}"))
        assert said.startswith("waits for Bb since ")
    promised = time.monotonic()
    engine.push("Bb", [("2026-01-01 12:00:12", 2)])
    engine.advance("Bb", "2026-01-01 12:00:20")
    engine.run_until_idle()
    assert waiting(engine, "shaped_2") == ""
    assert engine.latency("shaped_2").largest_seconds <= time.monotonic() - promised


def test_a_tuple_may_wait_for_its_own_stream(engine: Engine) -> None:
    engine.push("Aa", [("2026-01-01 12:00:10", 7)])
    engine.run_until_idle()
    assert wait_until(lambda: waiting(engine, "alone")).startswith("waits for Aa since ")
    engine.finish()
    assert waiting(engine, "alone") == ""


def test_waiting_for_time_is_neither_latency_nor_behind(engine: Engine) -> None:
    engine.push("Aa", [("2026-01-01 12:00:10", 7)])
    engine.push("Bb", [("2026-01-01 12:00:01", 7)])
    engine.advance("Aa", "2026-01-01 12:00:20")
    engine.run_until_idle()
    began = time.monotonic()
    wait_until(lambda: time.monotonic() > began + 0.3)
    queue = engine.entities().get("queue", "stream:aa")
    assert queue.get("backlog_rows") == 1
    assert queue.get("behind_seconds") == 0.0
    views = list(operator_views(engine.queries, engine.entities()))
    assert all(view.behind_seconds == 0 for view in views)
    assert "wait for it" not in bottleneck(views)
    promised = time.monotonic()
    engine.advance("Bb", "2026-01-01 12:00:20")
    engine.run_until_idle()
    known = engine.latency("both")
    assert known.results == 1
    assert known.largest_seconds <= time.monotonic() - promised
