"""Asks PostgreSQL at every instant what the engine says: ``python -m tests.postgres_oracle``.

At each instant what the windows hold is put into tables (a view there finds the sessions), and the
text of each query is run there as it stands: an oracle that shares nothing with the engine or with
the reference evaluator.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from decimal import Decimal

from rich.console import Console

from millpond import Engine
from tests.postgres_queries import COLUMNS, PostgresQueries

RANGE, ROWS, GAP, LAST = 4, 5, 3, 14
DDL = f"""
CREATE STREAM S (t BIGINT, k INT, v INT, s STRING, n INT) TIMESTAMP BY t;
CREATE RELATION R (k INT, v INT, s STRING, n INT) FROM push() WITH (changes = true);
CREATE VIEW A AS RELATION SELECT k, v, s, n FROM S [RANGE {RANGE}];
CREATE VIEW B AS RELATION SELECT k, v, s, n FROM S [ROWS {ROWS}];
CREATE VIEW C AS RELATION SELECT k, v, s, n, window_start, window_end
  FROM S [SESSION {GAP} PARTITION BY k];
"""
SESSIONS = f"""
CREATE TEMPORARY VIEW C AS WITH
marked AS (SELECT *, t - lag(t) OVER (PARTITION BY k ORDER BY t, n) AS far FROM elements),
numbered AS (
  SELECT *, count(*) FILTER (WHERE far IS NULL OR far >= {GAP}) OVER (PARTITION BY k ORDER BY t, n)
    AS session FROM marked
),
bounded AS (
  SELECT *, min(t) OVER w AS window_start, max(t) OVER w + {GAP} AS window_end
  FROM numbered WINDOW w AS (PARTITION BY k, session)
)
SELECT k, v, s, n, window_start, window_end FROM bounded WHERE window_end > (SELECT at FROM moment)
"""
"""What the sessions hold, from all elements that have come and the time."""


class Content:
    """What came: elements of the stream, and changes of the relation, of each instant."""

    def __init__(self, random):
        times = sorted(random.randint(1, LAST) for _ in range(14))
        self.elements = [(t, self.row(random, n)) for n, t in enumerate(times)]
        begins = [(random.randint(1, LAST), self.row(random, 100 + n)) for n in range(5)]
        self.stays = [(t, t + random.randint(1, LAST), row) for t, row in begins]

    @staticmethod
    def row(random, number):
        text = random.choice([None, "a", "b", "B", "ab"])
        return (random.randint(0, 2), random.choice([None, 0, 1, 2, 2]), text, number)

    def changes(self):
        """The changes of the relation as they are pushed."""
        told = [(at, "+", row) for at, _, row in self.stays]
        told += [(until, "-", row) for _, until, row in self.stays]
        return sorted(told, key=lambda change: change[0])

    def instants(self):
        """All times at which a table may change."""
        moved = {t + step for t, _ in self.elements for step in (0, RANGE + 1, GAP)}
        return sorted(moved | {at for at, *_ in self.changes()})

    def tables(self, instant):
        """What each table holds."""
        came = [(t, row) for t, row in self.elements if t <= instant]
        return {
            "A": [row for t, row in came if t >= instant - RANGE],
            "B": [row for _, row in came[-ROWS:]],
            "R": [row for at, until, row in self.stays if at <= instant < until],
            "elements": [(*row, t) for t, row in came],
            "moment": [(instant,)],
        }


def answered(content, queries):
    """{query: [(ts, weight, row)]} of an engine."""
    with Engine({"driver_rows": 10**9}) as engine:
        engine.execute(DDL)
        for number, text in enumerate(queries):
            engine.execute(f"CREATE QUERY q{number} AS RELATION {text}")
        engine.push_changes("R", content.changes())
        engine.push("S", [(t, *row) for t, row in content.elements])
        engine.finish()
        found = [engine.results(f"q{number}").to_pylist() for number in range(len(queries))]
    return [[(r.pop("ts"), r.pop("weight"), tuple(r.values())) for r in rows] for rows in found]


def prepare(connection):
    """Makes the tables, whose texts are in order of their bytes as everywhere in the engine."""
    types = {"INT": "integer", "STRING": 'text COLLATE "C"'}
    listed = ", ".join(f"{name} {types[kind]}" for name, kind in COLUMNS)
    for table in ("A", "B", "R"):
        connection.execute(f"CREATE TEMPORARY TABLE {table} ({listed})")
    connection.execute(f"CREATE TEMPORARY TABLE elements ({listed}, t bigint)")
    connection.execute("CREATE TEMPORARY TABLE moment (at bigint)")
    connection.execute(SESSIONS)


def fill(connection, tables):
    connection.execute(f"TRUNCATE {', '.join(tables)}")
    with connection.cursor() as cursor:
        for name, rows in tables.items():
            if rows:
                marks = ", ".join(["%s"] * len(rows[0]))
                cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)


def plain(row):
    """A row whose numbers are compared by value."""
    return tuple(
        round(float(x), 9) if isinstance(x, (int, float, Decimal)) and x is not True else x
        for x in row
    )


def differences(connection, seed, count):
    """Compares so many random queries; (query, instant, too much, too little) of the first wrong
    instant of each."""
    rng = random.Random(seed)
    content, drawn = Content(rng), PostgresQueries(rng)
    queries = [drawn.query() for _ in range(count)]
    answers, wrong = answered(content, queries), {}
    for instant in content.instants():
        fill(connection, content.tables(instant))
        for number, text in enumerate(queries):
            held = Counter()
            for ts, weight, row in answers[number]:
                held[plain(row)] += weight if ts is None or ts <= instant else 0
            expected = Counter(map(plain, connection.execute(text).fetchall()))
            if +held != expected and number not in wrong:
                wrong[number] = (text, instant, dict(held - expected), dict(expected - held))
    return list(wrong.values())


def say(text):
    Console().print(text, highlight=False, markup=False, soft_wrap=True)


def main(given=None):
    """Compares many; 1 if any differs."""
    import psycopg  # noqa: PLC0415 (the generator needs none)

    from tests.postgres_server import PostgresServer  # noqa: PLC0415

    parser = argparse.ArgumentParser(prog="python -m tests.postgres_oracle", description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="queries to compare")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--queries", type=int, default=20, help="queries in one engine")
    options = parser.parse_args(given)
    server, failed, done = PostgresServer(), 0, 0
    try:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            prepare(connection)
            for seed in range(options.seed, options.seed + -(-options.n // options.queries)):
                for text, instant, surplus, missing in differences(
                    connection, seed, options.queries
                ):
                    failed += 1
                    say(f"seed {seed}: {text}\n  at {instant}: {surplus} for {missing}")
                done += options.queries
    finally:
        server.close()
    say(f"seed {options.seed}: {done} queries, {failed} differ from PostgreSQL")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
