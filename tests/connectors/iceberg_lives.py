"""Lives of an engine between Iceberg tables, each ended by a kill: before or after a commit of its
own or of a table, or at any time.

``python -m tests.connectors.iceberg_lives folder seed kills``: tables grow and change while a life
lasts: in each that is to be killed until it is, and in the last one until all is read.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from millpond import Engine
from millpond.connectors import lake_source
from millpond.connectors.iceberg_sink import IcebergSink
from millpond.settings import Settings
from millpond.storage.log import CommitLog
from tests.connectors.declarations import tuples
from tests.connectors.lives import killed_lives

COMMITS = [(CommitLog, "append"), (IcebergSink, "_commit")]
IDS = pa.schema([("id", pa.int64())])
PRICES = pa.schema([("item", pa.int64()), ("price", pa.int64())])
ROWS_A_LIFE = 20

SCRIPT = """
CREATE STREAM S (id BIGINT) FROM iceberg('l.ids', {0});
CREATE RELATION R (item BIGINT PRIMARY KEY, price BIGINT)
  FROM iceberg('l.prices', {0}) WITH (changes = true);
CREATE QUERY q AS SELECT id FROM S INTO iceberg('l.out', {0});
CREATE QUERY mirror AS SELECT item, price FROM R INTO iceberg('l.mirror', key = 'item', {0});
"""


class Lake:
    """A catalog in a file, and tables beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options = {
            "type": "sql",
            "uri": f"sqlite:///{folder}/catalog.db",
            "warehouse": f"file://{folder}/lake",
        }

    @property
    def in_cql(self) -> str:
        return ", ".join(f"{name} = '{value}'" for name, value in self.options.items())

    @cached_property
    def catalog(self) -> Catalog:
        catalog = load_catalog("default", **self.options)
        catalog.create_namespace_if_not_exists("l")
        return catalog

    def table(self, name: str, columns: pa.Schema, **options: Any) -> Table:
        return self.catalog.create_table_if_not_exists(f"l.{name}", columns, **options)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a table, in order."""
        try:
            table = self.catalog.load_table(f"l.{name}")
        except NoSuchTableError:
            return []
        return sorted(tuples(table.scan().to_arrow()), key=str)


def grow(lake: Lake, rng: random.Random) -> None:
    """Adds some numbers, and changes some prices."""
    ids, there = lake.table("ids", IDS), len(lake.rows("ids"))
    ids.append(pa.table([list(range(there, there + rng.randint(1, 20)))], schema=IDS))
    changed = pa.table([[rng.randrange(5)], [rng.randrange(100)]], schema=PRICES)
    lake.table("prices", PRICES).upsert(changed, join_cols=["item"])


def live(lake: Lake, rng: random.Random, more: int | None) -> None:
    """Reads until so many more rows are there, or for ever."""
    grow(lake, rng)
    until = None if more is None else len(lake.rows("ids")) + more
    with Engine(Settings(page_rows=16), store=lake.folder / "store") as engine:
        engine.execute(SCRIPT.format(lake.in_cql))
        engine.start()
        while until is None or len(lake.rows("ids")) < until:
            grow(lake, rng)
            time.sleep(0.1)
        while lake.rows("out") != lake.rows("ids") or lake.rows("mirror") != lake.rows("prices"):
            time.sleep(0.1)
        engine.stop()


def main(folder: str, seed: str, kills: str) -> int:
    """Says how many lives were killed."""
    lake_source.LOOK_SECONDS = 0.1
    warnings.simplefilter("ignore")
    rng = random.Random(int(seed))

    def last() -> None:
        live(Lake(Path(folder)), rng, ROWS_A_LIFE)

    def doomed() -> None:
        live(Lake(Path(folder)), rng, None)

    killed = killed_lives(last, COMMITS, int(seed), int(kills), doomed)
    sys.stdout.write(f"{killed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
