"""Kills an engine that follows a file, one between tables of Delta Lake, one between tables of
Iceberg, and one that follows tables of PostgreSQL:
``python -m tests.connectors.source_kills --n 200``."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.connectors.test_delta import kills_between_tables
from tests.connectors.test_followed_files import kills_while_a_file_grows
from tests.connectors.test_iceberg import kills_between_icebergs
from tests.connectors.test_postgres_source import kills_behind_tables
from tests.postgres_server import PostgresServer

AT_ONCE = 25

Killing = Callable[[Path, int, int], None]
"""Kills so many times, by a folder, a seed and that number."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200, help="how many kills of each")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    _kill("a file that grows", kills_while_a_file_grows, given.seed, given.n)
    _kill("tables of Delta Lake", kills_between_tables, given.seed, given.n)
    _kill("tables of Iceberg", kills_between_icebergs, given.seed, given.n)
    server = PostgresServer()
    try:
        _kill("tables", lambda *each: kills_behind_tables(server, *each), given.seed, given.n)
    finally:
        server.close()


def _kill(what: str, killing: Killing, seed: int, n: int) -> None:
    for done in range(0, n, AT_ONCE):
        with tempfile.TemporaryDirectory() as folder:
            killing(Path(folder), seed + done, min(AT_ONCE, n - done))
        count = min(n, done + AT_ONCE)
        print(f"{what}: {count} kills, nothing lost, nothing twice", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
