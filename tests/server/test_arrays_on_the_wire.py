"""ARRAYs over HTTP: rows as JSON, CSV and Arrow, contents, exports and one-time answers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet
import pytest

from millpond import connect
from tests.server.serving import Running, running

SCRIPT = """
CREATE STREAM S (t BIGINT, a ARRAY<INT>, s STRING[]) TIMESTAMP BY t;
CREATE RELATION R (a ARRAY<INT> PRIMARY KEY, n INT);
CREATE QUERY counts AS SELECT s, count(*) AS n, array_agg(t) AS times FROM S [RANGE 1000000]
  GROUP BY s;
CREATE QUERY all_of AS SELECT a, s FROM S;
"""
ROWS = [(1, [1, None], ["x"]), (2, [], ["x"]), (3, None, ["y", "z"])]


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(SCRIPT) as made:
        yield made


"""Filled by the first test."""


@pytest.fixture(scope="module")
def filled(server: Running) -> Running:
    path = "/api/streams/S/tuples"
    first = "\n".join(json.dumps(dict(zip("tas", row, strict=True))) for row in ROWS[:1])
    answers = [server.http.post(path, content=first.encode())]
    csv = 't,a,s\n2,"[]","[""x""]"\n'
    answers.append(server.http.post(path, content=csv, headers={"content-type": "text/csv"}))
    table = pa.table({"t": [3], "a": pa.array([None], pa.list_(pa.int32())), "s": [["y", "z"]]})
    client = connect(server.url)
    client.push("S", table)
    client.push("S", [{"t": 9, "a": (7,), "s": []}])
    assert [each.status_code for each in answers] == [200, 200]
    server.http.post("/api/execute", json={"text": "INSERT INTO R VALUES (ARRAY[2, 1], 5)"})
    server.wait(lambda: server.service.engine.result_count("all_of") == 3)
    server.wait(lambda: server.service.engine.result_count("counts") == 4)
    return server


def test_contents_and_exports_have_lists(filled: Running) -> None:
    rows = filled.http.get("/api/queries/counts/present?sort=s&descending=true").json()["rows"]
    assert [each["row"] for each in rows[:2]] == [
        {"s": ["y", "z"], "n": 1, "times": [3]},
        {"s": ["x"], "n": 2, "times": [1, 2]},
    ]
    found = filled.http.get('/api/queries/counts/present?find="z"').json()
    assert (found["found"], found["rows"][0]["row"]["s"]) == (1, ["y", "z"])
    parquet = filled.http.get("/api/queries/all_of/export?format=parquet").content
    table = pyarrow.parquet.read_table(io.BytesIO(parquet))
    assert table.column("a").to_pylist() == [[1, None], [], None]
    csv = filled.http.get("/api/queries/all_of/export?format=csv").text
    assert '"[1,null]","[""x""]"' in csv


def test_inputs_are_looked_into(filled: Running) -> None:
    (last,) = filled.http.get("/api/streams/S/last?limit=1").json()["rows"]
    assert last["row"] == {"t": 9, "a": [7], "s": []}
    found = filled.http.get("/api/relations/R/content").json()
    assert [each["row"] for each in found["rows"]] == [{"a": [2, 1], "n": 5}]


def test_a_question_is_answered_once(filled: Running) -> None:
    text = "SELECT S.a, R.a[1] AS first FROM S [RANGE 1000000], R WHERE S.s = ARRAY['x']"
    found = filled.http.post("/api/ask", json={"text": text}).json()
    assert [each["first"] for each in found["rows"]] == [2, 2]
    assert sorted(str(each["a"]) for each in found["rows"]) == ["[1, None]", "[]"]


@pytest.mark.parametrize("form", ["ndjson", "arrow"])
def test_results_are_streamed_as_lists(filled: Running, form: str) -> None:
    path = f"/api/queries/all_of/results?from=oldest&follow=false&format={form}"
    content = filled.http.get(path).content
    if form == "arrow":
        assert pa.ipc.open_stream(content).read_all()["a"].to_pylist()[0] == [1, None]
    else:
        assert json.loads(content.splitlines()[0])["row"] == {"a": [1, None], "s": ["x"]}
