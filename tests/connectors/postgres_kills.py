"""Kills an engine at tables of PostgreSQL: ``python -m tests.connectors.postgres_kills``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.connectors.test_postgres_sink import kills_before_tables
from tests.postgres_server import PostgresServer

AT_ONCE = 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200, help="how many kills")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    server, done = PostgresServer(), 0
    try:
        while done < given.n:
            kills = min(AT_ONCE, given.n - done)
            with tempfile.TemporaryDirectory() as folder:
                kills_before_tables(server, Path(folder), given.seed + done, kills)
            done += kills
            print(f"{done} kills, nothing lost, nothing twice", flush=True)  # noqa: T201
    finally:
        server.close()


if __name__ == "__main__":
    main()
