"""Inputs are looked into, results become files, queries are edited, history goes back."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet
import pytest

from millpond import Engine
from millpond.server import history
from millpond.server.history import MERGED, SAMPLES, History, Level, thinned
from tests.server.serving import Running, running

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE STREAM M (at TIMESTAMP, a INT) TIMESTAMP BY at DELAY 1 SECOND;
CREATE RELATION R (a INT PRIMARY KEY, name STRING);
CREATE VIEW v AS SELECT a FROM S WHERE a > 1;
CREATE QUERY counts AS SELECT a, COUNT(*) AS n FROM S [RANGE 1000000] GROUP BY a;
CREATE QUERY of_view AS SELECT a FROM v;
CREATE QUERY still INACTIVE AS SELECT S.a FROM S [ROWS 1], R WHERE S.a = R.a;
CREATE QUERY moments AS SELECT a FROM M;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running(SCRIPT) as made:
        engine = made.service.engine
        engine.push("R", [(1, "one"), (2, "two"), (3, "three")])
        engine.push("S", [(t, t % 4) for t in range(1, 3000)])
        engine.push("S", [(3000, 8), (3001, 9)])
        engine.push("M", [("2026-01-01T00:00:00", 1), ("2026-01-01T00:00:10", 2)])
        made.wait(lambda: engine.result_count("moments") and engine.result_count("of_view") > 1400)
        yield made


def test_the_last_tuples_of_a_stream_are_known_when_its_pages_are_gone(server: Running) -> None:
    rows = server.http.get("/api/streams/S/last?limit=4").json()["rows"]
    assert [each["row"]["a"] for each in rows] == [9, 8, 3, 2]
    assert rows[0]["ts"] == "3001"
    (last,) = server.http.get("/api/streams/M/last?limit=1").json()["rows"]
    assert last == {
        "ts": "2026-01-01T00:00:10",
        "row": {"at": "2026-01-01T00:00:10", "a": 2},
    }


def test_a_heartbeat_of_numbers_is_a_number(server: Running) -> None:
    assert server.http.get("/api/streams/S").json()["promised"] == "3000"


def test_the_content_of_a_relation_is_searched_and_ordered(server: Running) -> None:
    wanted = {"find": "t", "sort": "name", "descending": True}
    found = server.http.get("/api/relations/R/content", params=wanted).json()
    assert [each["row"]["name"] for each in found["rows"]] == ["two", "three"]
    assert (found["total"], found["found"]) == (3, 2)
    refused = server.http.get("/api/relations/R/content?sort=nam")
    assert refused.json()["error"].startswith('no column "nam"; did you mean "name"?')


def test_readers_are_views_and_queries_that_run_or_not(server: Running) -> None:
    def readers(name: str) -> list[str]:
        found = server.http.get(f"/api/inputs/{name}/readers").json()
        return [f"{each['kind']} {each['name']}" for each in found]

    assert readers("S") == ["view v", "query counts", "query of_view", "query still"]
    assert readers("R") == ["query still"]
    assert server.http.get("/api/inputs/counts/readers").status_code == 404


def test_inputs_are_listed_in_pages(server: Running) -> None:
    listed = server.http.get("/api/inputs?sort=name&limit=2")
    assert [each["name"] for each in listed.json()] == ["M", "R"]
    assert listed.headers["X-Total-Count"] == "3"
    assert [each["name"] for each in server.http.get("/api/inputs?find=NAME").json()] == ["R"]


def test_keys_of_groups_are_told_from_what_is_counted(server: Running) -> None:
    columns = server.http.get("/api/queries/counts").json()["columns"]
    assert [(each["name"], each["key"]) for each in columns] == [("a", True), ("n", False)]
    columns = server.http.get("/api/queries/of_view").json()["columns"]
    assert [(each["name"], each["key"]) for each in columns] == [("a", False)]


def test_queries_are_found_and_ordered(server: Running) -> None:
    def names(wanted: str) -> list[str]:
        return [each["name"] for each in server.http.get(f"/api/queries?{wanted}").json()]

    assert names("find=FROM+v") == ["of_view"]
    assert names("sort=name&descending=true&limit=2") == ["still", "of_view"]
    assert names("state=inactive") == ["still"]
    assert names("sort=results&descending=true&limit=1") == ["counts"]


def test_results_become_files(server: Running) -> None:
    wanted = {"format": "parquet", "sort": "n", "descending": True}
    data = server.http.get("/api/queries/counts/export", params=wanted).content
    table = pyarrow.parquet.read_table(io.BytesIO(data))
    assert table.column_names == ["a", "n"]
    assert table["n"].to_pylist() == sorted(table["n"].to_pylist(), reverse=True)
    data = server.http.get("/api/queries/moments/export?format=arrow").content
    with pa.ipc.open_file(data) as reader:
        moments = reader.read_all()
    assert moments.schema.field("ts").type == pa.timestamp("us", "UTC")
    answer = server.http.get("/api/queries/of_view/export?find=9")
    assert answer.text == '"ts","a"\n3001,9\n' or answer.text == '"ts","a"\n'
    assert answer.headers["content-disposition"] == 'attachment; filename="of_view.csv"'


def test_a_query_keeps_what_its_text_does_not_say_when_it_is_replaced(server: Running) -> None:
    engine = server.service.engine
    engine.execute("CREATE QUERY e WEIGHT 2.5 INACTIVE ON ERROR SKIP AS SELECT a FROM S [ROWS 3]")
    other = {"text": "SELECT a + 1 AS b\nFROM S [ROWS 3]"}
    told = server.http.post("/api/queries/e/difference", json=other).json()
    assert told["how"] == "replaced"
    assert told["difference"] == [
        "-SELECT a FROM S [ROWS 3]",
        "+SELECT a + 1 AS b",
        "+FROM S [ROWS 3]",
    ]
    assert server.http.put("/api/queries/e", json=other).status_code == 409
    assert engine.query_entry("e").text == "SELECT a FROM S [ROWS 3]"
    assert server.http.put("/api/queries/e", json=other | {"replace": True}).status_code == 200
    entry = engine.query_entry("e")
    assert (entry.text, entry.weight, entry.active, entry.on_error) == (
        other["text"],
        2.5,
        False,
        "skip",
    )
    wrong = {"text": "SELECT a\nFROM nowhere", "replace": True}
    fault = server.http.put("/api/queries/e", json=wrong).json()
    assert (fault["line"], fault["column"]) == (2, 6)
    for text in ("SET strategy = 'chain'", "SELECT FROM [", "DROP QUERY e"):
        assert server.http.put("/api/queries/e", json={"text": text}).status_code == 400
    assert engine.query_entry("e").text == other["text"]
    engine.execute("DROP QUERY e")


def test_another_length_of_windows_alters_a_query(server: Running) -> None:
    engine = server.service.engine
    text = "SELECT x.a FROM S [RANGE 5] AS x, S [ROWS 7] AS y WHERE x.a = y.a"
    engine.execute(f"CREATE QUERY w INACTIVE AS {text}")
    longer = {"text": text.replace("5", "50").replace("7", "70")}
    told = server.http.put("/api/queries/w", json=longer).json()
    assert told["how"] == "altered"
    assert told["statements"] == [
        'ALTER QUERY "w" SET WINDOW OF "x" = RANGE 50',
        'ALTER QUERY "w" SET WINDOW OF "y" = ROWS 70',
    ]
    assert engine.query_entry("w").text == longer["text"]
    kind = {"text": longer["text"].replace("ROWS 70", "RANGE 70")}
    assert server.http.post("/api/queries/w/difference", json=kind).json()["how"] == "replaced"
    spaced = {"text": longer["text"].replace(" WHERE", "\n WHERE")}
    assert server.http.post("/api/queries/w/difference", json=spaced).json()["how"] == "same"
    engine.execute("DROP QUERY w")


def test_a_preview_is_not_listed_but_what_is_called_so_is(server: Running) -> None:
    server.service.engine.execute("CREATE QUERY preview_mine AS SELECT a FROM S")
    asked = {"text": "SELECT a FROM S", "seconds": 1}
    with server.http.stream("POST", "/api/preview", json=asked) as preview:
        next(preview.iter_lines())
        listed = [each["name"] for each in server.http.get("/api/queries?find=preview").json()]
    assert listed == ["preview_mine"]
    server.service.engine.execute("DROP QUERY preview_mine")


def test_history_reaches_back_to_the_start_with_its_peaks() -> None:
    levels = [Level() for _ in range(3)]
    seconds = 3 * SAMPLES
    for second in range(seconds):
        sample = {"time": float(second), "backlog_bytes": 10**6 * (second == 7), "load": 1.0}
        for level in levels:
            merged = level.add(sample)
            if merged is None:
                break
            sample = merged
    assert not levels[0].reaches(0.0)
    assert levels[1].reaches(0.0)
    whole = thinned(levels[1].all(), 100)
    assert len(whole) <= 100
    assert whole[-1]["time"] == seconds - 1
    assert (whole[0]["backlog_bytes"], whole[0]["load"]) == (10**6, 1.0)
    assert whole[1]["backlog_bytes"] == 0
    assert len(levels[1].all()) == seconds // MERGED


def test_the_history_has_no_hole_where_coarse_samples_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SAMPLES", 20)
    newest, peak = 29_990, 25_000  # the last one of ten thousand seconds is of 20,000
    with Engine() as engine:
        looked = History(engine)
        for second in range(newest):
            waits = 10**6 * (second == peak)
            looked._keep({"time": float(second), "backlog_bytes": waits})
        samples = looked.since(-1.0, points := 2_000)["samples"]
    assert len(samples) < points
    times = [each["time"] for each in samples]
    assert times == sorted(set(times))
    assert times[-1] == newest - 1
    (found,) = [each["time"] for each in samples if each["backlog_bytes"]]
    assert peak <= found < peak + 1_000
