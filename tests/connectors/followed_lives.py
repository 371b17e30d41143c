"""Lives of an engine that follows a file, and writes what it reads to another one.

``python -m tests.connectors.followed_lives folder seed kills``: the file grows by any pieces and is
rotated before each life, and while it lasts.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from millpond import Engine
from millpond.connectors import followed_files
from millpond.connectors.growing_files import GrowingFiles
from millpond.identities import StreamId
from millpond.settings import Settings
from millpond.storage.log import CommitLog
from tests.connectors.lives import killed_lives

PAGE_ROWS = 16
COMMITS = [(CommitLog, "append"), (GrowingFiles, "pieces")]


def grow(folder: Path, rng: random.Random, rows: int) -> None:
    """Appends a piece of the lines of that many rows, or rotates the file."""
    file, done = folder / "x.jsonl", sorted(folder.glob("x.jsonl*"))
    written = sum(each.stat().st_size for each in done)
    whole = "".join(f'{{"id": {n}, "ts": {n}}}\n' for n in range(rows)).encode()
    if written and whole[:written].endswith(b"\n") and file.exists() and rng.random() < 0.3:
        file.rename(folder / f"x.jsonl.{len(done)}")
    with file.open("ab") as out:
        out.write(whole[written : written + rng.randrange(200)])


def live(folder: Path, rng: random.Random, rows: int) -> None:
    """Reads all rows, some before they are written."""
    with Engine(Settings(page_rows=PAGE_ROWS), store=folder / "store") as engine:
        engine.execute(
            "CREATE STREAM S (id BIGINT, ts BIGINT) TIMESTAMP BY ts "
            f"FROM json('{folder / 'x.jsonl'}', follow = true)"
        )
        engine.execute(f"CREATE QUERY q AS SELECT id FROM S INTO csv('{folder / 'out.csv'}')")
        engine.start()
        while engine.inputs.read_rows.get(StreamId("s"), 0) < rows:
            grow(folder, rng, rows)
            time.sleep(0.02)
        engine.stop()
        engine.finish(rows=0)


def main(folder: str, seed: str, kills: str) -> int:
    """Says how many lives were killed."""
    followed_files.LOOK_SECONDS = 0.002
    rng, rows = random.Random(int(seed)), 80 * int(kills)
    grow(Path(folder), rng, rows)
    killed = killed_lives(lambda: live(Path(folder), rng, rows), COMMITS, int(seed), int(kills))
    sys.stdout.write(f"{killed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
