"""Tables of a real PostgreSQL as sources."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path

import pytest

from millpond import Engine
from millpond.catalog import Connector, RelationEntry, StreamEntry
from millpond.connectors import open_source, postgres_dropping, postgres_polling, postgres_source
from millpond.connectors.sources import Declaration, Taken
from millpond.errors import MillpondError
from millpond.settings import Settings
from millpond.testing import check_source
from tests.connectors.declarations import schema
from tests.connectors.reading import Reading
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.postgres_server import PostgresServer

with suppress(ImportError):
    import psycopg

pytestmark = pytest.mark.slow
COLUMNS = "k BIGINT, v STRING"


@pytest.fixture(autouse=True)
def _look_often(monkeypatch) -> None:
    monkeypatch.setattr(postgres_source, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(postgres_polling, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(postgres_source, "PROMISE_SECONDS", 0.05)
    monkeypatch.setattr(postgres_source, "PASS_SECONDS", 0.05)
    monkeypatch.setattr(postgres_dropping, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(postgres_dropping, "TRIES", 100_000)


def table_of(server, columns: str = "k bigint PRIMARY KEY, v text", *rows: str) -> str:
    table = server.table(columns)
    server.run(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
    for row in rows:
        server.run(f"INSERT INTO {table} VALUES {row}")
    return table


def opened(server, table: str, columns: str = COLUMNS, *, stream=False, skips=False, **options):
    page_rows, lasts = options.pop("page_rows", 10), options.pop("lasts", True)
    call = Connector("postgres", (server.dsn,), tuple({"table": table, **options}.items()))
    entry = (
        StreamEntry("S", schema(columns), None, 0, call, skips_bad_rows=skips)
        if stream
        else RelationEntry("R", schema(columns), (), call, True)
    )
    return open_source(entry, Settings(page_rows=page_rows), lasts=lasts)


def held(server, table: str, columns: str = "k, v") -> Counter:
    return Counter(server.rows(f"SELECT {columns} FROM {table}"))


def read(server, table: str, taken=None, before: Counter | None = None, **options):
    """Reads until all that the table holds has come."""
    reading = Reading(opened(server, table, **options), taken)
    reading.until(lambda each: each.content(before) == held(server, table))
    return reading


# -- what is read --------------------------------------------------------------------------


def test_a_relation_is_the_table_and_follows_it(server) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text, more int", "(1, 'a', 5), (2, NULL, 6)")
    reading = read(server, table)
    assert sorted(reading.rows)[0][1:] == (1, 1, "a")
    server.run(
        f"INSERT INTO {table} VALUES (3, 'c')",
        f"UPDATE {table} SET v = 'b' WHERE k = 2",
        f"UPDATE {table} SET k = 4 WHERE k = 1",
        f"UPDATE {table} SET more = 7",  # which nobody reads
        f"DELETE FROM {table} WHERE k = 3",
    )
    reading.until(lambda each: each.content() == held(server, table))
    times = [row[0] for row in reading.rows]
    assert times == sorted(times)
    reading.end()


def test_values_are_what_they_were(server) -> None:
    kinds = "b bool, i int2, l int4, d float8, n numeric(9, 2), s varchar(9), day date, y bytea"
    table = table_of(
        server,
        f"k bigint PRIMARY KEY, {kinds}, t timestamptz, u timestamp(3), j jsonb",
        "(1, true, -5, 7, 'Infinity', 0.10, E'a\\t\\\\b\\n\"', '0001-01-01', "
        "'\\xcafe00', '2026-07-01 12:00:00.5+02', '9999-12-31', '{\"a\": [1]}')",
        "(2, false, NULL, NULL, 5e-324, NULL, '', '9999-12-31', '', NULL, NULL, NULL)",
    )
    columns = (
        "k BIGINT, B BOOLEAN, i INT, l BIGINT, d DOUBLE, n STRING, s STRING, day DATE, "
        "y BINARY, t TIMESTAMP, u TIMESTAMP, j STRING"
    )
    inf, noon = float("inf"), datetime(2026, 7, 1, 10, 0, 0, 500_000)
    last = datetime(9999, 12, 31)
    wanted = [
        (
            1,
            True,
            -5,
            7,
            inf,
            "0.10",
            'a\t\\b\n"',
            date(1, 1, 1),
            b"\xca\xfe\0",
            noon,
            last,
            '{"a": [1]}',
        ),
        (2, False, None, None, 5e-324, None, "", date(9999, 12, 31), b"", None, None, None),
    ]
    reading = Reading(opened(server, table, columns)).until_there(2)
    server.run(f"UPDATE {table} SET k = k + 2")
    reading.until_there(6)
    found = [row[2:] for row in reading.rows]
    assert (found[:2], [row[1:] for row in found[3::2]]) == (wanted, [row[1:] for row in wanted])
    assert found[2::2] == wanted
    reading.end()


def test_a_long_value_that_an_update_leaves_is_kept(server) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text")
    server.run(f"ALTER TABLE {table} ALTER v SET STORAGE EXTERNAL")
    reading = read(server, table)
    server.run(f"INSERT INTO {table} VALUES (1, repeat('long', 5000))")
    server.run(f"UPDATE {table} SET k = 2")
    reading.until(lambda each: each.content() == {(2, "long" * 5000): 1})
    server.run(f"DELETE FROM {table}")
    reading.until(lambda each: not each.content())
    reading.end()


@pytest.mark.parametrize("stream", [False, True])
def test_it_goes_on_behind_any_row(server, stream) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text")
    server.run(f"INSERT INTO {table} SELECT n, 'x' FROM generate_series(1, 7) n")
    first = read(server, table) if not stream else Reading(opened(server, table, stream=True))
    position = first.until_there(7).end()
    server.run(*(f"INSERT INTO {table} VALUES ({n}, NULL), ({n + 1}, 'y')" for n in (10, 20)))
    if not stream:
        server.run(f"UPDATE {table} SET v = 'z' WHERE k > 5")
    columns = COLUMNS if stream else f"ts BIGINT, weight BIGINT, {COLUMNS}"
    declaration = Declaration("S", schema(columns), None, Settings(page_rows=3))

    class From:
        """The source behind its snapshot, as if it began there."""

        def __init__(self, _: Declaration) -> None:
            self._source = opened(server, table, stream=stream, page_rows=3)
            self.ends, self.is_live = False, True
            self.pages_from, self.close = self._source.pages_from, self._source.close
            self.progress = self._source.progress

        def pages(self):
            return self._source.pages_from(position.position)

    assert len(check_source(From, declaration, rows=4 if stream else 4 + 12)) == 4 + 12 * (
        not stream
    )


def test_a_stream_is_the_rows_that_come(server) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text", "(1, 'a')")
    reading = Reading(opened(server, table, stream=True)).until_there(1)
    server.run(f"INSERT INTO {table} VALUES (3, 'c'), (2, 'b')")
    assert reading.until_there(3).rows == [(1, "a"), (3, "c"), (2, "b")]
    server.run(f"UPDATE {table} SET v = '' WHERE k = 2")
    said = reading.until_error()
    assert "a row was changed at" in said
    assert "CREATE RELATION … WITH (changes = true)" in said
    later = Reading(opened(server, table, stream=True, snapshot=False))
    wait_until(lambda: later.taken.position and later.taken.position["is_read"])
    server.run(f"INSERT INTO {table} VALUES (5, 'e')")
    assert later.until_there(1).rows == [(5, "e")]
    later.end()


def test_300_values_that_cannot_be_read_are_put_aside(server) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, t timestamp")
    query = "SELECT n, CASE WHEN n % 2 = 0 THEN 'infinity' ELSE '2026-01-01' END::timestamp"
    server.run(f"INSERT INTO {table} {query} FROM generate_series(1, 300) n")
    source = opened(server, table, "k BIGINT, t TIMESTAMP", stream=True, skips=True)
    reading = Reading(source).until_there(150, 150)
    server.run(f"INSERT INTO {table} {query} FROM generate_series(301, 600) n")
    reading.until_there(300, 300).end()
    assert [row[0] for row in reading.rows] == list(range(1, 600, 2))
    assert [each.raw for each in reading.bad] == [
        b'{"k": "%d", "t": "infinity"}' % n for n in range(2, 601, 2)
    ]
    assert all("'infinity' is not a TIMESTAMP" in each.reason for each in reading.bad)


# -- exactly once --------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("collation", ["C", "und-x-icu"])
def test_whoever_stops_in_the_snapshot_goes_on_exactly(server, seed, collation) -> None:
    """Each life has another snapshot; rows move over the keys between them meanwhile."""
    rng = random.Random(seed)
    table = table_of(server, f'k bigint, v text COLLATE "{collation}", PRIMARY KEY (v, k)')
    server.run(f"INSERT INTO {table} SELECT n, 'É' || n FROM generate_series(1, 60) n")
    before, taken = Counter(), None
    for life in range(5):
        server.run(
            f"UPDATE {table} SET v = v || {life} WHERE k % 7 = {rng.randrange(7)}",
            f"UPDATE {table} SET v = 'Z' || v WHERE k % 11 = {rng.randrange(11)}",
            f"DELETE FROM {table} WHERE k % 17 = {rng.randrange(17)}",
            f"INSERT INTO {table} VALUES ({1000 + life}, 'e'), ({2000 + life}, '')",
        )
        source = opened(server, table, page_rows=rng.randrange(3, 12))
        pages = source.pages() if taken is None else source.pages_from(taken)
        for _ in range(2 if taken is None else 1):
            page = next(pages)
            rows = page.rows.slice(0, rng.randrange(page.rows.num_rows + 1))
            taken = page.position_after(rows.num_rows)
            before.update((row["k"], row["v"]) for row in rows.to_pylist())
        pages.close()
    assert len(taken["chunks"]) >= 3
    reading = Reading(opened(server, table, page_rows=7), Taken(sum(before.values()), 0, taken))
    reading.until(lambda each: each.content(before) == held(server, table))
    server.run(f"UPDATE {table} SET v = '', k = -k")
    reading.until(lambda each: each.content(before) == held(server, table))
    reading.end()


@pytest.mark.parametrize("seed", range(3))
def test_any_transactions_come_once_and_whole(server, seed) -> None:
    rng, table = random.Random(seed), table_of(server)
    before, taken = Counter(), None
    with psycopg.connect(server.dsn) as one, psycopg.connect(server.dsn) as other:
        for life in range(6):
            reading = Reading(
                opened(server, table, page_rows=rng.randrange(1, 9)), taken, commits=True
            )
            for _ in range(6):
                _transact(rng, table, rng.choice((one, other)))
            one.rollback()
            other.commit()
            if life % 2:
                reading.until(lambda each: each.content(before) == held(server, table))  # noqa: B023
            taken = reading.end()
            before = reading.content(before)
    reading = read(server, table, taken, before)
    reading.end()


def _transact(rng: random.Random, table: str, connection) -> None:
    """Some changes, kept, partly kept, thrown away or not decided yet."""
    for _ in range(rng.randrange(5)):
        k = rng.randrange(1_000)
        with connection.transaction(force_rollback=rng.random() < 0.2):
            connection.execute("SET lock_timeout = '10ms'")
            with suppress(psycopg.errors.LockNotAvailable), connection.transaction():
                match rng.randrange(3):
                    case 0:
                        some = f"SELECT n, {k} FROM generate_series({k}, {k} + 9) n"
                        connection.execute(f"INSERT INTO {table} {some} ON CONFLICT DO NOTHING")
                    case 1:
                        connection.execute(f"UPDATE {table} SET v = v || 'x' WHERE k % 5 = {k % 5}")
                    case _:
                        connection.execute(f"DELETE FROM {table} WHERE k % 9 = {k % 9}")
    if rng.random() < 0.6:
        connection.commit()


def slot(server, source) -> tuple[int, int]:
    """How far the slot of a source is, in bytes, and how much the server keeps for it."""
    ((confirmed, kept),) = server.rows(
        "SELECT confirmed_flush_lsn - '0/0', pg_current_wal_lsn() - restart_lsn "
        f"FROM pg_replication_slots WHERE slot_name = '{source._slot_name}'"
    )
    return int(confirmed), int(kept)


def test_a_slot_is_passed_behind_commits_only_and_while_the_table_is_idle(server) -> None:
    table, other = table_of(server), server.table("a text")
    reading = read(server, table)
    source = reading.source
    server.run(f"INSERT INTO {table} VALUES (1, 'a')")
    reading.until_there(1)
    first = slot(server, source)[0]
    server.run(f"INSERT INTO {other} SELECT repeat('x', 1000) FROM generate_series(1, 5000)")
    position = reading.taken.position
    wait_until(lambda: reading.taken.position["lsn"] != position["lsn"])
    assert slot(server, source)[0] == first  # nothing is in a commit
    assert slot(server, source)[1] > 4_000_000
    reading.commits = True
    server.run("CHECKPOINT")
    wait_until(lambda: slot(server, source)[0] > first + 4_000_000)
    wait_until(lambda: server.run("CHECKPOINT") or slot(server, source)[1] < 1_000_000)
    reading.end()


def test_an_idle_table_holds_no_stream_up(server) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text", "(1, 'a')")
    with Engine() as engine:
        engine.execute("CREATE STREAM S (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts")
        engine.execute(
            f"CREATE RELATION R (k BIGINT, v STRING) FROM postgres('{server.dsn}', "
            f"table = '{table}') WITH (changes = true)"
        )
        engine.execute("CREATE QUERY q AS SELECT v FROM S [NOW], R WHERE S.k = R.k")
        engine.start()
        engine.push("S", [(1, datetime(2020, 1, 1)), (1, datetime(2020, 1, 2))])
        engine.advance("S", datetime(2020, 2, 1))
        wait_until(lambda: engine.result_count("q") == 2)
        engine.stop(drain=False)


def left_of(server, name: str) -> tuple[int, int]:
    """How many slots and publications there are of an input."""
    slots = f"SELECT count(*) FROM pg_replication_slots WHERE slot_name LIKE 'millpond_{name}_%'"
    (slot,), (publication,) = server.rows(
        f"{slots} UNION ALL "
        f"SELECT count(*) FROM pg_publication WHERE pubname LIKE 'millpond_{name}_%'"
    )
    return slot, publication


def test_drop_drops_the_slot_and_a_run_without_a_store_keeps_none(server, tmp_path) -> None:
    table = table_of(server)
    declare = (
        f"CREATE RELATION Dropped ({COLUMNS}) FROM postgres('{server.dsn}', table = '{table}') "
        "WITH (changes = true); CREATE QUERY q AS SELECT k FROM Dropped"
    )
    server.run(f"INSERT INTO {table} VALUES (1, 'a')")
    for store in (None, tmp_path / "store"):
        with Engine(store=store) as engine:
            engine.execute(declare)
            engine.run_sources(rows=1)
            assert left_of(server, "dropped") == (1, 1)
        kept = int(store is not None)
        wait_until(lambda: left_of(server, "dropped") == (kept, kept))  # noqa: B023
    with Engine(store=tmp_path / "store") as engine:  # which has not read it
        engine.execute("DROP QUERY q; DROP RELATION Dropped")
    assert left_of(server, "dropped") == (0, 0)


def test_drop_waits_for_whoever_reads_the_slot(server, monkeypatch) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text", "(1, 'a')")
    reading = Reading(opened(server, table, slot="millpond_busy")).until_there(1)
    reading.end()
    tried, drop_slot = [], postgres_dropping.drop_slot
    monkeypatch.setattr(
        postgres_dropping, "drop_slot", lambda *given: tried.append(given) or drop_slot(*given)
    )
    name = reading.source._slot_name
    with psycopg.connect(server.dsn, autocommit=True, replication="database") as busy:
        options = f"(proto_version '1', publication_names '{name}')"
        busy.pgconn.exec_(f"START_REPLICATION SLOT {name} LOGICAL 0/0 {options}".encode())
        thread = reading.source.forget()
        wait_until(lambda: len(tried) > 3)
        assert left_of(server, "busy") == (1, 1)
        busy.pgconn.finish()
    thread.join(PATIENCE_SECONDS)
    assert left_of(server, "busy") == (0, 0)


def test_drop_waits_for_whoever_makes_the_slot(server, monkeypatch) -> None:
    table = table_of(server)
    with psycopg.connect(server.dsn) as late:
        late.execute("SELECT pg_current_xact_id()")  # the slot is there when this has ended
        reading = Reading(opened(server, table, slot="millpond_slow"))
        wait_until(lambda: left_of(server, "slow")[1])
        reading.source.close()
        thread = reading.source.forget()
        assert thread.is_alive()
    thread.join(PATIENCE_SECONDS)
    assert left_of(server, "slow") == (0, 0)
    reading.end()


def test_what_others_may_do_with_a_table_stays(server) -> None:
    """A publication has PostgreSQL refuse UPDATE and DELETE of tables without identity."""
    bare = server.table("k bigint, v text")
    late = server.table("k bigint PRIMARY KEY DEFERRABLE, v text")
    for table, stream in ((bare, True), (late, True), (bare, False)):
        server.run(f"INSERT INTO {table} VALUES (1, 'a')")
        said = Reading(opened(server, table, stream=stream)).until_error()
        assert "ALTER TABLE … REPLICA IDENTITY FULL" in said
        assert ("no replica identity" in said and "poll = 'key'" in said) == stream
        server.run(f"UPDATE {table} SET v = 'b'", f"DELETE FROM {table}")
    server.run(
        f"CREATE UNIQUE INDEX i_{bare} ON {bare} (k)", f"ALTER TABLE {bare} ALTER k SET NOT NULL"
    )
    server.run(f"ALTER TABLE {bare} REPLICA IDENTITY USING INDEX i_{bare}")
    server.run(f"INSERT INTO {bare} VALUES (1, 'a')")
    reading = Reading(opened(server, bare, stream=True)).until_there(1)
    server.run(f"UPDATE {bare} SET v = 'c'")
    assert "a row was changed at" in reading.until_error()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("FOR ALL TABLES", ""),
        ("FOR TABLE ONLY {t}", ""),
        ("FOR TABLE ONLY {t} WITH (publish = 'insert')", "has not all changes of the table"),
        ("FOR TABLE ONLY {t} WHERE (k > 1)", "has not all changes of the table"),
        ("FOR TABLE ONLY {t} (k)", "has not all changes of the table"),
        ("", "has not all changes .* or have it FOR TABLE ONLY .* or FOR ALL TABLES"),
        ("FOR TABLE {t} WITH (publish_via_partition_root = true)", ""),
    ],
)
def test_a_named_publication_has_all_changes_of_the_table(server, what, said) -> None:
    table = table_of(server)
    server.run(f"CREATE PUBLICATION p_{table} {what.format(t=table)}")
    reading = Reading(opened(server, table, publication=f"p_{table}"))
    try:
        if said:
            assert re.search(said, reading.until_error())
            return
        server.run(f"INSERT INTO {table} VALUES (1, 'a')", f"UPDATE {table} SET v = 'b'")
        reading.until(lambda each: each.content() == held(server, table))
        reading.end()
    finally:
        server.run(f"DROP PUBLICATION p_{table}")


def test_a_partition_is_read_unless_it_is_published_as_the_whole(server) -> None:
    whole = server.table("k bigint, v text) PARTITION BY RANGE (k")
    part = f"{whole}_1"
    server.run(
        f"CREATE TABLE {part} PARTITION OF {whole} FOR VALUES FROM (0) TO (100)",
        f"ALTER TABLE {part} REPLICA IDENTITY FULL",
        f"ALTER TABLE {whole} REPLICA IDENTITY FULL",
        f"CREATE PUBLICATION p_{whole} FOR TABLE {whole}, {part}",
    )
    reading = Reading(opened(server, part, publication=f"p_{whole}"))
    server.run(f"INSERT INTO {whole} VALUES (1, 'a')")
    taken = reading.until_there(1).end()
    server.run(f"ALTER PUBLICATION p_{whole} SET (publish_via_partition_root = true)")
    for before in (None, taken):
        said = Reading(opened(server, part, publication=f"p_{whole}"), before).until_error()
        assert "publish_via_partition_root = false" in said


# -- polling -------------------------------------------------------------------------------


def test_a_table_is_polled_by_a_column_whose_values_grow(server) -> None:
    table = server.table("k bigint PRIMARY KEY, v text")
    server.run(f"INSERT INTO {table} SELECT n, 'x' FROM generate_series(1, 25) n")
    declaration = Declaration("S", schema(COLUMNS), None, Settings(page_rows=10))
    rows = check_source(lambda _: opened(server, table, stream=True, poll="k"), declaration, 25)
    assert rows == [(n, "x") for n in range(1, 26)]
    reading = Reading(opened(server, table, stream=True, poll="k", snapshot=False))
    wait_until(lambda: reading.taken.position)
    with psycopg.connect(server.dsn) as late:
        late.execute(f"INSERT INTO {table} VALUES (30, 'late')")
        server.run(f"INSERT INTO {table} VALUES (31, 'soon')")
    assert reading.until_there(2).rows == [(30, "late"), (31, "soon")]
    reading.end()


def test_a_poll_waits_for_an_open_transaction_without_an_error(server, caplog, monkeypatch) -> None:
    answers, behind = [], postgres_polling._Query.behind
    monkeypatch.setattr(
        postgres_polling._Query,
        "behind",
        lambda *given: answers.append(behind(*given)) or answers[-1],
    )
    table = server.table("k bigint PRIMARY KEY, v text")
    server.run(f"INSERT INTO {table} VALUES (1, 'old')")
    taken = Reading(opened(server, table, stream=True, poll="k")).until_there(1).end()
    with psycopg.connect(server.dsn) as late:
        late.execute(f"INSERT INTO {table} VALUES (2, 'late')")
        rows = "SELECT n, repeat('x', 100) FROM generate_series(3, 2000) n"
        server.run(f"INSERT INTO {table} {rows}")
        reading = Reading(opened(server, table, stream=True, poll="k", page_rows=2000), taken)
        asked = len(answers)
        wait_until(lambda: reading.error or len(answers) > asked + 3)
        assert (reading.rows, reading.error) == ([], None)
    assert [row[0] for row in reading.until_there(1999).rows] == list(range(2, 2001))
    assert "it is asked again" not in caplog.text
    reading.end()


def test_a_poll_for_what_comes_has_what_is_open_at_its_beginning_and_no_more(server) -> None:
    table = server.table("k bigint PRIMARY KEY, v text")
    server.run(f"INSERT INTO {table} VALUES (1, 'old')")
    with psycopg.connect(server.dsn) as late:
        late.execute(f"INSERT INTO {table} VALUES (2, 'late'), (4, 'late')")
        server.run(
            f"INSERT INTO {table} VALUES (3, 'there')", f"INSERT INTO {table} VALUES (5, 't')"
        )
        reading = Reading(opened(server, table, stream=True, poll="k", snapshot=False))
        wait_until(lambda: reading.taken.position)
        server.run(f"INSERT INTO {table} VALUES (6, 'soon')")
    assert reading.until_there(3).rows == [(2, "late"), (4, "late"), (6, "soon")]
    taken = reading.end()
    server.run(f"INSERT INTO {table} VALUES (7, 'next')")
    reading = Reading(opened(server, table, stream=True, poll="k", snapshot=False), taken)
    assert reading.until_there(1).rows == [(7, "next")]
    reading.end()
    empty = server.table("k bigint PRIMARY KEY, v text")
    reading = Reading(opened(server, empty, stream=True, poll="k", snapshot=False))
    wait_until(lambda: reading.taken.position)
    server.run(f"INSERT INTO {empty} VALUES (1, 'first')")
    assert reading.until_there(1).rows == [(1, "first")]
    reading.end()


def test_what_could_pass_rows_over_is_not_polled_by(server) -> None:
    table = server.table("k bigint UNIQUE, v text NOT NULL")
    for key, said in (("k", "not UNIQUE and NOT NULL"), ("v", "not UNIQUE"), ("x", "no column x")):
        reading = Reading(opened(server, table, stream=True, poll=key))
        assert said in reading.until_error()


# -- faults --------------------------------------------------------------------------------


def test_what_cannot_be_read_is_refused_with_the_way_out(server) -> None:
    plain = server.table("k bigint PRIMARY KEY, v text")
    parts = server.table("k bigint) PARTITION BY RANGE (k")
    for table, columns, said in (
        ("nowhere", COLUMNS, "table nowhere: it is not there"),
        (plain, COLUMNS, "ALTER TABLE … REPLICA IDENTITY FULL"),
        (
            plain,
            "k INT",
            "column k is bigint, which is no INT; declare it as BIGINT or DECIMAL or STRING",
        ),
        (plain, "x INT", "no column x; columns there: k, v"),
        (parts, "k BIGINT", "it has partitions"),
    ):
        reading = Reading(opened(server, table, columns))
        assert said in reading.until_error()
        reading.end()


def test_generated_columns_are_polled_only(server) -> None:
    columns, declared = "k bigint PRIMARY KEY, v text", "k BIGINT, w STRING"
    table = table_of(server, f"{columns}, w text GENERATED ALWAYS AS (v || '!') STORED")
    server.run(f"INSERT INTO {table} VALUES (1, 'a')")
    for stream in (False, True):
        reading = Reading(opened(server, table, declared, stream=stream))
        assert "column w is generated, and the log does not have" in reading.until_error()
        assert reading.rows == []
    reading = Reading(opened(server, table, declared, stream=True, poll="k")).until_there(1)
    assert reading.rows == [(1, "a!")]
    reading.end()
    read(server, table).end()  # without it
    table = table_of(
        server, "k bigint, v text, w bigint GENERATED ALWAYS AS (k) STORED PRIMARY KEY"
    )
    assert "w of the PRIMARY KEY is generated" in Reading(opened(server, table)).until_error()


def test_a_table_of_which_a_policy_hides_rows_is_refused(server, monkeypatch) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text", "(1, 'a')", "(2, 'b')")
    server.run(
        f"CREATE ROLE r_{table} LOGIN REPLICATION",
        f"GRANT SELECT ON {table} TO r_{table}",
        f"CREATE PUBLICATION p_{table} FOR TABLE {table}",
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY p ON {table} USING (k > 1)",
    )
    monkeypatch.setattr(server, "dsn", server.dsn.replace("postgres@", f"r_{table}@"))
    for how in ({}, {"stream": True}, {"stream": True, "poll": "k"}):
        reading = Reading(opened(server, table, publication=f"p_{table}", **how))
        said = reading.until_error()
        assert "row-level security" in said
        assert "as a user with BYPASSRLS" in said
        assert reading.rows == []


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ("TRUNCATE {t}", "it was truncated at .*use DELETE FROM"),
        ("ALTER TABLE {t} ALTER v TYPE varchar(9)", "its columns have changed.*declare it again"),
        ("ALTER TABLE {t} DROP v; INSERT INTO {t} VALUES (7)", "its columns have changed"),
        ("ALTER TABLE {t} RENAME v TO w", "its columns have changed"),
        ("ALTER TABLE {t} DROP v, ADD v text", "columns that were dropped or renamed"),
        ("ALTER TABLE {t} ALTER v TYPE text USING upper(v)", "was written anew, with columns"),
        ("ALTER TABLE {t} REPLICA IDENTITY DEFAULT; DELETE FROM {t}", "REPLICA IDENTITY FULL"),
        ("DROP TABLE {t}", "its columns have changed: .*gone|not in the publication any more"),
        ("DROP PUBLICATION {p}", "not in the publication any more"),
    ],
)
def test_a_table_that_becomes_another_one_is_an_error(server, done, said) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text", "(1, 'a')")
    reading = read(server, table)
    server.run(f"INSERT INTO {table} VALUES (2, 'b')", f"ALTER TABLE {table} ADD more int")
    reading.until_there(2)
    for statement in done.format(t=table, p=reading.source._slot_name).split(";"):
        server.run(statement)
    with pytest.raises(MillpondError, match=said):
        reading.until(lambda _: False)
    assert reading.content() == {(1, "a"): 1, (2, "b"): 1}


def test_columns_that_change_their_names_are_other_ones(server) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text, w text", "(1, 'a', 'b')")
    reading = Reading(opened(server, table, "k BIGINT, v STRING, w STRING")).until_there(1)
    swap = (("v", "x"), ("w", "v"), ("x", "w"))
    with psycopg.connect(server.dsn) as connection:
        for before, name in swap:
            connection.execute(f"ALTER TABLE {table} RENAME {before} TO {name}")
    assert "columns that were dropped or renamed" in reading.until_error()


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ("ALTER TABLE {t} DROP v; ALTER TABLE {t} ADD v text", "dropped or renamed"),
        ("ALTER TABLE {t} ALTER v TYPE text USING upper(v)", "was written anew, with columns"),
        ("ALTER PUBLICATION {p} DROP TABLE {t}", "is not in the publication any more"),
        (
            "ALTER PUBLICATION {p} DROP TABLE {t}; INSERT INTO {t} VALUES (2, 'lost'); {put_back}",
            "was taken out of the publication and put back",
        ),
    ],
)
def test_what_was_done_between_two_runs_is_seen_before_a_row_comes(server, done, said) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text", "(1, 'a')")
    reading = read(server, table)
    wait_until(lambda: reading.taken.position["lsn"] != "0/0")
    taken = reading.end()
    name = reading.source._slot_name
    put_back = f"ALTER PUBLICATION {name} ADD TABLE {table}"
    for statement in done.format(t=table, p=name, put_back=put_back).split(";"):
        server.run(statement)
    server.run(f"INSERT INTO {table} VALUES (3, 'c')")
    again = Reading(opened(server, table), taken)
    assert said in again.until_error()
    assert again.rows == []


def test_a_table_that_is_only_packed_is_the_same(server) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text", "(1, 'a')")
    reading = read(server, table)
    server.run(
        f"VACUUM FULL {table}",
        f"CLUSTER {table} USING {table}_pkey",
        f"ALTER TABLE {table} ADD more float DEFAULT random()",  # which writes all rows anew
        f"INSERT INTO {table} VALUES (2, 'b')",
    )
    taken = reading.until_there(2).end()
    server.run(f"ALTER TABLE {table} ALTER v SET STATISTICS 7", f"UPDATE {table} SET v = 'c'")
    reading = read(server, table, taken, reading.content())
    server.run(f"VACUUM FULL {table}", f"DELETE FROM {table}")
    reading.until(lambda each: len(each.rows) == 6)
    reading.end()


def test_a_slot_or_table_that_is_gone_is_an_error(server) -> None:
    table = table_of(server, "k bigint PRIMARY KEY, v text", "(1, 'a')")
    reading = read(server, table)
    wait_until(lambda: reading.taken.position["lsn"] != "0/0")
    taken, name = reading.end(), reading.source._slot_name
    server.run(f"INSERT INTO {table} VALUES (2, 'b')")
    server.run(f"SELECT pg_replication_slot_advance('{name}', pg_current_wal_lsn())")
    said = Reading(opened(server, table), taken).until_error()
    assert f"slot {name} has passed what was not read: changes are lost; DROP it" in said
    server.run(f"SELECT pg_drop_replication_slot('{name}')")
    assert "is not there any more" in Reading(opened(server, table), taken).until_error()
    server.run(f"DROP TABLE {table}", f"CREATE TABLE {table} (k bigint, v text)")
    assert "it was made anew" in Reading(opened(server, table), taken).until_error()


def test_a_server_that_goes_away_is_waited_for(server, caplog) -> None:
    other = PostgresServer()
    try:
        table = table_of(other, "k bigint PRIMARY KEY, v text", "(1, 'a')")
        reading = read(other, table)
        other.end()
        wait_until(lambda: "it is asked again" in caplog.text)
        other.start()
        other.run(f"INSERT INTO {table} VALUES (2, 'b')")
        reading.until(lambda each: each.content() == held(other, table))
        reading.end()
    finally:
        other.close()
    away = Reading(opened(other, table))
    assert f"table {table}: " in away.until_error()


def test_a_server_without_logical_replication_is_named_with_the_way_out(server) -> None:
    other = PostgresServer(wal_level="replica")
    try:
        table = table_of(other)
        said = Reading(opened(other, table)).until_error()
        assert "wal_level = logical" in said
        assert "poll = 'key'" in said
        other.run(f"INSERT INTO {table} VALUES (1, 'a')")
        polling = Reading(opened(other, table, stream=True, poll="k")).until_there(1)
        polling.end()
    finally:
        other.close()


def test_a_password_is_shown_nowhere(server, monkeypatch) -> None:
    monkeypatch.setenv("MILLPOND_SECRET_PASSWORD", "hush-hush")
    dsn = server.dsn.replace("postgres@", "hush-hush@")
    for how in ("", ", poll = 'k'"):
        with Engine() as engine:
            with pytest.raises(MillpondError, match="password = 'env:MILLPOND_SECRET_NAME'"):
                engine.execute(
                    f"CREATE STREAM S (k INT) FROM postgres('{dsn}', table = 't', password = 'p')"
                )
            engine.execute(
                f"CREATE STREAM S (k INT) FROM postgres('{dsn}', table = 't'{how}, "
                "password = 'env:MILLPOND_SECRET_PASSWORD')"
            )
            engine.execute("CREATE QUERY q AS SELECT k FROM S")
            with pytest.raises(MillpondError, match="does not exist") as raised:
                engine.run_sources(rows=1)
            assert "hush" not in str(raised.value)
            assert "password = 'env:MILL" in str(engine.show("streams").to_pylist())


def test_without_the_package_the_error_names_the_command(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with Engine() as engine, pytest.raises(MillpondError, match=r"pip install 'millpond\[postg"):
        engine.execute("CREATE STREAM S (k INT) FROM postgres('', table = 't')")


# -- kills ---------------------------------------------------------------------------------


def test_kills_lose_nothing_and_double_nothing(server, tmp_path) -> None:
    kills_behind_tables(server, tmp_path, seed=1, kills=4)


def kills_behind_tables(server, folder: Path, seed: int, kills: int) -> None:
    """Kills an engine that follows two tables, and compares what it wrote with what they hold."""
    table, copy = table_of(server), server.table("k bigint PRIMARY KEY, v text")
    came = server.table("id bigint")
    server.run(f"INSERT INTO {table} SELECT n, 'old' FROM generate_series(1, 50) n")
    server.run(f"CREATE TABLE {table}_log (id bigserial PRIMARY KEY, v text)")
    command = [sys.executable, "-m", "tests.connectors.postgres_source_lives", server.dsn, table]
    done = subprocess.run(
        [*command, copy, came, str(folder / "store"), str(seed), str(kills)],
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, f"{kills}\n"), done.stderr[-4_000:]
    assert held(server, copy) == held(server, table)
    assert held(server, came, "id") == held(server, f"{table}_log", "id")
