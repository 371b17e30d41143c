"""Tables of Delta Lake: read, followed and written; nothing lost, nothing twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.catalog import Connector
from millpond.connectors import lake_source
from millpond.connectors.arrow import arrow_schema
from millpond.connectors.delta import changes, sink, source
from millpond.connectors.delta_log import DeltaLog
from millpond.connectors.delta_table import DeltaPlace
from millpond.connectors.registry import check_connector
from millpond.connectors.sinks import Results
from millpond.connectors.sources import Declaration, Source
from millpond.errors import InputError, MillpondError, OutputError
from millpond.settings import Settings
from millpond.testing import check_sink, check_source
from tests.connectors.declarations import schema, tuples
from tests.connectors.reading import Reading

deltalake = pytest.importorskip("deltalake", reason="pip install 'millpond[delta]' brings it")

COLUMNS = "id BIGINT, name STRING"


@pytest.fixture(autouse=True)
def _looked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_source, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(lake_source, "PASS_SECONDS", 0.05)


def append(table: Path, ids: list[int], **options: Any) -> None:
    given = pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{each}" for each in ids]})
    deltalake.write_deltalake(table, given, mode="append", **options)


def declaration(columns: str = COLUMNS, **options: Any) -> Declaration:
    return Declaration("S", schema(columns), settings=Settings(page_rows=4), **options)


def reading(table: Path, columns: str = COLUMNS, **options: Any) -> Reading:
    return Reading(source(declaration(columns), str(table), **options))


def content(table: Path) -> Counter[Any]:
    return Counter(tuples(deltalake.DeltaTable(table).to_pyarrow_table().select(["id", "name"])))


def log_of(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020}.json"


def rewrite(table: Path, version: int, change: Any) -> None:
    """Has the log say something else, as another writer would have said it."""
    actions = [json.loads(line) for line in log_of(table, version).read_text().splitlines()]
    for action in actions:
        change(action)
    log_of(table, version).write_text("".join(f"{json.dumps(each)}\n" for each in actions))


# -- reading ---------------------------------------------------------------------------------


def test_what_is_there_and_what_comes(tmp_path: Path) -> None:
    append(tmp_path, [1, 2])
    append(tmp_path, [3])
    found = reading(tmp_path).until_there(3)
    append(tmp_path, list(range(4, 14)))
    assert [row[0] for row in found.until_there(13).rows] == list(range(1, 14))
    found.end()


def test_only_what_comes_and_only_what_is_there(tmp_path: Path) -> None:
    append(tmp_path, [1, 2])
    later = reading(tmp_path, snapshot=False).until(lambda each: each.taken.position)
    append(tmp_path, [3])
    assert later.until_there(1).rows == [(3, "n3")]
    later.end()
    whole = source(declaration(), str(tmp_path), follow=False)
    assert whole.ends
    assert [row for page in whole.pages() for row in tuples(page.rows)] == [
        (1, "n1"),
        (2, "n2"),
        (3, "n3"),
    ]


@pytest.mark.parametrize("partition", [None, ["name"]])
def test_conformance(tmp_path: Path, partition: list[str] | None) -> None:
    rng = random.Random(3)
    for _ in range(6):
        append(tmp_path, rng.sample(range(1000), rng.randint(1, 9)), partition_by=partition)
    count = content(tmp_path).total()

    def opened(declared: Declaration) -> Source:
        return source(declared, str(tmp_path))

    assert Counter(check_source(opened, declaration(), count)) == content(tmp_path)


def test_bad_rows_are_put_aside_in_their_places(tmp_path: Path) -> None:
    names = ["1", "x", "3", None, "5", "6", "y"]
    deltalake.write_deltalake(tmp_path, pa.table({"id": names}))
    declared = Declaration(
        "S", schema("id TIMESTAMP"), 0, Settings(page_rows=3), skips_bad_rows=True
    )
    times = ["2026-01-01", "no", "2026-01-02", None, "2026-01-03"]
    deltalake.write_deltalake(tmp_path, pa.table({"id": times}), mode="overwrite")
    good = check_source(lambda each: source(each, str(tmp_path)), declared, 5)
    assert [each[0].day for each in good] == [1, 2, 3]
    found = Reading(source(declared, str(tmp_path))).until_there(3, 2)
    assert [each.offset.rsplit(", ", 1)[1] for each in found.bad] == ["row 2", "row 4"]
    found.end()


TYPED = {
    "b": (pa.array([True, None]), "BOOLEAN"),
    "i": (pa.array([1, None], pa.int32()), "INT"),
    "l": (pa.array([2**40, None], pa.int64()), "BIGINT"),
    "f": (pa.array([0.5, None]), "DOUBLE"),
    "s": (pa.array(["a b/ü=", None]), "STRING"),
    "y": (pa.array([b"\x00\xff", None], pa.binary()), "BINARY"),
    "d": (pa.array([date(2026, 1, 2), None]), "DATE"),
    "t": (pa.array([datetime(2026, 1, 2, 3, 4, 5, 6, UTC), None], pa.timestamp("us", "UTC")),
          "TIMESTAMP"),
    "m": (pa.array([Decimal("1"), None], pa.decimal128(9, 0)), "DECIMAL(9)"),
}  # fmt: skip


@pytest.mark.parametrize("partition", [None, "s", "i", "l", "d", "t", "b", "m"])
@pytest.mark.parametrize("appends", [0, 1])
def test_types_also_as_partitions(tmp_path: Path, partition: str | None, appends: int) -> None:
    """By what the table says as a whole, and by what a version says of itself."""
    given = pa.table({name: column for name, (column, _) in TYPED.items()})
    columns = ", ".join(f"{name} {kind}" for name, (_, kind) in TYPED.items())
    deltalake.write_deltalake(tmp_path, given.slice(0, 0), partition_by=partition)
    found = reading(tmp_path, columns).until(lambda each: each.taken.position) if appends else None
    deltalake.write_deltalake(tmp_path, given, mode="append", partition_by=partition)
    found = (found or reading(tmp_path, columns)).until_there(2)
    plain = [value.replace(tzinfo=None) if isinstance(value, datetime) else value
             for value in (column[0].as_py() for column in given.columns)]  # fmt: skip
    assert sorted(found.rows, key=str) == sorted([tuple(plain), (None,) * 9], key=str)
    found.end()


def test_bytes_that_part_a_table_are_refused(tmp_path: Path) -> None:
    given = pa.table({"id": [1], "y": [b"\x00\xff"]})
    deltalake.write_deltalake(tmp_path, given, partition_by="y")
    with pytest.raises(InputError, match="column y parts the table, and is BINARY"):
        reading(tmp_path, "id BIGINT, y BINARY").until_there(1)
    found = reading(tmp_path, "id BIGINT").until_there(1)
    assert found.rows == [(1,)]
    found.end()


def test_columns_that_are_added_are_null_before(tmp_path: Path) -> None:
    append(tmp_path, [1])
    found = reading(tmp_path, "name STRING, id BIGINT").until_there(1)
    more = pa.table({"id": [2], "name": ["n2"], "extra": [True]})
    deltalake.write_deltalake(tmp_path, more, mode="append", schema_mode="merge")
    assert found.until_there(2).rows == [("n1", 1), ("n2", 2)]
    found.end()
    anew = reading(tmp_path, "extra BOOLEAN, id BIGINT").until_there(2)
    assert anew.rows == [(None, 1), (True, 2)]
    anew.end()


@pytest.mark.parametrize("feed", ["false", "true"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_relation_follows_whatever_is_done(tmp_path: Path, feed: str, seed: int) -> None:
    rng = random.Random(seed)
    append(
        tmp_path,
        list(range(20)),
        configuration={"delta.enableChangeDataFeed": feed},
        partition_by=["name"] if seed == 2 else None,
    )
    declared = declaration()
    found = Reading(changes(declared, str(tmp_path)))
    had = Counter[Any]()
    for step in range(12):
        _change(tmp_path, rng, step)
        if rng.random() < 0.4:  # goes on where it was, also in the middle of a version
            taken, had = found.end(), found.content(had)
            found = Reading(changes(declared, str(tmp_path)), taken)
        found.until(lambda each: each.content(had) == content(tmp_path))  # noqa: B023
    times = [row[0] for row in found.rows]
    assert times == sorted(times)
    found.end()


def _change(path: Path, rng: random.Random, step: int) -> None:
    table, key = deltalake.DeltaTable(path), rng.randrange(25)
    kind = rng.randrange(6)
    if kind == 0:
        append(path, [100 + step, 200 + step])
    elif kind == 1:
        table.delete(f"id % 7 = {key % 7}")
    elif kind == 2:
        table.update(updates={"name": f"'u{step}'"}, predicate=f"id % 5 = {key % 5}")
    elif kind == 3:
        table.optimize.compact()
    elif kind == 4:
        some = pa.table({"id": [key, 300 + step], "name": [f"m{step}", f"m{step}"]})
        merged = table.merge(some, "t.id = s.id", source_alias="s", target_alias="t")
        merged.when_matched_update_all().when_not_matched_insert_all().execute()
    else:
        given = pa.table({"id": [key, key], "name": ["o", "o"]})
        deltalake.write_deltalake(path, given, mode="overwrite")


def test_time_goes_on_while_nothing_changes(tmp_path: Path) -> None:
    append(tmp_path, [1])
    pages = changes(declaration(), str(tmp_path)).pages()
    until = next(page.until for page in pages if page.until is not None)
    append(tmp_path, [2])
    later = next(page for page in pages if page.rows.num_rows)
    assert later.rows.column("ts")[0].as_py() > until


# -- what cannot be read ---------------------------------------------------------------------


def test_rows_that_go_are_an_error_of_a_stream(tmp_path: Path) -> None:
    append(tmp_path, [1, 2])
    append(tmp_path, [3])
    found = reading(tmp_path).until_there(3)
    deltalake.DeltaTable(tmp_path).optimize.compact()
    append(tmp_path, [4])
    found.until_there(4)
    deltalake.DeltaTable(tmp_path).delete("id = 1")
    assert "version 4 (DELETE) takes rows away" in found.until_error()


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    assert "there is none" in reading(tmp_path / "x").until_error()
    with pytest.raises(InputError, match=r"no option snapshto; .* is a directory"):
        source(declaration(), "x", snapshto=False)
    with pytest.raises(InputError, match="not ''"):
        source(declaration(), "")


def test_a_table_that_was_made_anew(tmp_path: Path) -> None:
    append(tmp_path / "a", [1])
    append(tmp_path / "b", [1])
    taken = reading(tmp_path / "a").until_there(1).end()
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "b").rename(tmp_path / "a")
    again = Reading(source(declaration(), str(tmp_path / "a")), taken)
    assert "made anew since it was read" in again.until_error()


def test_a_log_that_is_gone(tmp_path: Path) -> None:
    append(tmp_path, [1])
    taken = reading(tmp_path).until_there(1).end()
    append(tmp_path, [2])
    append(tmp_path, [3])
    deltalake.DeltaTable(tmp_path).create_checkpoint()
    log_of(tmp_path, 1).unlink()
    again = Reading(source(declaration(), str(tmp_path)), taken)
    assert "the log of version 1 is gone" in again.until_error()


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    append(tmp_path, [1])
    next(tmp_path.glob("*.parquet")).unlink()
    assert "is gone (VACUUM?)" in reading(tmp_path).until_error()


def test_a_log_that_is_not_written_yet_is_waited_for(tmp_path: Path) -> None:
    append(tmp_path, [1])
    append(tmp_path, [2])
    prepared = log_of(tmp_path, 1).rename(tmp_path / "prepared")
    found = reading(tmp_path).until_there(1)
    log_of(tmp_path, 1).touch()
    log = DeltaLog(declaration(), DeltaPlace("S", str(tmp_path)))
    assert log.change(1) is None
    prepared.rename(log_of(tmp_path, 1))
    assert found.until_there(2).rows == [(1, "n1"), (2, "n2")]
    found.end()


def test_a_log_that_is_damaged(tmp_path: Path) -> None:
    append(tmp_path, [1])
    found = reading(tmp_path).until_there(1)
    log_of(tmp_path, 1).write_text('{"add"')
    assert "version 1 of its log is damaged" in found.until_error()


def _with_vector(action: dict[str, Any]) -> None:
    if "add" in action:
        action["add"]["deletionVector"] = {"storageType": "u", "pathOrInlineDv": "x"}


def _of_another(action: dict[str, Any]) -> None:
    if "add" in action:
        action["add"]["path"] = "s3://other/x.parquet"


@pytest.mark.parametrize(
    ("change", "said"),
    [(_with_vector, "deletion vectors"), (_of_another, "a shallow clone")],
)
def test_what_other_writers_may_have_done(tmp_path: Path, change: Any, said: str) -> None:
    append(tmp_path / "a", [1])
    append(tmp_path / "a", [2])
    rewrite(tmp_path / "a", 1, change)
    prepared = log_of(tmp_path / "a", 1).read_text()
    log_of(tmp_path / "a", 1).unlink()
    found = reading(tmp_path / "a").until_there(1)
    (tmp_path / "prepared").write_text(prepared)
    (tmp_path / "prepared").rename(log_of(tmp_path / "a", 1))
    assert said in found.until_error()


def test_columns_with_other_names_in_files(tmp_path: Path) -> None:
    append(tmp_path, [1])

    def mapped(action: dict[str, Any]) -> None:
        if "metaData" in action:
            action["metaData"]["configuration"]["delta.columnMapping.mode"] = "name"
            fields = json.loads(action["metaData"]["schemaString"])
            for number, field in enumerate(fields["fields"]):
                field["metadata"] = {
                    "delta.columnMapping.id": number,
                    "delta.columnMapping.physicalName": f"c{number}",
                }
            action["metaData"]["schemaString"] = json.dumps(fields)
        if "protocol" in action:
            action["protocol"] |= {"minReaderVersion": 2, "minWriterVersion": 5}

    rewrite(tmp_path, 0, mapped)
    assert "delta.columnMapping.mode" in reading(tmp_path).until_error()


def test_no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(InputError, match=r"pip install 'millpond\[delta\]'"):
        source(declaration(), str(tmp_path))


# -- writing ---------------------------------------------------------------------------------


def test_conformance_of_the_sink(tmp_path: Path) -> None:
    number = iter(range(1000))
    table = tmp_path / "none"

    def opened(results: Results) -> Any:
        nonlocal table
        if results.resume is None:
            table = tmp_path / str(next(number))
        return sink(results, str(table))

    def ids() -> list[int]:
        found: list[int] = deltalake.DeltaTable(table).to_pyarrow_table()["id"].to_pylist()
        return found

    check_sink(opened, ids)


SCRIPT = """
CREATE STREAM Bids (item INT, price DECIMAL(9, 2), at TIMESTAMP) TIMESTAMP BY at;
CREATE QUERY dear AS SELECT item, price, at FROM Bids WHERE price > 5
  INTO delta('dear');
CREATE QUERY most AS SELECT item, max(price) AS price FROM Bids [RANGE 2 SECONDS] GROUP BY item
  INTO delta('most', key = 'item');
CREATE QUERY changes AS SELECT item, count(*) AS n FROM Bids [ROWS 3] GROUP BY item
  INTO delta('changes');
"""


def test_answers_are_tables(tmp_path: Path) -> None:
    with Engine(directory=tmp_path) as engine:
        engine.execute(SCRIPT)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        for second, item, price in [(0, 1, 3), (0, 2, 9), (1, 1, 7), (2, 3, 1), (3, 1, 2)]:
            engine.push("Bids", [(item, Decimal(price), at.replace(second=second))])
            engine.run_until_idle()
        engine.advance("Bids", at.replace(second=4))
        engine.run_until_idle()
        assert rows(tmp_path / "dear") == [
            (1, Decimal(7), at.replace(second=1)),
            (2, Decimal(9), at),
        ]
        most = _sums(engine.results("most"))
        assert most == Counter([(1, Decimal(2)), (3, Decimal(1))])
        assert Counter(rows(tmp_path / "most")) == most
        there = deltalake.DeltaTable(tmp_path / "changes").to_pyarrow_table()
        changed = _sums(there.select(["millpond_ts", "millpond_weight", "item", "n"]))
        assert changed == Counter([(1, 2), (3, 1)])


def _sums(results: pa.Table) -> Counter[Any]:
    """What results (time, weight, …) come to."""
    found = Counter[Any]()
    for _, weight, *row in tuples(results):
        found[tuple(row)] += weight
    return +found


def rows(table: Path) -> list[Any]:
    return sorted(tuples(deltalake.DeltaTable(table).to_pyarrow_table()))


def results_of(columns: str, *, is_stream: bool = True, resume: Any = None) -> Results:
    return Results("q", schema(columns), resume=resume, is_stream=is_stream)


def page(columns: str, *given: tuple[Any, ...]) -> pa.Table:
    types = [("ts", pa.int64()), ("weight", pa.int64()), *arrow_schema(schema(columns))]
    return pa.table([list(each) for each in zip(*given, strict=True)], schema=pa.schema(types))


def test_the_last_row_of_each_key_of_a_stream_stays(tmp_path: Path) -> None:
    opened = sink(results_of("k INT, v STRING"), str(tmp_path), key="K")
    opened.write(page("k INT, v STRING", (0, 1, 1, "a"), (0, 1, 2, "b"), (1, 1, 1, "c")))
    opened.write(page("k INT, v STRING", (2, 1, 2, "d"), (2, 1, 3, None)))
    assert rows(tmp_path) == [(1, "c"), (2, "d"), (3, None)]


def test_a_table_that_is_there_gets_rows(tmp_path: Path) -> None:
    there = pa.table({"extra": ["x"], "ID": [1], "millpond_ts": [0]})
    deltalake.write_deltalake(tmp_path, there)
    sink(results_of("id INT"), str(tmp_path)).write(page("id INT", (7, 1, 5), (8, 2, 6)))
    found = deltalake.DeltaTable(tmp_path).to_pyarrow_table()
    assert sorted(tuples(found.select(["ID", "millpond_ts"]))) == [(1, 0), (5, 7), (6, 8), (6, 8)]


def test_structs_and_maps_are_their_like(tmp_path: Path) -> None:
    with Engine(directory=tmp_path) as engine:
        engine.execute(
            "CREATE STREAM S (k INT, t BIGINT, s STRUCT<a INT, b STRING>, m MAP<STRING, INT>)"
            " TIMESTAMP BY t;"
            "CREATE QUERY q AS RELATION SELECT k, V.s, m FROM S [ROWS 2] V"
            " INTO delta('t', key = 'k')"
        )
        engine.push(
            "S", [(1, 1, None, {}), (2, 2, {"a": 1, "b": None}, {"x": 1}), (3, 3, None, {})]
        )
        engine.finish()
    assert rows(tmp_path / "t") == [(2, {"a": 1, "b": None}, [("x", 1)]), (3, None, [])]
    found = reading(tmp_path / "t", "s STRUCT<b STRING, a INT>, k INT, m MAP<STRING, INT>")
    assert {row[1]: row[0] is None for row in found.until_there(2).rows} == {2: False, 3: True}
    found.end()


def test_arrays_are_lists(tmp_path: Path) -> None:
    with Engine(directory=tmp_path) as engine:
        engine.execute(
            "CREATE STREAM S (k INT, t BIGINT, tags ARRAY<STRING>) TIMESTAMP BY t;"
            "CREATE QUERY q AS RELATION SELECT k, tags FROM S [ROWS 2] INTO delta('t', key = 'k')"
        )
        engine.push("S", [(1, 1, ["a", None]), (2, 2, []), (3, 3, None)])
        engine.finish()
    assert rows(tmp_path / "t") == [(2, []), (3, None)]
    found = reading(tmp_path / "t", "tags ARRAY<STRING>, k INT").until_there(2)
    assert {row[1]: row[0] is None for row in found.rows} == {2: False, 3: True}
    found.end()


@pytest.mark.parametrize(
    ("columns", "is_stream", "key", "said"),
    [
        ("id STRING", True, "", "column ID is int64 there, and string in the query; CAST it"),
        ("no INT", True, "", "no column no; columns there: ID"),
        ("id INT", False, "", "name its key by key"),
        ("id INT", True, "x", "no column x for the key; columns: id"),
        ("id INT, ID INT", True, "", "two columns id"),
        ("id ARRAY<INT>", True, "id", "column id is ARRAY<INT>, and so no key"),
    ],
)
def test_a_table_that_does_not_take_results(
    tmp_path: Path, columns: str, is_stream: bool, key: str, said: str
) -> None:
    deltalake.write_deltalake(tmp_path, pa.table({"ID": [1]}))
    given = page(columns, (0, 1, *(None for _ in columns.split(","))))
    with pytest.raises(OutputError, match=said):
        sink(results_of(columns, is_stream=is_stream), str(tmp_path), key=key).write(given)


def test_a_table_that_somebody_else_has_changed(tmp_path: Path) -> None:
    opened = sink(results_of("k INT, v INT", is_stream=False), str(tmp_path), key="k")
    opened.write(page("k INT, v INT", (0, 1, 1, 1)))
    deltalake.DeltaTable(tmp_path).delete("k = 1")
    with pytest.raises(OutputError, match="1 rows were to be updated, and 0 were"):
        opened.write(page("k INT, v INT", (1, -1, 1, 1), (1, 1, 1, 2)))


def test_a_table_that_was_put_back_or_is_gone(tmp_path: Path) -> None:
    opened = sink(results_of("k INT"), str(tmp_path / "t"))
    opened.write(page("k INT", (0, 1, 1)))
    opened.write(page("k INT", (0, 1, 2)))
    log_of(tmp_path / "t", 2).unlink()
    again = sink(results_of("k INT", resume=opened.mark()), str(tmp_path / "t"))
    with pytest.raises(OutputError, match="2 pages of results were written, and its log has 1"):
        again.write(page("k INT", (0, 1, 3)))
    (tmp_path / "t").rename(tmp_path / "u")
    with pytest.raises(OutputError, match="it is gone, and had results"):
        again.write(page("k INT", (0, 1, 3)))


def test_of_two_that_write_one_page_one_is_refused(tmp_path: Path) -> None:
    first = sink(results_of("k INT"), str(tmp_path))
    first.write(page("k INT", (0, 1, 1)))
    second = sink(results_of("k INT", resume=first.mark()), str(tmp_path))
    second._table = second._opened()  # type: ignore[attr-defined]
    first.write(page("k INT", (0, 1, 2)))
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        second._commit(page("k INT", (0, 1, 2)), 1)  # type: ignore[attr-defined]
    second.write_numbered(page("k INT", (0, 1, 2)), 1)
    second.write_numbered(page("k INT", (0, 1, 3)), 2)
    assert rows(tmp_path) == [(1,), (2,), (3,)]


@pytest.mark.parametrize("role", ["source", "changes", "sink"])
def test_how_it_is_called(role: str) -> None:
    check_connector(Connector("delta", ("t",), (("aws_region", "eu-1"),)), role)
    with pytest.raises(MillpondError):
        check_connector(Connector("delta", (), ()), role)


# -- both, with kills ------------------------------------------------------------------------


def kills_between_tables(folder: Path, seed: int, kills: int) -> None:
    """Kills an engine so many times; what it was to write is there once."""
    command = [sys.executable, "-m", "tests.connectors.delta_lives", folder, seed, kills]
    done = subprocess.run(map(str, command), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == kills
    assert rows(folder / "out") == rows(folder / "ids")
    assert rows(folder / "mirror") == rows(folder / "prices")


@pytest.mark.slow
def test_kills(tmp_path: Path) -> None:
    kills_between_tables(tmp_path, 1, 8)
