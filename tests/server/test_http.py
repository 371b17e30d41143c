"""What the addresses answer."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from millpond.errors import StoreError
from millpond.server.limits import Limits
from tests.server.serving import SCRIPT, Running, running

pytestmark = pytest.mark.slow

TUPLES = [(1, 1), (2, 2), (3, 3), (4, 3)]


def results(server: Running, query: str = "big", more: str = "") -> list[dict[str, object]]:
    path = f"/api/queries/{query}/results?from=oldest&follow=false{more}"
    return [json.loads(line) for line in server.lines(path)]


def test_it_is_alive_ready_and_described(server: Running) -> None:
    assert server.http.get("/ping").text == "pong"
    assert server.http.get("/ready").json() == {"ready": True}
    paths = server.http.get("/openapi.json").json()["paths"]
    assert "/api/queries/{name}/results" in paths
    assert "Millpond" in server.http.get("/").text
    assert server.http.get("/static/app.js").status_code == 200


def test_a_query_lives(server: Running) -> None:
    http = server.http
    made = http.post("/api/queries", json={"name": "q", "text": "SELECT a + 1 AS b FROM S"})
    assert made.status_code == 201
    assert made.json()["columns"] == [{"name": "b", "type": "BIGINT", "key": False}]
    assert {each["name"] for each in http.get("/api/queries").json()} == {"counts", "big", "q"}
    changed = http.patch("/api/queries/Q", json={"weight": 2.5, "active": False}).json()
    assert (changed["weight"], changed["state"]) == (2.5, "inactive")
    assert http.patch("/api/queries/q", json={"active": True}).json()["state"] == "active"
    assert http.patch("/api/queries/q", json={"on_error": "skip"}).json()["on_error"] == "skip"
    assert http.patch("/api/queries/q", json={"on_error": "go"}).status_code == 422
    assert http.post("/api/queries/q/restart").status_code == 409
    assert "Output q" in http.get("/api/queries/q/explain").json()["plan"]
    assert http.delete("/api/queries/q").status_code == 200
    assert http.get("/api/queries/q").status_code == 404


def test_a_query_says_what_it_tolerates(server: Running) -> None:
    said = "TOLERATE (SAMPLE AT LEAST 5 PERCENT, CONFIDENCE 99 PERCENT)"
    body = {"name": "q", "text": "SELECT sum(a) AS s FROM S", "tolerates": said}
    made = server.http.post("/api/queries", json=body)
    assert made.status_code == 201
    assert made.json()["tolerates"] == said
    names = [column["name"] for column in made.json()["columns"]]
    assert names == ["s", "s_low", "s_high", "s_certain_low", "s_certain_high"]
    other = {"tolerates": "TOLERATE (CONFIDENCE 90 PERCENT)"}
    assert (
        server.http.patch("/api/queries/q", json=other).json()["tolerates"].endswith("90 PERCENT)")
    )
    wrong = {"tolerates": "EXACT; DROP QUERY q"}
    assert server.http.patch("/api/queries/q", json=wrong).status_code == 422


def test_an_error_names_its_place_in_the_text(server: Running) -> None:
    answer = server.http.post("/api/queries", json={"name": "q", "text": "SELECT b FROM S"})
    assert answer.status_code == 400
    assert (answer.json()["line"], answer.json()["column"]) == (1, 8)
    checked = server.http.post("/api/check", json={"text": "SHOW ALL;\nSELECT b FROM S"}).json()
    assert checked["problems"][0]["line"] == 2
    assert checked["problems"][0]["column"] == 8
    assert len(checked["statements"]) == 1


def test_what_is_hardly_meant_is_warned_of(server: Running) -> None:
    text = "CREATE QUERY d AS\nSELECT DISTINCT a FROM S [ROWS 2]"
    checked = server.http.post("/api/check", json={"text": text}).json()
    assert checked["ok"]
    (warning,) = checked["warnings"]
    assert (warning["line"], warning["column"]) == (2, 1)
    executed = server.http.post("/api/execute", json={"text": text}).json()
    assert executed["warnings"] == [warning]
    described = server.http.get("/api/queries/d").json()
    assert described["warnings"] == [warning["message"]]
    assert warning["message"] in server.http.get("/api/queries/d/explain").json()["plan"]


def test_parameters_come_with_a_request(server: Running) -> None:
    text = "CREATE QUERY p AS SELECT a FROM S WHERE a > :least"
    body = {"text": text, "parameters": {"least": 5}}
    assert server.http.post("/api/check", json=body).json()["ok"]
    assert server.http.post("/api/execute", json=body).status_code == 200
    assert server.http.get("/api/queries/p").json()["text"].endswith("a > 5")
    missing = server.http.post("/api/check", json={"text": text, "parameters": {"more": 5}}).json()
    assert missing["problems"][0]["message"].startswith("no value for :least")


def test_a_script_is_executed_whole_or_not_at_all(server: Running) -> None:
    text = "CREATE QUERY x AS SELECT a FROM S; CREATE QUERY y AS SELECT nothing FROM S"
    assert server.http.post("/api/execute", json={"text": text}).status_code == 400
    assert server.http.get("/api/queries/x").status_code == 404


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("\n".join(json.dumps({"t": t, "a": a}) for t, a in TUPLES), "application/x-ndjson"),
        (json.dumps([{"t": t, "a": a} for t, a in TUPLES]), "application/json"),
        (json.dumps([[t, a] for t, a in TUPLES]), "application/json"),
        ("t,a\n" + "\n".join(f"{t},{a}" for t, a in TUPLES), "text/csv"),
    ],
)
def test_tuples_come_in_every_form(server: Running, content: str, kind: str) -> None:
    path = "/api/streams/s/tuples"
    answer = server.http.post(path, content=content, headers={"content-type": kind})
    assert answer.json() == {"rows": 4, "late": 0, "repeated": False}
    found = server.wait(lambda: [r["row"] for r in results(server)] or None)
    assert found == [{"a": 2}, {"a": 3}]  # the last instant is not complete


def test_tuples_come_as_arrow(server: Running) -> None:
    sink = io.BytesIO()
    table = pa.table({"t": pa.array([1, 2, 3]), "a": pa.array([5, 6, 7], pa.int32())})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    headers = {"content-type": "application/vnd.apache.arrow.stream"}
    answer = server.http.post("/api/streams/S/tuples", content=sink.getvalue(), headers=headers)
    assert answer.json()["rows"] == 3


def test_a_bad_body_is_refused_whole_with_its_line(server: Running) -> None:
    body = '{"t": 1, "a": 1}\n{"t": 2, "a": "x"}'
    answer = server.http.post("/api/streams/S/tuples", content=body)
    assert answer.status_code == 400
    assert "row 2" in answer.json()["error"]
    assert server.service.engine.inputs.streams["s"].arrived == 0


def test_a_key_makes_a_repeated_request_count_once(server: Running) -> None:
    headers = {"idempotency-key": "k1"}
    first = server.http.post("/api/streams/S/tuples", content='{"t":1,"a":5}', headers=headers)
    again = server.http.post("/api/streams/S/tuples", content='{"t":1,"a":5}', headers=headers)
    other = server.http.post("/api/streams/S/tuples", content='{"t":1,"a":6}', headers=headers)
    assert (first.json()["repeated"], again.json()["repeated"]) == (False, True)
    assert other.status_code == 409
    assert server.service.engine.inputs.streams["s"].arrived == 1


def test_a_body_that_is_refused_does_not_use_its_key(server: Running) -> None:
    headers = {"idempotency-key": "k2"}
    path = "/api/streams/S/tuples"
    refused = server.http.post(path, content='{"t":1,"a":"x"}', headers=headers)
    corrected = server.http.post(path, content='{"t":1,"a":5}', headers=headers)
    again = server.http.post(path, content='{"t":1,"a":5}', headers=headers)
    other = server.http.post(path, content='{"t":1,"a":6}', headers=headers)
    assert refused.status_code == 400
    assert (corrected.json()["repeated"], again.json()["repeated"]) == (False, True)
    assert other.status_code == 409
    assert server.service.engine.inputs.streams["s"].arrived == 1


def test_a_store_that_fails_is_no_fault_of_the_request(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("store: /there: No space left on device; free some", 28)

    monkeypatch.setattr(server.service.engine.inputs, "accept", full)
    monkeypatch.setattr(server.service.engine.statements, "_create", full)
    pushed = server.http.post("/api/streams/S/tuples", content='{"t":1,"a":5}')
    created = server.http.post("/api/streams", json={"text": "CREATE STREAM N (a INT)"})
    assert (pushed.status_code, created.status_code) == (503, 503)
    assert "/there: No space left" in created.json()["error"]


def test_results_in_all_formats_say_the_same(server: Running) -> None:
    server.push(*TUPLES, (9, 0))
    server.wait(lambda: len(results(server)) == 3)
    path = "/api/queries/big/results?from=oldest&follow=false&format="
    values = [2, 3, 3]
    sse = server.http.get(path + "sse").text
    data = [json.loads(line[6:]) for line in sse.splitlines() if line.startswith("data: [")]
    assert [row["row"]["a"] for page in data for row in page] == values
    root = ET.fromstring(server.http.get(path + "xml").text)
    assert [int(each.find("column").text) for each in root.iter("result")] == values  # type: ignore
    arrow = pa.ipc.open_stream(server.http.get(path + "arrow").content).read_all()
    assert arrow["a"].to_pylist() == values
    assert [r["ts"] for r in results(server, more="&from=3")] == [3, 4]


def test_a_relation_is_told_as_it_is_now(server: Running) -> None:
    server.push(*TUPLES, (9, 0))
    wanted = [{"a": 1, "n": 1}, {"a": 2, "n": 1}, {"a": 3, "n": 2}]

    def content() -> list[object]:
        rows = server.http.get("/api/queries/counts/present").json()["rows"]
        return sorted((r["row"] for r in rows), key=lambda row: row["a"])

    server.wait(lambda: content() == wanted)
    lines = server.lines("/api/queries/counts/results?from=present&follow=false")
    assert sorted(json.loads(line)["row"]["n"] for line in lines) == [1, 1, 2]
    assert server.http.get("/api/queries/big/present").status_code == 400


def test_endless_results_come_and_end_with_the_query(server: Running) -> None:
    with server.http.stream("GET", "/api/queries/big/results?format=sse") as response:
        lines = response.iter_lines()
        assert next(lines) == "retry: 1000"
        server.push((1, 5), (2, 0))
        found = next(line for line in lines if line.startswith("data"))
        assert json.loads(found[6:])[0]["row"] == {"a": 5}
        server.http.delete("/api/queries/big")
        assert "event: end" in list(lines)


def test_one_time_questions(server: Running) -> None:
    server.push((1, 1), (2, 1), (3, 2))
    ask = server.http.post("/api/ask", json={"text": "SELECT a FROM S [RANGE 1] WHERE a > 0"})
    assert sorted(row["a"] for row in ask.json()["rows"]) == [1, 2]
    assert ask.json()["at"] == 3
    dstream = server.http.post("/api/ask", json={"text": "DSTREAM(SELECT a FROM S [RANGE 1])"})
    assert dstream.status_code == 400


def test_what_is_retained_no_more_is_refused_with_the_reason(server: Running) -> None:
    server.http.delete("/api/queries/counts")
    server.push(*((t, 1) for t in range(100)))
    queue = server.service.engine.inputs.streams["s"].queue
    server.wait(lambda: queue.freed_until > 50 or server.push((queue.heartbeat + 2, 1)))
    answer = server.http.post("/api/ask", json={"text": "SELECT COUNT(*) AS n FROM S"})
    assert answer.status_code == 400
    assert "not retained" in answer.json()["error"]


def test_explain_says_what_a_text_would_run(server: Running) -> None:
    plans = server.http.post("/api/explain", json={"text": "SELECT a FROM S WHERE a > 1"}).json()
    assert "Output" in plans["plans"][0]["plan"]


def test_a_preview_is_forgotten(server: Running) -> None:
    body = {"text": "SELECT a * 2 AS b FROM S", "seconds": 3}
    with server.http.stream("POST", "/api/preview", json=body) as response:
        lines = response.iter_lines()
        assert json.loads(next(lines))["columns"] == ["b"]
        server.push((1, 4), (2, 0))
        assert json.loads(next(lines))["row"] == {"b": 8}
    server.wait(lambda: len(server.http.get("/api/queries").json()) == 2)


def test_knobs_turn_and_refuse(server: Running) -> None:
    http = server.http
    put = http.put("/api/entities/query/big/weight", json={"value": 3})
    assert put.json() == {"value": 3.0}
    assert http.put("/api/entities/query/big/weight", json={"value": -3}).status_code == 400
    assert http.put("/api/entities/query/big/results", json={"value": 3}).status_code == 400
    http.put("/api/entities/scheduler/scheduler/strategy", json={"value": "chain"})
    assert http.get("/api/status").json()["strategy"] == "chain"
    assert http.get("/api/history").json()["marks"][0]["what"] == "strategy = chain"
    table = http.get("/api/entities/query/big").json()["attributes"]
    assert next(each for each in table if each["name"] == "weight")["knob"] is True
    assert http.get("/api/entities/tree/big").status_code == 404


def test_the_tuples_that_pass_a_queue_are_seen(server: Running) -> None:
    with server.http.stream("GET", "/api/queues/stream:s/tuples?seconds=3") as response:
        lines = response.iter_lines()
        next(lines)
        server.push((1, 7), (2, 8), (3, 0))
        seen = next(found for line in lines if (found := json.loads(line))["passed"])
    assert [each["row"]["a"] for each in seen["tuples"]] == [7, 8]


def test_metrics_are_those_of_the_control_tables(server: Running) -> None:
    text = server.http.get("/metrics").text
    assert 'millpond_query_weight{query="big"} 1.0' in text
    assert "millpond_engine_backlog_bytes" in text


def test_metrics_tell_of_the_most_active_and_count_the_others() -> None:
    idle = "".join(
        f"CREATE QUERY idle{n} AS SELECT a FROM S WHERE a > 100 + {n};" for n in range(5)
    )
    with running(idle_first(idle), limits=Limits(metrics_entities=2)) as server:
        server.push((1, 5), (2, 6), (3, 7), (4, 1))
        for active in ("big", "counts"):
            server.wait(lambda name=active: server.service.engine.result_count(name) >= 2)
        text = server.http.get("/metrics").text
        told = re.findall(r'^millpond_query_weight{query="(\w+)"}', text, re.MULTILINE)
        assert sorted(told) == ["big", "counts"]
        assert 'millpond_server_entities_left_out{kind="query"} 5.0' in text
        assert 'millpond_server_entities_left_out{kind="stream"} 0.0' in text


def idle_first(idle: str) -> str:
    """The script with other queries before its own."""
    return SCRIPT.replace("CREATE QUERY counts", idle + "CREATE QUERY counts")


def test_a_failure_is_shown_and_restarted(spark: SparkSession) -> None:
    with running(spark=spark) as server:
        bad = {"name": "bad", "text": "SELECT 9223372036854775807 + a AS x FROM S"}
        server.http.post("/api/queries", json=bad)
        server.push((1, 1), (2, 1))
        failures = server.wait(lambda: server.http.get("/api/failures").json())
        assert failures[0]["query"] == "bad"
        assert failures[0]["rows"]
        assert server.http.get("/api/queries/bad").json()["state"] == "failed"
        assert server.http.post("/api/queries/bad/restart").status_code == 200
        assert server.http.get("/api/queries/bad").json()["state"] == "active"


def test_late_tuples_are_listed(server: Running) -> None:
    server.push((10, 1), (5, 2))
    rows = server.wait(lambda: server.http.get("/api/streams/S/late").json()["rows"])
    assert rows == [{"t": 5, "a": 2}]


def test_violating_tuples_are_listed(server: Running) -> None:
    server.service.engine.execute("ALTER STREAM S ADD ORDERED BY (a) WITHIN 0 ROWS")
    server.push((10, 2), (11, 1))
    rows = server.wait(lambda: server.http.get("/api/streams/S/violating").json()["rows"])
    (row,) = rows
    assert (row["t"], row["a"], row["violates"]) == (11, 1, "ordered_by_a")
    assert row["missed_by"]


def test_plans_are_drawn(server: Running) -> None:
    server.push((1, 1), (2, 1))
    graph = server.wait(lambda: server.http.get("/api/plan").json())
    assert {node["kind"] for node in graph["nodes"]} == {"input", "operator"}
    assert server.http.get("/api/plan?format=dot").text.startswith("digraph")
    ET.fromstring(server.http.get("/api/plan?format=svg").text)
    one = server.http.get("/api/plan?query=big").json()
    assert len(one["nodes"]) < len(graph["nodes"])
    chart = server.http.get("/api/queries/counts/chart").json()["charts"][0]
    assert chart["points"][-1][1] == 0.0


def test_the_dashboard_asks_for_metrics_that_exist(server: Running) -> None:
    server.push((1, 5), (2, 1))
    wanted = 'millpond_query_latency_p95_seconds{query="big"}'
    server.wait(lambda: wanted in server.http.get("/metrics").text)
    told = set(re.findall(r"^(millpond_\w+)", server.http.get("/metrics").text, re.MULTILINE))
    dashboard = json.loads((Path(__file__).parents[2] / "docs/grafana_dashboard.json").read_text())
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"millpond_\w+", target["expr"])
    }
    assert asked <= told
