"""Tables of Iceberg: read, followed and written; nothing lost, nothing twice."""

from __future__ import annotations

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
from millpond.connectors.iceberg import changes, sink, source
from millpond.connectors.registry import check_connector
from millpond.connectors.sinks import Results
from millpond.connectors.sources import Declaration, Source
from millpond.errors import InputError, MillpondError, OutputError
from millpond.settings import Settings
from millpond.testing import check_sink, check_source
from tests.connectors.declarations import schema, tuples
from tests.connectors.reading import Reading

pytest.importorskip("pyiceberg", reason="pip install 'millpond[iceberg]' brings it")
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table
from pyiceberg.types import StringType

from tests.connectors.iceberg_lives import Lake

pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match")

COLUMNS = "id BIGINT, name STRING"
ROWS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture(autouse=True)
def _looked_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_source, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(lake_source, "PASS_SECONDS", 0.05)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def of(*ids: int) -> pa.Table:
    return pa.table([ids, [f"n{each}" for each in ids]], schema=ROWS)


def made(lake: Lake, *pages: pa.Table, name: str = "t") -> Table:
    table = lake.table(name, pages[0].schema if pages else ROWS)
    for each in pages:
        table.append(each)
    return table


def partitioned(table: Table) -> Table:
    with table.update_spec() as change:
        change.add_identity("id")
    return table


def declaration(columns: str = COLUMNS, **options: Any) -> Declaration:
    return Declaration("S", schema(columns), settings=Settings(page_rows=4), **options)


def reading(lake: Lake, columns: str = COLUMNS, name: str = "t", **options: Any) -> Reading:
    return Reading(source(declaration(columns), f"l.{name}", **options, **lake.options))


def following(lake: Lake, taken: Any = None) -> Reading:
    return Reading(changes(declaration(), "l.t", **lake.options), taken)


def content(lake: Lake, name: str = "t") -> Counter[Any]:
    return Counter(lake.rows(name))


# -- reading ---------------------------------------------------------------------------------


def test_what_is_there_and_what_comes(lake: Lake) -> None:
    table = made(lake, of(1, 2), of(3))
    found = reading(lake).until_there(3)
    table.append(of(*range(4, 14)))
    assert [row[0] for row in found.until_there(13).rows] == list(range(1, 14))
    found.end()
    whole = source(declaration(), "l.t", follow=False, **lake.options)
    assert whole.ends
    assert [row[0] for page in whole.pages() for row in tuples(page.rows)] == list(range(1, 14))


def test_only_what_comes_also_into_a_table_that_is_empty(lake: Lake) -> None:
    table = made(lake)
    first = reading(lake).until(lambda each: each.taken.position)
    table.append(of(1))
    assert first.until_there(1).rows == [(1, "n1")]
    first.end()
    later = reading(lake, snapshot=False).until(lambda each: each.taken.position)
    table.append(of(2))
    assert later.until_there(1).rows == [(2, "n2")]
    later.end()


def test_conformance(lake: Lake) -> None:
    rng = random.Random(3)
    table = partitioned(made(lake, name="parts"))
    for _ in range(3):
        table.append(of(*rng.sample(range(20), rng.randint(1, 7))))
    there = content(lake, "parts")

    def opened(declared: Declaration) -> Source:
        return source(declared, "l.parts", **lake.options)

    assert Counter(check_source(opened, declaration(), there.total())) == there


def test_bad_rows_are_put_aside_in_their_places(lake: Lake) -> None:
    times = ["2026-01-01", "no", "2026-01-02", None, "2026-01-03"]
    made(lake, pa.table({"id": times}))
    declared = Declaration(
        "S", schema("id TIMESTAMP"), 0, Settings(page_rows=3), skips_bad_rows=True
    )
    good = check_source(lambda each: source(each, "l.t", **lake.options), declared, 5)
    assert [each[0].day for each in good] == [1, 2, 3]
    found = Reading(source(declared, "l.t", **lake.options)).until_there(3, 2)
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
    "a": (pa.array([[["x"], None], None], pa.list_(pa.list_(pa.string()))), "ARRAY<ARRAY<STRING>>"),
    "r": (pa.array([{"x": 1, "y": [{"z": "a"}]}, None],
                   pa.struct({"x": pa.int64(), "y": pa.list_(pa.struct({"z": pa.string()}))})),
          "STRUCT<x BIGINT, y ARRAY<STRUCT<z STRING>>>"),
    "o": (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), "MAP<STRING, BIGINT>"),
}  # fmt: skip


def test_types(lake: Lake) -> None:
    given = pa.table({name: column for name, (column, _) in TYPED.items()})
    made(lake, given)
    columns = ", ".join(f"{name} {kind}" for name, (_, kind) in TYPED.items())
    expected = [tuple(map(_plain, row)) for row in lake.rows("t")]
    with Engine(directory=lake.folder) as engine:
        of = f"iceberg('l.t', follow = false, {lake.in_cql})"
        engine.execute(f"CREATE STREAM S ({columns}) FROM {of}")
        engine.execute(f"CREATE QUERY q AS SELECT * FROM S INTO iceberg('l.w', {lake.in_cql})")
        engine.finish()
        read = tuples(engine.results("q").select(given.column_names))
    assert sorted(read, key=str) == expected
    assert lake.rows("w") == lake.rows("t")


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def test_columns_are_found_by_what_they_are_called_now(lake: Lake) -> None:
    table = made(lake, of(1))
    found = reading(lake).until_there(1)
    with table.update_schema() as change:
        change.add_column("extra", StringType())
        change.rename_column("name", "title")
    table.append(pa.table({"id": [2], "title": ["n2"], "extra": ["x"]}))
    assert "no column name; columns here: id, title, extra" in found.until_error()
    anew = reading(lake, "extra STRING, title STRING").until_there(2)
    assert anew.rows == [(None, "n1"), ("x", "n2")]
    anew.end()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_relation_follows_whatever_is_done(lake: Lake, seed: int) -> None:
    rng = random.Random(seed)
    table = partitioned(made(lake)) if seed == 2 else made(lake)
    table.append(of(*range(6)))
    found, had = following(lake), Counter[Any]()
    for step in range(4):
        _change(table, rng, step)
        if rng.random() < 0.5:  # goes on where it was, also in the middle of a snapshot
            taken, had = found.end(), found.content(had)
            found = following(lake, taken)
        found.until(lambda each: each.content(had) == content(lake))  # noqa: B023
    times = [row[0] for row in found.rows]
    assert times == sorted(times)
    found.end()


def _change(table: Table, rng: random.Random, step: int) -> None:
    key, kind = rng.randrange(8), (step + rng.randrange(2)) % 4
    if kind == 0:
        table.append(of(10 + step, 20 + step))
    elif kind == 1:
        table.delete(f"id == {key}")
    elif kind == 2:
        given = pa.table([[key, 30 + step], [f"m{step}"] * 2], schema=ROWS)
        table.upsert(given, join_cols=["id"])
    else:
        table.overwrite(of(key, key, key + 1), f"id <= {key}")


def test_time_goes_on_while_nothing_changes(lake: Lake) -> None:
    table = made(lake, of(1))
    pages = changes(declaration(), "l.t", **lake.options).pages()
    until = next(page.until for page in pages if page.until is not None)
    table.append(of(2))
    later = next(page for page in pages if page.rows.num_rows)
    assert later.rows.column("ts")[0].as_py() > until


# -- what cannot be read ---------------------------------------------------------------------


def test_rows_that_go_are_an_error_of_a_stream(lake: Lake) -> None:
    table = made(lake, of(1, 2))
    found = reading(lake).until_there(2)
    table.delete("id == 1")
    assert "(overwrite) takes rows away" in found.until_error()


def test_a_table_that_is_not_there(lake: Lake) -> None:
    assert "there is none in the catalog default" in reading(lake, name="x").until_error()
    with pytest.raises(InputError, match=r"no option snapshto; options: type, uri"):
        source(declaration(), "a.b", snapshto=False)
    with pytest.raises(InputError, match="no option py_io_impl"):
        source(declaration(), "a.b", py_io_impl="os.system")
    with pytest.raises(InputError, match=r"a namespace and a name, .* not 't'"):
        source(declaration(), "t")
    nowhere = source(declaration(), "a.b", type="sql", uri="sqlite:////nowhere/at/all.db")
    with pytest.raises(InputError, match=r"S, Iceberg table a\.b: .*unable to open database"):
        next(iter(nowhere.pages()))


def test_a_table_that_was_made_anew(lake: Lake) -> None:
    made(lake, of(1))
    taken = reading(lake).until_there(1).end()
    lake.catalog.drop_table("l.t")
    made(lake, of(1))
    again = Reading(source(declaration(), "l.t", **lake.options), taken)
    assert "made anew since it was read" in again.until_error()


def test_snapshots_that_are_gone(lake: Lake) -> None:
    table = made(lake, of(1))
    taken = reading(lake).until_there(1).end()
    table.append(of(2))
    second = table.current_snapshot().snapshot_id
    table.append(of(3))
    table.maintenance.expire_snapshots().by_id(second).commit()
    again = Reading(source(declaration(), "l.t", **lake.options), taken)
    assert "what followed it has expired before it was read" in again.until_error()


def test_a_table_that_was_put_back(lake: Lake) -> None:
    table = made(lake, of(1))
    first = table.current_snapshot().snapshot_id
    found = reading(lake).until_there(1)
    table.append(of(2))
    found.until_there(2)
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    assert "the table was put back to an earlier one" in found.until_error()


def test_the_first_snapshot_of_an_empty_table_may_have_expired(lake: Lake) -> None:
    table = made(lake)
    taken = following(lake).until(lambda each: each.taken.position).end()
    table.append(of(1, 2))
    first = table.current_snapshot().snapshot_id
    table.append(of(3))
    table.maintenance.expire_snapshots().by_id(first).commit()
    found = following(lake, taken).until_there(3)
    assert found.content() == content(lake)
    found.end()


def test_a_file_that_is_gone(lake: Lake) -> None:
    made(lake, of(1))
    next(lake.folder.rglob("*.parquet")).unlink()
    assert "is gone before it was read to its end" in reading(lake).until_error()


def test_rows_that_are_marked_as_deleted(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As other writers mark them, by files of deletes: which the package does not write."""
    table = made(lake, of(1))
    found = reading(lake).until_there(1)
    monkeypatch.setattr("pyiceberg.manifest.ManifestFile.content", ManifestContent.DELETES)
    table.append(of(2))
    assert "marked as deleted" in found.until_error()
    assert "marked as deleted" in reading(lake).until_error()


def test_no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    with pytest.raises(InputError, match=r"pip install 'millpond\[iceberg\]'"):
        source(declaration(), "a.b")


# -- writing ---------------------------------------------------------------------------------


def test_conformance_of_the_sink(lake: Lake) -> None:
    number, name = iter(range(1000)), "none"

    def opened(results: Results) -> Any:
        nonlocal name
        if results.resume is None:
            name = f"t{next(number)}"
        return sink(results, f"l.{name}", **lake.options)

    check_sink(opened, lambda: [row[0] for row in lake.rows(name)], pages=2)


SCRIPT = """
CREATE STREAM Bids (item INT, price DECIMAL(9, 2), at TIMESTAMP) TIMESTAMP BY at;
CREATE QUERY dear AS SELECT item, price, at FROM Bids WHERE price > 5
  INTO iceberg('l.dear', {0});
CREATE QUERY most AS SELECT item, max(price) AS price FROM Bids [RANGE 2 SECONDS] GROUP BY item
  INTO iceberg('l.most', key = 'item', {0});
CREATE QUERY changes AS SELECT item, count(*) AS n FROM Bids [ROWS 3] GROUP BY item
  INTO iceberg('l.changes', {0});
"""


def test_answers_are_tables(lake: Lake) -> None:
    with Engine(directory=lake.folder) as engine:
        engine.execute(SCRIPT.format(lake.in_cql))
        at = datetime(2026, 1, 1, tzinfo=UTC)
        for second, item, price in [(0, 1, 3), (0, 2, 9), (1, 1, 7), (2, 3, 1), (3, 1, 2)]:
            engine.push("Bids", [(item, Decimal(price), at.replace(second=second))])
            engine.run_until_idle()
        engine.advance("Bids", at.replace(second=4))
        engine.run_until_idle()
        assert lake.rows("dear") == [
            (1, Decimal(7), at.replace(second=1)),
            (2, Decimal(9), at),
        ]
        most = _sums(engine.results("most"))
        assert most == Counter([(1, Decimal(2)), (3, Decimal(1))])
        assert content(lake, "most") == most
        there = lake.catalog.load_table("l.changes").scan().to_arrow()
        changed = _sums(there.select(["millpond_ts", "millpond_weight", "item", "n"]))
        assert changed == Counter([(1, 2), (3, 1)])


def _sums(results: pa.Table) -> Counter[Any]:
    """What results (time, weight, …) come to."""
    found = Counter[Any]()
    for _, weight, *row in tuples(results):
        found[tuple(row)] += weight
    return +found


def page(columns: str, *given: tuple[Any, ...]) -> pa.Table:
    types = [("ts", pa.int64()), ("weight", pa.int64()), *arrow_schema(schema(columns))]
    return pa.table([list(each) for each in zip(*given, strict=True)], schema=pa.schema(types))


def opened(lake: Lake, columns: str, resume: Any = None, stream: bool = True, **given: Any) -> Any:
    results = Results("q", schema(columns), resume=resume, is_stream=stream)
    return sink(results, "l.t", **given, **lake.options)


def test_the_last_row_of_each_key_of_a_stream_stays(lake: Lake) -> None:
    columns = "k INT, l STRING, v STRING"
    writer = opened(lake, columns, key="K, l")
    writer.write(page(columns, (0, 1, 1, "x", "a"), (0, 1, 2, "x", "b"), (1, 1, 1, "x", "c")))
    writer.write(page(columns, (2, 1, 2, "x", "d"), (2, 1, 2, "y", None)))
    assert lake.rows("t") == [(1, "x", "c"), (2, "x", "d"), (2, "y", None)]


def test_a_table_that_is_there_gets_rows(lake: Lake) -> None:
    made(lake, pa.table({"extra": ["x"], "ID": [1], "millpond_ts": [0]}))
    opened(lake, "id INT").write(page("id INT", (7, 1, 5), (8, 2, 6)))
    there = lake.catalog.load_table("l.t").scan().to_arrow()
    assert sorted(tuples(there.select(["ID", "millpond_ts"]))) == [(1, 0), (5, 7), (6, 8), (6, 8)]


@pytest.mark.parametrize(
    ("columns", "is_stream", "key", "said"),
    [
        ("id STRING", True, "", "column ID is int64 there, and string in the query; CAST it"),
        ("no INT", True, "", "no column no; columns there: ID"),
        ("id INT", False, "", "name its key by key"),
        ("id DOUBLE", True, "id", "column id is DOUBLE, and so no key"),
    ],
)
def test_a_table_that_does_not_take_results(
    lake: Lake, columns: str, is_stream: bool, key: str, said: str
) -> None:
    made(lake, pa.table({"ID": [1]}))
    with pytest.raises(OutputError, match=said):
        opened(lake, columns, stream=is_stream, key=key).write(page(columns, (0, 1, None)))


def test_a_table_that_somebody_else_has_changed(lake: Lake) -> None:
    writer = opened(lake, "k INT, v INT", stream=False, key="k")
    writer.write(page("k INT, v INT", (0, 1, 1, 1)))
    lake.catalog.load_table("l.t").delete("k == 1")
    with pytest.raises(OutputError, match="k = 1 was to be there 1 times, and is 0"):
        writer.write(page("k INT, v INT", (1, -1, 1, 1), (1, 1, 1, 2)))


def test_a_table_that_was_put_back_or_is_gone(lake: Lake) -> None:
    writer = opened(lake, "k INT")
    writer.write(page("k INT", (0, 1, 1)))
    table = lake.catalog.load_table("l.t")
    first = table.current_snapshot().snapshot_id
    writer.write(page("k INT", (0, 1, 2)))
    table.refresh().manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(OutputError, match="page 1 of results was written, and is not in it"):
        opened(lake, "k INT", writer.mark()).write(page("k INT", (0, 1, 3)))
    lake.catalog.drop_table("l.t")
    with pytest.raises(OutputError, match="it is gone, and had results"):
        opened(lake, "k INT", writer.mark()).write(page("k INT", (0, 1, 3)))


def test_numbers_outlive_their_snapshots(lake: Lake) -> None:
    writer = opened(lake, "k INT")
    writer.write(page("k INT", (0, 1, 1)))
    table = lake.catalog.load_table("l.t")
    first = table.current_snapshot().snapshot_id
    table.append(pa.table({"k": pa.array([7], pa.int32())}))
    table.maintenance.expire_snapshots().by_id(first).commit()
    again = opened(lake, "k INT", [writer.mark()[0], 0])
    again.write_numbered(page("k INT", (0, 1, 1)), 0)
    again.write_numbered(page("k INT", (0, 1, 2)), 1)
    assert lake.rows("t") == [(1,), (2,), (7,)]


def test_of_two_that_write_one_page_one_is_refused(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if somebody else has written between the look at the number and the commit."""
    first = opened(lake, "k INT")
    first.write(page("k INT", (0, 1, 1)))
    second = opened(lake, "k INT", first.mark())
    write_page, met = second._write_page, list[BaseException]()

    def _meets_the_first(*given: Any) -> None:
        if not met:
            first.write(page("k INT", (0, 1, 2)))
        try:
            write_page(*given)
        except CommitFailedException as error:
            met.append(error)
            raise

    monkeypatch.setattr(second, "_write_page", _meets_the_first)
    second.write_numbered(page("k INT", (0, 1, 2)), 1)
    second.write_numbered(page("k INT", (0, 1, 3)), 2)
    assert (lake.rows("t"), len(met)) == ([(1,), (2,), (3,)], 1)
    kept = lake.catalog.load_table("l.t").properties
    assert set(kept) == {f"millpond.{first.mark()[0]}"}


def test_a_page_that_is_there_though_it_was_refused_stays(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where an answer got lost and the request was repeated on the way."""
    writer, commit, repeated = opened(lake, "k INT"), Table._do_commit, list[int]()
    writer.write(page("k INT", (0, 1, 1)))

    def committed_twice(table: Table, *given: Any, **named: Any) -> None:
        commit(table, *given, **named)
        if not repeated:
            repeated.append(1)
            commit(table, *given, **named)

    monkeypatch.setattr(Table, "_do_commit", committed_twice)
    writer.write(page("k INT", (0, 1, 2)))
    writer.write(page("k INT", (0, 1, 3)))
    assert (lake.rows("t"), repeated) == ([(1,), (2,), (3,)], [1])


@pytest.mark.parametrize("role", ["source", "changes", "sink"])
def test_how_it_is_called(role: str) -> None:
    check_connector(Connector("iceberg", ("a.t",), (("s3_region", "eu-1"),)), role)
    with pytest.raises(MillpondError):
        check_connector(Connector("iceberg", (), ()), role)


# -- both, with kills ------------------------------------------------------------------------


def kills_between_icebergs(folder: Path, seed: int, kills: int) -> None:
    """Kills an engine so many times; what it was to write is there once."""
    command = [sys.executable, "-m", "tests.connectors.iceberg_lives", folder, seed, kills]
    done = subprocess.run(map(str, command), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == kills
    lake = Lake(folder)
    assert lake.rows("out") == lake.rows("ids")
    assert lake.rows("mirror") == lake.rows("prices")


@pytest.mark.slow
def test_kills(tmp_path: Path) -> None:
    kills_between_icebergs(tmp_path, 1, 1)
