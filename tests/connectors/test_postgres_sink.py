"""Tables of a real PostgreSQL as sinks."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from millpond import Engine
from millpond.connectors import arrow_schema, postgres, postgres_sink
from millpond.connectors.bad_rows import BAD_ROW
from millpond.connectors.nested import outside_table, outside_type
from millpond.connectors.sinks import Results
from millpond.errors import InputError, MillpondError, OutputError
from millpond.testing import check_sink
from tests.connectors.declarations import schema
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow
TEXT = 'a,\n\\.\n"b"\r\\N'


def sink_of(server, table: str, columns: str = "id BIGINT", resume=None, is_stream=True, **options):
    results = Results("q", schema(columns), resume=resume, is_stream=is_stream)
    return postgres.sink(results, server.dsn, table=table, **options)


def page(columns: str, *rows: tuple) -> pa.Table:
    """Results (weight, value, …), each a tick later."""
    types = pa.schema([("ts", pa.int64()), ("weight", pa.int64()), *arrow_schema(schema(columns))])
    whole = [(number, *row) for number, row in enumerate(rows)]
    columns_of = list(zip(*whole, strict=True)) or [()] * len(types)
    arrays = [pa.array(each, kind) for each, kind in zip(columns_of, types.types, strict=True)]
    return pa.table(arrays, schema=types)


def ids(*values: int) -> pa.Table:
    return page("id BIGINT", *((1, value) for value in values))


def content(engine: Engine) -> list[tuple]:
    """What the changes of a query come to."""
    sums: Counter[tuple] = Counter()
    for row in engine.results("q").to_pylist():
        sums[tuple(row.values())[2:]] += row["weight"]
    return sorted((+sums).elements())


def found(server, table: str) -> list[tuple]:
    return sorted(server.rows(f"SELECT * FROM {table}"))


# -- what is written -----------------------------------------------------------------------


def test_what_is_written_is_there_once_wherever_it_dies(server) -> None:
    tables: list[str] = []

    def open_(results):
        if results.resume is None:
            tables.append(server.table("id bigint, text text"))
        return postgres.sink(results, server.dsn, table=tables[-1])

    check_sink(open_, lambda: [row[0] for row in found(server, tables[-1])], pages=2)


def test_values_of_all_types_are_the_same_in_the_table(server) -> None:
    columns = "b BOOLEAN, i INT, l BIGINT, d DOUBLE, s STRING, day DATE, n DECIMAL(9), t TIMESTAMP"
    table = server.table(
        "b bool, i int, l numeric, d float8, s text, day date, n numeric(12,2), t timestamptz, "
        "millpond_ts bigint"
    )
    first, last = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)
    values = [
        (1, True, 1, 2**63 - 1, 0.1, "", date(1, 1, 1), Decimal(7), first),
        (
            1,
            False,
            -(2**31),
            -(2**63),
            float("inf"),
            'a,\n\\.\n"b"\r\\N',
            date(9999, 12, 31),
            None,
            last,
        ),
        (1, None, None, None, None, None, None, Decimal(-999_999_999), None),
        (1, None, None, None, 5e-324, "NULL", None, None, datetime(2026, 7, 1, 12, 0, 0, 5)),
    ]
    sink = sink_of(server, table, columns)
    sink.write(page(columns, *values))
    sink.write(page(columns, (2, None, 7, None, None, None, None, None, None)))
    shown = [
        tuple(v.replace(tzinfo=UTC) if isinstance(v, datetime) else v for v in row[1:])
        for row in values
    ]
    text = f"SELECT * FROM {table}"
    rows = server.rows(text.replace("*", "b, i, l::bigint, d, s, day, n, t"))
    assert rows == [*shown, *[(None, 7, None, None, None, None, None, None)] * 2]
    assert [row[-1] for row in server.rows(text)] == [0, 1, 2, 3, 0, 0]


def test_bytes_are_bytea(server) -> None:
    table = server.table("b bytea PRIMARY KEY, v bytea")
    columns = "b BINARY, v BINARY"
    sink = sink_of(server, table, columns, key="b")
    sink.write(page(columns, (1, b"\0\\", b""), (1, b"\xff", None), (1, b"\0\\", b'",\n')))
    assert found(server, table) == [(b"\0\\", b'",\n'), (b"\xff", None)]


def test_arrays_are_arrays(server) -> None:
    kinds = "k text[] PRIMARY KEY, n int[], x float8[], b bytea[], d date[], p numeric(9, 2)[]"
    table = server.table(kinds)
    columns = (
        "k ARRAY<STRING>, n ARRAY<INT>, x ARRAY<DOUBLE>, b ARRAY<BINARY>, d ARRAY<DATE>, "
        "p ARRAY<DECIMAL(9,2)>"
    )
    sink, day = sink_of(server, table, columns, key="k"), date(2026, 1, 2)
    first = (["a", 'b"\\,{', None, ""], [1, None], [0.1, float("inf")], [b"\0\\"], [day], [])
    last = (["NULL"], [], [], None, [None], [Decimal("1.50")])
    given = outside_table(page(columns, (1, *[None] * 6)), schema(columns).types, first=2)
    rows = [(0, 1, *first), (1, 1, *last), (2, 1, *first)]
    cells = zip(zip(*rows, strict=True), given.schema, strict=True)
    sink.write(pa.table([pa.array(each, f.type) for each, f in cells], schema=given.schema))
    assert sorted(found(server, table), key=repr) == sorted([first, last], key=repr)


def test_structs_and_maps_are_json(server) -> None:
    table = server.table("k int PRIMARY KEY, s jsonb, m json, l jsonb")
    columns = (
        "k INT, s STRUCT<a INT, b STRING>, m MAP<STRING, DECIMAL(4,2)>, l ARRAY<STRUCT<x DOUBLE>>"
    )
    sink = sink_of(server, table, columns, key="k")
    pairs, empty = [("k", Decimal("1.50"))], ({"a": None, "b": None}, None, [])
    values = [(1, {"a": 1, "b": 'x"'}, pairs, [{"x": 0.5}, None]), (2, *empty)]
    kinds = map(outside_type, schema(columns).types)
    cells = [pa.array(c, k) for c, k in zip(zip(*values, strict=True), kinds, strict=True)]
    sink.write(pa.table([[0, 0], [1, 1], *cells], names=["ts", "weight", "k", "s", "m", "l"]))
    assert found(server, table) == [
        (1, {"a": 1, "b": 'x"'}, {"k": "1.50"}, [{"x": 0.5}, None]),
        (2, *empty),
    ]


@pytest.mark.parametrize(
    ("there", "columns", "complaint"),
    [
        (
            "a text",
            "a STRUCT<a INT>",
            "column a is text, and STRUCT<a INT> goes into jsonb or json",
        ),
        ("a text", "a ARRAY<INT>", "column a is text, and ARRAY<INT> goes into an array of what"),
        ("a smallint[]", "a ARRAY<INT>", "column a is smallint.., and ARRAY<INT> goes into"),
        ("a int[]", "a ARRAY<ARRAY<INT>>", "column a is integer.., and ARRAY<ARRAY<INT>> goes"),
    ],
)
def test_arrays_go_nowhere_else(server, there: str, columns: str, complaint: str) -> None:
    sink = sink_of(server, server.table(there), columns)
    with pytest.raises(OutputError, match=complaint):
        sink.write(page(columns, (1, None)))


def test_a_stream_with_a_key_leaves_the_last_row_of_each(server) -> None:
    table = server.table("a int, s text, v float8, PRIMARY KEY (s, a)")
    columns = "v DOUBLE, a INT, S STRING"
    sink = sink_of(server, table, columns, key="a, s")
    sink.write(page(columns, (1, 1.0, 1, "x"), (1, 2.0, 2, "x"), (1, 3.0, 1, "x")))
    sink.write(page(columns, (1, 4.0, 2, "x"), (1, None, 2, "y")))
    assert found(server, table) == [(1, "x", 3.0), (2, "x", 4.0), (2, "y", None)]


def test_a_relation_with_a_key_is_what_the_table_holds(server) -> None:
    """Rows come, change, go, and come again, within a page and over pages."""
    columns, table = (
        "k INT, v STRING",
        server.table("k int PRIMARY KEY, v text, more int DEFAULT 5"),
    )
    sink = sink_of(server, table, columns, key="k", is_stream=False)
    sink.write(page(columns, (1, 1, "a"), (1, 2, "a"), (-1, 2, "a"), (1, 3, "a"), (1, 4, None)))
    assert found(server, table) == [(1, "a", 5), (3, "a", 5), (4, None, 5)]
    sink.write(page(columns, (-1, 1, "a"), (1, 1, "b"), (-1, 1, "b"), (1, 1, "c"), (-1, 3, "a")))
    sink.write(page(columns, (-1, 4, None), (1, 4, "d"), (1, 3, "a"), (-1, 3, "a")))
    assert found(server, table) == [(1, "c", 5), (4, "d", 5)]
    sink.write(page(columns, (-1, 4, "d"), (1, 4, "d")))
    sink.write(page(columns, (-1, 1, "c"), (1, 4, "e"), (-1, 4, "d")))
    assert found(server, table) == [(4, "e", 5)]


def test_a_relation_without_a_key_is_its_changes(server) -> None:
    table = server.table("id bigint, millpond_weight bigint")
    sink = sink_of(server, table, is_stream=False)
    sink.write(page("id BIGINT", (2, 1), (-1, 1)))
    assert found(server, table) == [(1, -1), (1, 2)]


def test_an_answer_and_its_table_are_the_same_after_each_push(server) -> None:
    table = server.table("k int PRIMARY KEY, n bigint, least bigint")
    with Engine() as engine:
        engine.execute("CREATE STREAM S (k INT, v BIGINT, ts BIGINT) TIMESTAMP BY ts")
        engine.execute(
            "CREATE QUERY q AS SELECT k, count(*) AS n, min(v) AS least FROM S [RANGE 3] "
            f"GROUP BY k INTO postgres('{server.dsn}', table = '{table}', key = 'k')"
        )
        for n in range(12):
            engine.push("S", [(n % 3, n * 7 % 5, n), (n % 4, n, n)])
            engine.run_until_idle()
            assert found(server, table) == content(engine)
        engine.execute("ALTER QUERY q DEACTIVATE")
        engine.execute("ALTER QUERY q ACTIVATE")
        engine.push("S", [(9, 9, 20)])
        engine.advance("S", 21)
        engine.run_until_idle()
        assert content(engine) == [(9, 1, 9)]
        assert found(server, table) == [(9, 1, 9)]


def test_bad_rows_go_into_a_table_whatever_bytes_they_have(server) -> None:
    table = server.table('"offset" text, reason text, raw text, raw_base64 text')
    results = Results("S#bad_rows", BAD_ROW)
    sink = postgres.sink(results, server.dsn, table=table)
    rows = [
        ("line 1", "is\0bad", "a\0b", None),
        ("line 2", "is bad", None, "/w=="),
        ("3", "r", "x", None),
    ]
    columns = "offset STRING, reason STRING, raw STRING, raw_base64 STRING"
    sink.write(page(columns, *((1, *row) for row in rows)))
    assert found(server, table) == [
        ("3", "r", "x", None),
        ("line 1", "is\\x00bad", None, "YQBi"),
        ("line 2", "is bad", None, "/w=="),
    ]


# -- faults --------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_with_the_way_out(server) -> None:
    plain, keyed = server.table("id int, b bigint"), server.table("k int PRIMARY KEY, v text")
    for table, columns, options, complaint in (
        ("nowhere", "id INT, s STRING", {}, r'CREATE TABLE nowhere \("id" integer, "s" text\)'),
        (
            plain,
            "id BIGINT",
            {},
            "column id is integer, and BIGINT goes into bigint or numeric; CAST",
        ),
        (plain, "x INT", {}, "no column x; columns there: id, b; ALTER TABLE, or rename it by AS"),
        (plain, "id INT, ID INT", {}, "two columns id"),
        (plain, "id INT", {"key": "k"}, "no column k for the key; columns: id"),
        (
            plain,
            "id INT",
            {"key": "id"},
            r"nothing keeps \(id\) unique there; ALTER TABLE .* ADD PRIMARY",
        ),
        (
            plain,
            "id INT",
            {"is_stream": False},
            "key = 'column, …', or have a column millpond_weight",
        ),
        (keyed, "v STRING", {"key": "v"}, "nothing keeps"),
        ("pg_class_oid_index", "id INT", {}, "it is no table"),
        ("a b", "id INT", {}, "syntax error|invalid name"),
    ):
        with pytest.raises(OutputError, match=complaint):
            sink_of(server, table, columns, **options).write(
                page(
                    columns,
                )
            )


def test_values_that_no_column_has_fail_and_leave_nothing(server) -> None:
    for columns, types, row, complaint in (
        ("s STRING", "s text", ("a\0b",), "column s: a text holds the character NUL"),
        ("s STRING", "s varchar(2)", ("abc",), "too long for type character varying"),
        ("t TIMESTAMP", "t timestamp", (None,), "column t: a time is not in the years 1 to 9999"),
        ("k INT", "k int PRIMARY KEY", (None,), "column k is NULL in a row"),
    ):
        table, key = server.table(types), "k" if columns == "k INT" else ""
        sink = sink_of(server, table, columns, key=key)
        rows = page(columns, (1, *row))
        if columns == "t TIMESTAMP":
            rows = rows.set_column(2, "t", pa.array([-(2**61)], pa.timestamp("us")))
        with pytest.raises(OutputError, match=complaint):
            sink.write(rows)
        assert (found(server, table), sink.mark()[1]) == ([], 0)


def test_what_is_no_key_of_a_relation_is_found(server) -> None:
    columns, table = "k INT, v INT", server.table("k int PRIMARY KEY, v int")
    sink = sink_of(server, table, columns, key="k", is_stream=False)
    for rows in ([(1, 1, 1), (1, 1, 2)], [(2, 1, 1)]):
        with pytest.raises(OutputError, match="k = 1 has several rows at one time: it is no key"):
            sink.write(page(columns, *rows))
    sink.write(page(columns, (1, 1, 1)))
    with pytest.raises(
        OutputError, match=r"duplicate key .* already exists.*ALTER QUERY q ACTIVATE"
    ):
        sink.write(page(columns, (1, 1, 2)))
    server.run(f"DELETE FROM {table}")
    for rows in ([(-1, 1, 1)], [(-1, 1, 1), (1, 1, 2)]):
        with pytest.raises(OutputError, match="of 1 rows that were written before 0 are there"):
            sink.write(page(columns, *rows))


def test_a_server_that_does_not_answer_is_the_trouble_of_one_query(tmp_path: Path) -> None:
    dsn = f"postgresql://u@/shop?host={tmp_path}"
    with Engine(store=tmp_path / "store") as engine:
        engine.execute("CREATE STREAM S (n INT, ts BIGINT) TIMESTAMP BY ts")
        engine.execute("CREATE QUERY other AS SELECT n FROM S")
        engine.execute(f"CREATE QUERY q AS SELECT n FROM S INTO postgres('{dsn}', table = 't')")
        engine.push("S", [(1, 1), (2, 2)])
        with pytest.raises(
            MillpondError, match=r"query q: table t at .*/shop: .* then ALTER QUERY"
        ):
            engine.run_until_idle()
        engine.push("S", [(3, 3)])
        engine.run_until_idle()
        assert engine.results("other")["n"].to_pylist() == [1, 2]


def test_a_sink_goes_on_when_the_server_is_back(server) -> None:
    table = server.table("id bigint")
    sink = sink_of(server, table)
    sink.write_numbered(ids(0), 0)
    server.end()
    for _ in range(2):
        with pytest.raises(OutputError, match=f"table {table} at .*ACTIVATE"):
            sink.write_numbered(ids(1), 1)
    server.start()
    sink.write_numbered(ids(1), 1)
    sink.write_numbered(ids(2), 2)
    assert found(server, table) == [(0,), (1,), (2,)]


def test_a_page_is_there_once_whose_commit_nobody_heard_of(server, monkeypatch) -> None:
    table, transact = server.table("id bigint"), postgres_sink.Connection.transact

    def unheard(connection, results, number):
        transact(connection, results, number)
        raise TimeoutError

    sink = sink_of(server, table)
    monkeypatch.setattr(postgres_sink.Connection, "transact", unheard)
    with pytest.raises(TimeoutError):
        sink.write_numbered(ids(0), 0)
    monkeypatch.undo()
    sink.write_numbered(ids(0), 0)
    sink.write_numbered(ids(1), 1)
    assert found(server, table) == [(0,), (1,)]


def test_two_processes_of_one_store_write_each_page_once(server) -> None:
    table = server.table("id bigint")
    first = sink_of(server, table)
    first.write_numbered(ids(0), 0)
    second = sink_of(server, table, resume=first.mark())
    second.write_numbered(ids(1), 1)
    first.write_numbered(ids(1), 1)
    first.write_numbered(ids(2), 2)
    assert found(server, table) == [(0,), (1,), (2,)]


def test_a_database_that_was_put_back_is_an_error(server) -> None:
    table = server.table("id bigint")
    sink = sink_of(server, table)
    sink.write_numbered(ids(0), 0)
    server.run(f"UPDATE millpond_sinks SET pages = 0 WHERE run = '{sink.mark()[0]}'")
    for again in (sink, sink_of(server, table, resume=sink.mark())):
        with pytest.raises(OutputError, match="somebody has changed that table; DROP the query"):
            again.write_numbered(ids(1), 1)


def test_who_may_not_make_a_table_is_told_what_is_missing(server) -> None:
    server.run(
        "CREATE SCHEMA narrow",
        "CREATE TABLE narrow.t (id bigint)",
        "CREATE ROLE narrow LOGIN",
        "GRANT USAGE ON SCHEMA narrow TO narrow",
        "GRANT INSERT ON narrow.t TO narrow",
    )
    dsn = server.dsn.replace("postgres@", "narrow@")
    sink = postgres.sink(Results("q", schema("id BIGINT")), dsn, table="narrow.t")
    with pytest.raises(OutputError, match=r"denied.*have somebody who may do it: CREATE TABLE"):
        sink.write(ids(0))
    server.run(
        "CREATE TABLE narrow.millpond_sinks (run text PRIMARY KEY, query text, pages bigint)",
        "GRANT ALL ON narrow.millpond_sinks TO narrow",
    )
    sink.write(ids(0))
    assert found(server, "narrow.t") == [(0,)]


# -- secrets -------------------------------------------------------------------------------


def test_a_password_is_shown_nowhere(server, monkeypatch) -> None:
    shown = "postgresql://u:hush-hush@/d"
    for dsn, options in ((shown, {}), ("postgresql://u@/d", {"password": "hush-hush"})):
        with pytest.raises(InputError, match="password = 'env:MILLPOND_SECRET_NAME'") as raised:
            postgres.sink(Results("q", schema("id BIGINT")), dsn, table="t", **options)
        assert "hush" not in str(raised.value)
    with pytest.raises(InputError, match="no connection string") as raised:
        postgres.sink(Results("q", schema("id BIGINT")), "hush hush", table="t")
    assert "hush" not in str(raised.value)
    monkeypatch.setenv("MILLPOND_SECRET_DSN", f"{server.dsn}&password=hush-hush")
    monkeypatch.setenv("MILLPOND_SECRET_PASSWORD", "hush-hush")
    table = server.table("id bigint")
    for given in (
        "env:MILLPOND_SECRET_DSN'",
        f"{server.dsn}', password = 'env:MILLPOND_SECRET_PASSWORD'",
    ):
        with Engine() as engine:
            engine.execute("CREATE STREAM S (id BIGINT, ts BIGINT) TIMESTAMP BY ts")
            engine.execute(
                f"CREATE QUERY q AS SELECT id FROM S INTO postgres('{given}, table = '{table}')"
            )
            engine.push("S", [(1, 1), (2, 2)])
            engine.run_until_idle()
            assert "hush" not in str(engine.show("all").to_pylist())
    assert found(server, table) == [(1,), (1,)]


def test_what_the_server_says_has_no_password(server, monkeypatch) -> None:
    monkeypatch.setenv("MILLPOND_SECRET_PASSWORD", "hush-hush")
    dsn = server.dsn.replace("postgres@", "hush-hush@")
    with Engine() as engine:
        engine.execute("CREATE STREAM S (id BIGINT, ts BIGINT) TIMESTAMP BY ts")
        given = f"'{dsn}', table = 't', password = 'env:MILLPOND_SECRET_PASSWORD'"
        engine.execute(f"CREATE QUERY q AS SELECT id FROM S INTO postgres({given})")
        engine.push("S", [(1, 1), (2, 2)])
        with pytest.raises(MillpondError, match="does not exist") as raised:
            engine.run_until_idle()
    assert "hush" not in str(raised.value)


def test_without_the_package_the_error_names_the_command(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with Engine() as engine:
        engine.execute("CREATE STREAM S (a INT)")
        with pytest.raises(MillpondError, match=r"pip install 'millpond\[postgres\]'"):
            engine.execute("CREATE QUERY q AS SELECT a FROM S INTO postgres('', table = 't')")


# -- kills ---------------------------------------------------------------------------------


def test_kills_lose_nothing_and_double_nothing(server, tmp_path: Path) -> None:
    kills_before_tables(server, tmp_path, seed=1, kills=4)


def kills_before_tables(server, folder: Path, seed: int, kills: int) -> None:
    """Kills an engine that writes two tables, and compares what they hold with what was read."""
    appended, merged = server.table("id bigint"), server.table("k bigint PRIMARY KEY, n bigint")
    count, file = 120 * kills, folder / "s.csv"
    file.write_text("id,ts\n" + "".join(f"{n},{n}\n" for n in range(count)))
    command = [sys.executable, "-m", "tests.connectors.postgres_lives", server.dsn, str(file)]
    done = subprocess.run(
        [*command, appended, merged, str(folder / "store"), str(seed), str(kills)],
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{kills}\n"), done.stderr[-4_000:]
    assert found(server, appended) == [(n,) for n in range(count)]
    wanted = Counter(n % 7 for n in range(count - 30, count))
    assert found(server, merged) == sorted(wanted.items())
