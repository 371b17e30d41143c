"""Lives of an engine between Delta tables, each ended by a kill: before or after a commit of its
own or of a table, or at any time.

``python -m tests.connectors.delta_lives folder seed kills``: tables grow and change while a life
lasts: in each that is to be killed until it is, and in the last one until all is read.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from millpond import Engine
from millpond.connectors import lake_source
from millpond.connectors.delta_sink import DeltaSink
from millpond.settings import Settings
from millpond.storage.log import CommitLog
from tests.connectors.lives import killed_lives

COMMITS = [(CommitLog, "append"), (DeltaSink, "_commit")]
IDS = pa.schema([("id", pa.int64())])
PRICES = pa.schema([("item", pa.int64()), ("price", pa.int64())])
ROWS_A_LIFE = 60

SCRIPT = """
CREATE STREAM S (id BIGINT) FROM delta('{0}/ids');
CREATE RELATION R (item BIGINT PRIMARY KEY, price BIGINT)
  FROM delta('{0}/prices') WITH (changes = true);
CREATE QUERY q AS SELECT id FROM S INTO delta('{0}/out');
CREATE QUERY mirror AS SELECT item, price FROM R INTO delta('{0}/mirror', key = 'item');
"""


def rows(table: Path) -> list[tuple[int, ...]]:
    """The rows of a table, in order."""
    found = DeltaTable(table).to_pyarrow_table()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


def grow(folder: Path, rng: random.Random) -> None:
    """Adds some numbers, and changes some prices."""
    there = len(rows(folder / "ids")) if (folder / "ids").exists() else 0
    more = list(range(there, there + rng.randint(1, 20)))
    write_deltalake(folder / "ids", pa.table([more], schema=IDS), mode="append")
    item = rng.randrange(5)
    write_deltalake(
        folder / "prices",
        pa.table([[item], [rng.randrange(100)]], schema=PRICES),
        mode="overwrite",
        predicate=f"item = {item}",
    )


def live(folder: Path, rng: random.Random, more: int | None) -> None:
    """Reads until so many more rows are there, or for ever."""
    if not (folder / "ids").exists():
        grow(folder, rng)
    until = None if more is None else len(rows(folder / "ids")) + more
    with Engine(Settings(page_rows=16), store=folder / "store") as engine:
        engine.execute(SCRIPT.format(folder))
        engine.start()
        while until is None or len(rows(folder / "ids")) < until:
            grow(folder, rng)
            time.sleep(0.02)
        while engine.result_count("q") < len(rows(folder / "ids")) or _lags(folder):
            time.sleep(0.02)
        engine.stop()


def _lags(folder: Path) -> bool:
    """Whether the mirror is not yet what it shows."""
    return not (folder / "mirror").exists() or rows(folder / "mirror") != rows(folder / "prices")


def main(folder: str, seed: str, kills: str) -> int:
    """Says how many lives were killed."""
    lake_source.LOOK_SECONDS = 0.01
    where, rng = Path(folder), random.Random(int(seed))

    def last() -> None:
        live(where, rng, ROWS_A_LIFE)

    def doomed() -> None:
        live(where, rng, None)

    killed = killed_lives(last, COMMITS, int(seed), int(kills), doomed)
    sys.stdout.write(f"{killed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
