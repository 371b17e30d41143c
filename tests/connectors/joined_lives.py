"""Lives of an engine that joins a topic of Kafka with a table of PostgreSQL, and writes both, each
ended by a kill: before or after a commit of its own, of Kafka or of PostgreSQL, or at any time.

``python -m tests.connectors.joined_lives brokers dsn names folder seed kills``: messages and
changes of the table come all the while. Those lives that are to be killed last until they are; the
one that is not says so by the file ``last``, and ends when as many results are there as the file
``sent`` says then.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psycopg

from millpond import Engine
from millpond.connectors import kafka_sink, postgres_sink, postgres_source
from millpond.settings import Settings
from millpond.storage.log import CommitLog
from tests.connectors.lives import killed_lives
from tests.patience import wait_until

COMMITS = [
    (CommitLog, "append"),
    (kafka_sink.Connection, "transact"),
    (postgres_sink.Connection, "transact"),
    (postgres_source.Slot, "pass_to"),
]

SCRIPT = """
CREATE STREAM S (id BIGINT, item BIGINT, kafka_timestamp TIMESTAMP) TIMESTAMP BY kafka_timestamp
  FROM kafka('{0}_in', brokers = '{1}') ON BAD ROW INTO kafka('{0}_dead', brokers = '{1}');
CREATE RELATION R (item BIGINT PRIMARY KEY, version BIGINT)
  FROM postgres('{2}', table = '{0}_items') WITH (changes = true);
CREATE VIEW joined AS
  SELECT ISTREAM S.id, S.item, R.version FROM S [NOW], R WHERE S.item = R.item;
CREATE QUERY sent AS SELECT id, version FROM joined INTO kafka('{0}_out', brokers = '{1}');
CREATE QUERY told AS SELECT id, version FROM joined INTO postgres('{2}', table = '{0}_out');
CREATE QUERY counted AS SELECT item, count(*) AS n FROM joined [UNBOUNDED] GROUP BY item
  INTO postgres('{2}', table = '{0}_counts', key = 'item');
"""


def live(script: str, dsn: str, name: str, folder: Path, is_last: bool) -> None:
    """Joins for ever, or until all results are there."""
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        Engine(Settings(page_rows=16), store=folder / "store") as engine,
    ):
        engine.execute(script)
        engine.start()
        sent = folder / "sent"
        if is_last:
            (folder / "last").touch()
            wait_until(sent.exists)
        counts = f"SELECT (SELECT count(*) FROM {name}_out), (SELECT sum(n) FROM {name}_counts)"
        wait_until(lambda: is_last and set(connection.execute(counts).fetchone()) == {_all(sent)})
        wait_until(lambda: engine.result_count("sent") == _all(sent))
        engine.stop(drain=False)


def _all(sent: Path) -> int:
    return int(sent.read_text())


def main(brokers: str, dsn: str, name: str, folder: str, seed: str, kills: str) -> int:
    """Says how many lives were killed."""
    postgres_source.LOOK_SECONDS, postgres_source.PROMISE_SECONDS = 0.05, 0.1
    script = SCRIPT.format(name, brokers, dsn)

    def last() -> None:
        live(script, dsn, name, Path(folder), is_last=True)

    def doomed() -> None:
        live(script, dsn, name, Path(folder), is_last=False)

    killed = killed_lives(last, COMMITS, int(seed), int(kills), doomed)
    sys.stdout.write(f"{killed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
