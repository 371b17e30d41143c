"""Kills an engine between Kafka and PostgreSQL: ``python -m tests.connectors.joined_kills``.

A topic is joined with a table as it changes, and the results go to a topic and to two tables, while
others write both, and abort transactions. A ledger that nobody kills says what has to be there.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.connectors.joined import kills_of_a_join
from tests.kafka_broker import Broker
from tests.postgres_server import PostgresServer

AT_ONCE = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200, help="how many kills")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    broker, server, done, messages = Broker(), PostgresServer(), 0, 0
    try:
        while done < given.n:
            kills = min(AT_ONCE, given.n - done)
            with tempfile.TemporaryDirectory() as folder:
                messages += kills_of_a_join(broker, server, Path(folder), given.seed + done, kills)
            done += kills
            said = f"{done} kills, {messages} messages: lost 0, twice 0, wrong 0"
            print(said, flush=True)  # noqa: T201
    finally:
        server.close()
        broker.close()


if __name__ == "__main__":
    main()
