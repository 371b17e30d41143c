"""Kills an engine behind a topic of MQTT: ``python -m tests.connectors.mqtt_kills --n 200``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.connectors.test_mqtt import kills_behind_a_topic
from tests.mosquitto import Mosquitto

AT_ONCE = 25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200, help="how many kills")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    broker, done = Mosquitto(), 0
    try:
        while done < given.n:
            kills = min(AT_ONCE, given.n - done)
            with tempfile.TemporaryDirectory() as folder:
                kills_behind_a_topic(broker, Path(folder), given.seed + done, kills)
            done += kills
            print(f"{done} kills, nothing lost, nothing twice", flush=True)  # noqa: T201
    finally:
        broker.close()


if __name__ == "__main__":
    main()
