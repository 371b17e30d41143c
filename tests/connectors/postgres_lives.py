"""Lives of an engine that writes tables of PostgreSQL, each ended by a kill.

``python -m tests.connectors.postgres_lives dsn file appended merged store seed kills``
"""

from __future__ import annotations

import sys
from pathlib import Path

from millpond import Engine
from millpond.connectors import postgres_sink
from millpond.settings import Settings
from millpond.storage.log import CommitLog
from tests.connectors.lives import killed_lives

PAGE_ROWS = 16
COMMITS = [(CommitLog, "append"), (postgres_sink.Connection, "transact")]


def live(dsn: str, file: str, appended: str, merged: str, store: Path) -> None:
    """Reads a file to its end; writes its rows to one table, and what is counted to another."""
    with Engine(Settings(page_rows=PAGE_ROWS), store=store) as engine:
        engine.execute(f"CREATE STREAM S (id BIGINT, ts BIGINT) TIMESTAMP BY ts FROM csv('{file}')")
        engine.execute(
            f"CREATE QUERY q AS SELECT id FROM S INTO postgres('{dsn}', table = '{appended}')"
        )
        engine.execute(
            "CREATE QUERY r AS SELECT id % 7 AS k, count(*) AS n FROM S [ROWS 30] GROUP BY id % 7 "
            f"INTO postgres('{dsn}', table = '{merged}', key = 'k')"
        )
        engine.finish()


def main(dsn: str, file: str, appended: str, merged: str, store: str, seed: str, kills: str) -> int:
    """Says how many lives were killed."""
    killed = killed_lives(
        lambda: live(dsn, file, appended, merged, Path(store)), COMMITS, int(seed), int(kills)
    )
    sys.stdout.write(f"{killed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
