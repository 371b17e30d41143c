"""What engines let go of when queries are altered or dropped: results and states."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.errors import CqlError, StateError
from millpond.storage.state_cache import StateCache
from tests.crashing import die

STREAM = "CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts;"
ALERTS = "".join(f"CREATE QUERY q{i} AS SELECT ts, v FROM S WHERE v > {i};" for i in range(2))
WINDOWS = "".join(
    f"CREATE QUERY q{i} AS SELECT ISTREAM k, v FROM S [RANGE 2] WHERE v > {i};" for i in range(2)
)


def page(engine, ts):
    engine.push("S", [(ts, i % 3, 10 * ts + i) for i in range(8)])
    engine.run_until_idle()


def kept(engine, query):
    return {row["ts"] for row in engine.results(query).to_pylist()}


@pytest.mark.parametrize("sharing", ["auto", "on", "off"])
@pytest.mark.parametrize(
    ("queries", "alter"),
    [
        (ALERTS, "ALTER QUERY q0 DEACTIVATE; ALTER QUERY q0 ACTIVATE"),
        (WINDOWS, "ALTER QUERY q0 SET WINDOW OF S = RANGE {}"),
    ],
)
def test_results_of_before_go_as_others_come_though_a_query_begins_anew(sharing, queries, alter):
    with Engine({"sharing": sharing, "keep_results": "3 rows"}) as engine:
        engine.execute(STREAM + queries)
        for ts in range(20):
            page(engine, ts)
            engine.execute(alter.format(ts % 3 + 1))
            assert len(kept(engine, "q0")) <= 2
        for ts in range(20, 30):
            page(engine, ts)
        assert min(kept(engine, "q0")) >= 26
        assert engine.result_count("q0") > 100


def test_they_go_after_a_restart_too(tmp_path):
    with Engine({"sharing": "on", "keep_results": "3 rows"}, store=tmp_path) as engine:
        engine.execute(STREAM + ALERTS)
        for ts in range(3):
            page(engine, ts)
        engine.execute("ALTER QUERY q0 DEACTIVATE; ALTER QUERY q0 ACTIVATE")
        before = engine.results("q0").to_pylist()
        die(engine)
    with Engine({"sharing": "on", "keep_results": "3 rows"}, store=tmp_path) as engine:
        assert engine.results("q0").to_pylist() == before
        for ts in range(3, 9):
            page(engine, ts)
        assert min(kept(engine, "q0")) >= 5


def test_states_of_dropped_queries_are_not_kept(monkeypatch):
    caches = []
    made = StateCache.__init__
    monkeypatch.setattr(
        StateCache, "__init__", lambda self, limit: made(self, limit) or caches.append(self)
    )
    with Engine() as engine:
        engine.execute(STREAM + "CREATE QUERY other AS SELECT ts FROM S")
        for ts in range(0, 10, 2):
            engine.execute("CREATE QUERY q AS SELECT k, count(*) AS n FROM S [RANGE 9] GROUP BY k")
            page(engine, ts)
            page(engine, ts + 1)
            assert any(cache._waiting or cache._held for cache in caches)
            engine.drop("q")
            assert not any(cache._waiting or cache._held for cache in caches)
            assert not any(cache._waiting_bytes or cache._held_bytes for cache in caches)


def test_errors_name_not_all_of_many_queries():
    with Engine() as engine:
        text = "".join(f"CREATE QUERY q{i} AS SELECT ts FROM S WHERE k = {i};" for i in range(100))
        engine.execute(STREAM + text)
        for kind, call in (
            (CqlError, lambda: engine.execute("DROP QUERY zz")),
            (CqlError, lambda: engine.execute("DROP STREAM S")),
            (StateError, lambda: engine.results("zz")),
            (StateError, lambda: engine.drop("zz")),
        ):
            with pytest.raises(kind, match=r"q0, .*, …") as raised:
                call()
            assert len(str(raised.value)) < 300
