"""Lives of an engine behind a topic of MQTT, each ended by a kill: before or after a commit, before
or after an acknowledgement, or at any time.

``python -m tests.connectors.mqtt_lives broker topic folder seed kills count``: forks a life for
each kill and one that comes to its end, when so many messages have come.
"""

from __future__ import annotations

import sys
from pathlib import Path

from millpond import Engine
from millpond.connectors.mqtt_source import MqttSource
from millpond.settings import Settings
from millpond.storage.log import CommitLog
from tests.connectors.lives import killed_lives

COMMITS = [(CommitLog, "append"), (MqttSource, "_acknowledge")]


def live(broker: str, topic: str, folder: Path, count: int) -> None:
    """Reads a topic until so many messages have come."""
    with Engine(Settings(page_rows=16), store=folder / "store") as engine:
        engine.execute(
            f"CREATE STREAM S (id BIGINT) FROM mqtt('{topic}', broker = '{broker}', in_flight = 30)"
        )
        engine.execute(f"CREATE QUERY q AS SELECT id FROM S INTO csv('{folder / 'out.csv'}')")
        engine.finish(rows=count)


def main(broker: str, topic: str, folder: str, seed: str, kills: str, count: str) -> int:
    """Says how many lives were killed."""
    killed = killed_lives(
        lambda: live(broker, topic, Path(folder), int(count)), COMMITS, int(seed), int(kills)
    )
    sys.stdout.write(f"{killed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
