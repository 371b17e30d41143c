"""Streams that adhere to constraints within k, or are punctuated, and queries over them, in the
driver, without Spark."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond import Engine
from millpond.settings import Settings
from millpond.storage.state import COMPACT_ROWS

PAGE_ROWS = 10_000
NAMES = "OFP"
CASES = {
    "orders and fulfilments": "SELECT O.id, F.v FROM O, F WHERE O.id = F.id",
    "three streams": "SELECT O.id, P.v FROM O, F, P WHERE O.id = F.id AND F.id = P.id",
    "grouped": "SELECT id, count(*) AS n, sum(v) AS s FROM O GROUP BY id",
    "not exists": "SELECT id FROM F WHERE NOT EXISTS (SELECT * FROM O WHERE O.id = F.id)",
}
NO_CONSTRAINT, PUNCTUATED, REFERENCES = "no constraint", "punctuated", "references"
_CLUSTERED = "CLUSTERED BY (id) WITHIN {0} ROWS"
_TO_ORDERS = f"{_CLUSTERED} REFERENCES O (id) WITHIN {{0}} ROWS"
KINDS = {
    NO_CONSTRAINT: dict.fromkeys(NAMES, ""),
    "ordered": dict.fromkeys(NAMES, "ORDERED BY (id) WITHIN {0} ROWS"),
    "clustered": dict.fromkeys(NAMES, _CLUSTERED),
    REFERENCES: {
        "O": f"UNIQUE (id) {_CLUSTERED}",
        "F": _TO_ORDERS,
        "P": f"{_TO_ORDERS} REFERENCES F (id) WITHIN {{0}} ROWS",
    },
    PUNCTUATED: dict.fromkeys(NAMES, ""),
}
"""What is said of each stream. What references, or is unique, is clustered too: else orders, and
the numbers of which NOT EXISTS is asked, stay."""


def page(start: int, within: int, seed: int) -> pa.Table:
    """Numbers that rise, each once, in blocks of k + 1 that are turned round: a tuple comes up to k
    rows behind a larger one."""
    numbers = np.arange(start, start + PAGE_ROWS)
    block = within + 1
    turned = numbers // block * block + (block - 1 - numbers % block)
    values = np.random.default_rng(seed + start).integers(0, 100, PAGE_ROWS)
    columns = {"t": numbers, "id": turned, "v": values}
    return pa.table({name: pa.array(each, pa.int64()) for name, each in columns.items()})


@dataclass(frozen=True)
class Run:
    """A query over streams of which something is said."""

    case: str
    kind: str
    within: int

    def engine(self, watch: str = "off") -> Engine:
        """An engine with the streams and the query."""
        everything = Settings(driver_rows=10**12, place_by="rows", watch=watch)
        engine = Engine(everything, keep_results=False)
        for name, clause in KINDS[self.kind].items():
            engine.execute(
                f"CREATE STREAM {name} (t BIGINT, id BIGINT, v BIGINT) TIMESTAMP BY t "
                + clause.format(self.within)
            )
        engine.execute(f"CREATE QUERY q AS {CASES[self.case]}")
        return engine

    @property
    def read(self) -> list[str]:
        """The streams that the query reads; of two rows that meet that of O comes first."""
        words = CASES[self.case].replace(",", " ").replace(")", " ").split()
        return [name for name in NAMES if name in words]

    def pages(self, start: int) -> dict[str, pa.Table]:
        """What comes of each stream."""
        return {name: page(start, self.within, seed) for seed, name in enumerate(self.read)}

    def push(self, engine: Engine, pages: dict[str, pa.Table], start: int) -> None:
        """Pages come, and what is done is done; all that will not follow is said, if it is."""
        block = self.within + 1
        whole = (start + PAGE_ROWS) // block * block
        for name, each in pages.items():
            engine.push(name, each)
            if self.kind == PUNCTUATED and whole:
                engine.punctuate(name, f"id < {whole}")
        engine.run_until_idle()

    def stated(self, engine: Engine) -> int:
        """The rows that are kept at most, by what EXPLAIN says: twice those that may still meet
        something, and 4,096 a bucket.

        Those are k + 1 rows, up to k that came before them, and two pages; of closed values the
        last 4,096 too.
        """
        open_rows = 2 * self.within + 1 + 2 * PAGE_ROWS
        closed = COMPACT_ROWS if self.kind in ("clustered", REFERENCES) else 0
        sides = [part for state in _states(engine) for part in state]
        return sum(2 * (open_rows + closed) + COMPACT_ROWS * len(part.buckets) for part in sides)


def _states(engine: Engine):
    """For each operator that keeps something the versions of its sides."""
    for running in engine.runtime.running.values():
        state = running.state
        if state is not None:
            yield getattr(state, "versions", None) or (state.version,)


def kept(engine: Engine) -> tuple[int, int]:
    """The rows and bytes of all states."""
    parts = [part for state in _states(engine) for part in state]
    rows = sum(delta.rows for part in parts for deltas in part.buckets for delta in deltas)
    states = (each.state for each in engine.runtime.running.values())
    return rows, sum(state.bytes for state in states if state is not None)
