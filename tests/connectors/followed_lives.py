"""Lives of an engine that follows a file, and writes what it reads to another one.

``python -m tests.connectors.followed_lives folder seed kills``: the file grows by any pieces and is
rotated before each life, and while it lasts: in each that is to be killed until it is, and in the
last one until there are at least 80 rows for each kill, and all are read.
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
ROWS_A_KILL = 80
PIECE_BYTES = 200
LEAST_BYTES = len('{"id": 0, "ts": 0}\n')


def rows_there(folder: Path) -> int:
    """How many whole lines were written."""
    return sum(each.read_bytes().count(b"\n") for each in folder.glob("x.jsonl*"))


def grow(folder: Path, rng: random.Random, rows: int | None) -> None:
    """Appends a piece of the lines of that many rows, or of any number, or rotates the file."""
    file, done = folder / "x.jsonl", sorted(folder.glob("x.jsonl*"))
    written = sum(each.stat().st_size for each in done)
    count = (written + PIECE_BYTES) // LEAST_BYTES + 1 if rows is None else rows
    whole = "".join(f'{{"id": {n}, "ts": {n}}}\n' for n in range(count)).encode()
    if written and whole[:written].endswith(b"\n") and file.exists() and rng.random() < 0.3:
        file.rename(folder / f"x.jsonl.{len(done)}")
    with file.open("ab") as out:
        out.write(whole[written : written + rng.randrange(PIECE_BYTES)])


def live(folder: Path, rng: random.Random, rows: int | None) -> None:
    """Reads so many rows, some before they are written, or any number, which has no end."""
    with Engine(Settings(page_rows=PAGE_ROWS), store=folder / "store") as engine:
        engine.execute(
            "CREATE STREAM S (id BIGINT, ts BIGINT) TIMESTAMP BY ts "
            f"FROM json('{folder / 'x.jsonl'}', follow = true)"
        )
        engine.execute(f"CREATE QUERY q AS SELECT id FROM S INTO csv('{folder / 'out.csv'}')")
        engine.start()
        waits = False
        while rows is None or _read(engine) < rows:
            left = rows_there(folder) - _read(engine)
            waits = left > 0 if waits else left >= ROWS_A_KILL  # for who reads slowly
            if not waits:
                grow(folder, rng, rows)
            time.sleep(0.02)
        engine.stop()
        engine.finish(rows=0)


def _read(engine: Engine) -> int:
    return engine.inputs.read_rows.get(StreamId("s"), 0)


def main(folder: str, seed: str, kills: str) -> int:
    """Says how many lives were killed."""
    followed_files.LOOK_SECONDS = 0.002
    where, rng = Path(folder), random.Random(int(seed))
    grow(where, rng, None)

    def last() -> None:
        begun = rows_there(where) + 1  # the line that somebody was killed in, too
        live(where, rng, max(begun, ROWS_A_KILL * int(kills)))

    def doomed() -> None:
        live(where, rng, None)

    killed = killed_lives(last, COMMITS, int(seed), int(kills), doomed)
    sys.stdout.write(f"{killed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
