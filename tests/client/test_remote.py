"""A server as if it were an engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import millpond
from millpond.client import RemoteEngine
from millpond.errors import CqlError, StateError
from tests.server.serving import Running, running

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[Running]:
    with running() as made:
        yield made


@pytest.fixture
def engine(server: Running) -> Iterator[RemoteEngine]:
    with millpond.connect(server.url) as engine:
        yield engine


def test_the_example_of_the_guide_works(server: Running) -> None:
    """Against a server with nothing declared yet, as the guide's reader has it."""
    for name in [*server.service.engine.catalog.entries][::-1]:
        server.service.engine.drop(name)
    guide = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    exec(example.replace("http://127.0.0.1:8080", server.url), {})
    with millpond.connect(server.url) as engine:
        server.wait(lambda: engine.result_count("big") == 1)
        assert engine.entities().get("query", "big").get("weight") == 2


def test_rows_go_in_and_results_come_out(server: Running, engine: RemoteEngine) -> None:
    engine.push("S", [{"t": 1, "a": 5}])
    engine.push("S", pa.table({"t": [2], "a": pa.array([6], pa.int32())}))
    engine.push("S", pd.DataFrame({"t": [3], "a": [0]}))
    server.wait(lambda: engine.result_count("big") == 2)
    assert engine.results("big")["a"].to_pylist() == [5, 6]
    assert [row["a"] for row in engine.results("big", "rows")] == [5, 6]
    assert list(engine.results("big", "pandas")["a"]) == [5, 6]
    assert engine.latency("big").results == 2
    assert sorted(row["row"]["a"] for row in engine.present("counts")) == [5, 6]
    assert sorted(engine.ask("SELECT a FROM S [RANGE 1]")["a"].to_pylist()) == [0, 6]
    with pytest.raises(StateError, match="no form"):
        engine.results("big", "spark")


def test_a_subscriber_is_called(server: Running, engine: RemoteEngine) -> None:
    seen: list[int] = []
    engine.subscribe("big", lambda table: seen.extend(table["a"].to_pylist()))
    engine.push("S", [(1, 5), (2, 6), (3, 0)], key="once")
    engine.push("S", [(1, 5), (2, 6), (3, 0)], key="once")
    server.wait(lambda: seen == [5, 6])
    with pytest.raises(StateError, match="no query"):
        engine.subscribe("nothing", print)


def test_statements_and_their_errors(engine: RemoteEngine) -> None:
    assert engine.execute("CREATE QUERY q AS SELECT a FROM S") == []
    assert "q" in engine.show("queries")["name"].to_pylist()
    assert "Output q" in str(engine.explain("q"))
    assert "Output q" in str(engine.execute("EXPLAIN PHYSICAL q")[0])
    with pytest.raises(CqlError) as raised:
        engine.execute("SELECT b\nFROM S")
    assert raised.value.position is not None
    assert (raised.value.position.line, raised.value.position.column) == (1, 8)
    assert engine.check("SELECT b FROM S")[0]["column"] == 8
    engine.drop("q")
    with pytest.raises(StateError, match="nothing is called"):
        engine.drop("q")
    with pytest.raises(StateError, match="has not failed"):
        engine.restart("big")
    assert engine.failures() == []
    assert engine.left_out("big").num_rows == 0


def test_relations_heartbeats_and_late_tuples(server: Running, engine: RemoteEngine) -> None:
    engine.push("R", [{"a": 1, "name": "one"}])
    assert engine.ask("SELECT name FROM R")["name"].to_pylist() == ["one"]
    engine.push("S", [(10, 7)])
    engine.advance("S", 20)
    server.wait(lambda: engine.result_count("big") == 1)
    engine.push("S", [(15, 8)])
    assert engine.late("S")["a"].to_pylist() == [8]
    with pytest.raises(StateError, match="no relation"):
        engine.push("nothing", [(1,)])


def test_punctuations_from_afar(engine: RemoteEngine) -> None:
    engine.punctuate("S", "a IN (:one, 3)", {"one": 1}, on_violation="count")
    engine.push("S", [(10, 3), (11, 4)])
    assert engine.violating("S").select(["a", "violates"]).to_pylist() == [
        {"a": 3, "violates": "punctuation (a)"}
    ]
    (shown,) = engine.show("punctuations").to_pylist()
    assert (shown["nothing follows with"], shown["violations"]) == ("a IN (1, 3)", 1)
    with pytest.raises(StateError, match="no stream"):
        engine.punctuate("nothing", "a = 1")
    with pytest.raises(CqlError, match="no column"):
        engine.punctuate("S", "b = 1")


def test_control_tables_from_afar(engine: RemoteEngine) -> None:
    big = engine.entities().get("query", "big")
    big.set("weight", 2)
    assert big.get("weight") == 2
    assert big.values()["state"] == "active"
    watched = big.watch("weight", seconds=5)
    assert next(watched) == 2
    assert {each.kind for each in engine.entities()} >= {"query", "stream", "scheduler"}
    with pytest.raises(StateError):
        big.set("results", 3)


def test_plans_from_afar(engine: RemoteEngine) -> None:
    document = engine.plan("xml")
    engine.drop("big")
    engine.load_plan(document)
    assert {each["name"] for each in engine.queries()} == {"big", "counts"}
    assert engine.plan()["operators"] >= 0


def test_tail_tells_what_there_is(server: Running, engine: RemoteEngine) -> None:
    engine.push("S", [(1, 5), (2, 0)])
    server.wait(lambda: engine.result_count("big") == 1)
    assert list(engine.tail("big", "oldest", follow=False)) == [
        {"ts": 1, "weight": 1, "row": {"a": 5}}
    ]


def test_no_server_is_said_so() -> None:
    with (
        millpond.connect("http://127.0.0.1:9") as engine,
        pytest.raises(StateError, match="no answer"),
    ):
        engine.queries()
