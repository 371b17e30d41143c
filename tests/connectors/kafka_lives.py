"""Lives of an engine between two topics, each ended by a kill: before or after what it commits.

``python -m tests.connectors.kafka_lives brokers in out store seed kills``: forks a life for each
kill and one that comes to its end.
"""

from __future__ import annotations

import sys
from pathlib import Path

from millpond import Engine
from millpond.connectors import kafka_sink
from millpond.settings import Settings
from millpond.storage.log import CommitLog
from tests.connectors.lives import killed_lives

PAGE_ROWS = 16
COMMITS = [(CommitLog, "append"), (kafka_sink.Connection, "transact")]


def live(brokers: str, read: str, written: str, store: Path) -> None:
    """Reads a topic to its end and writes another one."""
    dead = store.with_name("dead.csv")
    with Engine(Settings(page_rows=PAGE_ROWS), store=store) as engine:
        engine.execute(
            "CREATE STREAM S (id BIGINT, kafka_partition INT, kafka_offset BIGINT) "
            f"FROM kafka('{read}', brokers = '{brokers}', until = 'now') "
            f"ON BAD ROW INTO csv('{dead}')"
        )
        engine.execute(
            "CREATE QUERY q AS SELECT id, kafka_partition AS p FROM S "
            f"INTO kafka('{written}', brokers = '{brokers}', key = 'id')"
        )
        engine.finish()


def main(brokers: str, read: str, written: str, store: str, seed: str, kills: str) -> int:
    """Says how many lives were killed."""
    killed = killed_lives(
        lambda: live(brokers, read, written, Path(store)), COMMITS, int(seed), int(kills)
    )
    sys.stdout.write(f"{killed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
