"""Lives of an engine between two topics, each ended by a kill: before or after what it commits.

``python -m tests.connectors.kafka_lives brokers in out store seed kills``: forks a life for each
kill and one that comes to its end.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

from millpond import Engine
from millpond.connectors import kafka_sink
from millpond.settings import Settings
from millpond.storage.log import CommitLog

MOMENTS = ("before log", "after log", "before topic", "after topic", "some time")
PAGE_ROWS = 16


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


def die_at(moment: str, count: int, seconds: float) -> None:
    """Has this process be killed at a moment."""
    if moment == "some time":
        threading.Thread(target=lambda: (time.sleep(seconds), _die()), daemon=True).start()
        return
    when, _, what = moment.partition(" ")
    owner, name = (CommitLog, "append") if what == "log" else (kafka_sink.Connection, "transact")
    known, left = getattr(owner, name), [count]

    def watched(*arguments: object) -> object:
        left[0] -= 1
        if left[0] == 0 and when == "before":
            _die()
        answer = known(*arguments)
        if left[0] == 0:
            _die()
        return answer

    setattr(owner, name, watched)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(brokers: str, read: str, written: str, store: str, seed: str, kills: str) -> int:
    """Says how many lives were killed."""
    rng, killed, lives = random.Random(int(seed)), 0, 0
    while True:
        moment = MOMENTS[lives % len(MOMENTS)]
        count, seconds = rng.randint(2, 6), rng.uniform(0.05, 1.0)
        child = os.fork()
        if child == 0:
            if killed < int(kills):
                die_at(moment, count, seconds)
            live(brokers, read, written, Path(store))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        lives += 1
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            killed += 1
            continue
        sys.stdout.write(f"{killed}\n")
        return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
