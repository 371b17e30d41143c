"""Lives of an engine between tables of PostgreSQL, each ended by a kill.

``python -m tests.connectors.postgres_source_lives dsn table copy came store seed kills``: the table
changes all the while; its relation goes into a copy, and rows that come into another table.
"""

from __future__ import annotations

import random
import sys
import time
import uuid
from pathlib import Path

import psycopg

from millpond import Engine
from millpond.connectors import postgres_sink, postgres_source
from millpond.settings import Settings
from millpond.storage.log import CommitLog
from tests.connectors.lives import killed_lives
from tests.patience import wait_until

PAGE_ROWS = 8
COMMITS = [
    (CommitLog, "append"),
    (postgres_source.Slot, "pass_to"),
    (postgres_sink.Connection, "transact"),
]


def change(connection: psycopg.Connection, table: str, rng: random.Random) -> None:
    """A transaction: rows come to the table and to its log, change and go."""
    least = rng.randrange(1_000_000)
    with connection.transaction():
        rows = f"SELECT n, 'new' FROM generate_series({least}, {least} + {rng.randrange(12)}) n"
        connection.execute(f"INSERT INTO {table} {rows} ON CONFLICT DO NOTHING")
        connection.execute(f"INSERT INTO {table}_log (v) SELECT 'x' FROM ({rows}) r")
        connection.execute(f"UPDATE {table} SET v = v || 'x' WHERE k % 5 = {least % 5}")
        connection.execute(f"DELETE FROM {table} WHERE k % 7 = {least % 7}")


def live(dsn: str, table: str, copy: str, came: str, store: Path, rng: random.Random) -> None:
    """Changes a table for a while, and has the engine follow it."""
    relation = f"postgres('{dsn}', table = '{table}') WITH (changes = true)"
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        Engine(Settings(page_rows=PAGE_ROWS), store=store) as engine,
    ):
        engine.execute(f"CREATE RELATION R (k BIGINT PRIMARY KEY, v STRING) FROM {relation}")
        engine.execute(f"CREATE STREAM S (id BIGINT) FROM postgres('{dsn}', table = '{table}_log')")
        into = f"INTO postgres('{dsn}', table = '{copy}', key = 'k')"
        engine.execute(f"CREATE QUERY copied AS SELECT k, v FROM R {into}")
        into = f"INTO postgres('{dsn}', table = '{came}')"
        engine.execute(f"CREATE QUERY added AS SELECT id FROM S {into}")
        engine.start()
        (done,) = connection.execute(f"SELECT count(*) FROM {table}_log").fetchone()
        rng.seed(f"{done} {rng.random()}")  # else each life would end with the rows of another one
        for _ in range(30):
            change(connection, table, rng)
            time.sleep(0.02)
        last = f"INSERT INTO {table} VALUES (-1, %s) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
        connection.execute(last, (uuid.uuid4().hex,))  # what is there with it is there at the end
        counts = f"SELECT (SELECT count(*) FROM {table}_log), (SELECT count(*) FROM {came})"
        same = (
            f"SELECT count(*) FROM ((SELECT k, v FROM {table} EXCEPT SELECT k, v FROM {copy}) "
            f"UNION ALL (SELECT k, v FROM {copy} EXCEPT SELECT k, v FROM {table})) d"
        )
        wait_until(lambda: connection.execute(same).fetchone() == (0,))
        wait_until(lambda: len(set(connection.execute(counts).fetchone())) == 1)
        engine.stop(drain=False)


def main(dsn: str, table: str, copy: str, came: str, store: str, seed: str, kills: str) -> int:
    """Says how many lives were killed."""
    postgres_source.LOOK_SECONDS, postgres_source.PROMISE_SECONDS = 0.02, 0.1
    rng = random.Random(int(seed))
    killed = killed_lives(
        lambda: live(dsn, table, copy, came, Path(store), rng), COMMITS, int(seed), int(kills)
    )
    sys.stdout.write(f"{killed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
