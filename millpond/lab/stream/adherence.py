"""A join of orders and fulfilments over unbounded windows whose streams adhere to a constraint
within k: what it keeps, what it answers and how long it takes, by the engine itself, in the driver.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.facade.engine import Engine
from millpond.kernels.groups import Ints
from millpond.lab.experiment import Tables
from millpond.lab.stream.arrivals import (
    PAGE_ROWS,
    PAGES,
    Arrivals,
    Pages,
    Streams,
    clustered,
    ordered,
    referring,
    unique,
)
from millpond.lab.tables import table_of

KS = (0, 2_000, 6_000)
NO_CONSTRAINT = "none"
IN_THE_DRIVER = {"driver_rows": 10**9, "place_by": "rows", "watch": "off"}
JOIN = "SELECT O.id, O.v, F.v FROM O, F WHERE O.id = F.id"


@dataclass(frozen=True)
class Adherence:
    """A constraint: what is said of orders and of fulfilments, how they come, and which sides of
    their join it frees."""

    of_orders: str
    of_fulfilments: str
    arrivals: Arrivals
    sides: tuple[int, ...] = (0, 1)

    def clauses(self, k: int) -> tuple[str, str]:
        """What is said of both streams."""
        return self.of_orders.format(k), self.of_fulfilments.format(k)

    def streams(self, k: int, seed: int) -> Streams:
        """What comes."""
        return self.arrivals(k, np.random.default_rng(seed))


_ORDERED, _CLUSTERED = "ORDERED BY (id) WITHIN {} ROWS", "CLUSTERED BY (id) WITHIN {} ROWS"
ORDERED = Adherence(_ORDERED, _ORDERED, ordered)
CLUSTERED = Adherence(_CLUSTERED, _CLUSTERED, clustered)
UNIQUE = Adherence("UNIQUE (id) WITHIN {} ROWS", "", unique, sides=(1,))
REFERRING = Adherence("", "REFERENCES O (id) WITHIN {} ROWS", referring, sides=(1,))


@dataclass(frozen=True)
class Found:
    """What a run kept and answered."""

    rows: tuple[int, ...]
    """The rows of the sides that are freed, after each page."""
    bytes_: tuple[int, ...]
    """And their bytes."""
    answers: str
    """A digest of all answers."""
    seconds: float
    """What the processor was busy with it."""

    @property
    def growth(self) -> float:
        """How many rows the second half of the run added, against the first."""
        half = self.rows[PAGES // 2 - 1]
        return (self.rows[-1] - half) / max(1, half)


def joined(
    streams: Streams, clauses: tuple[str, str] = ("", ""), sides: Sequence[int] = ()
) -> Found:
    """Runs the join, and looks at some of its sides."""
    kept: list[tuple[int, int]] = []
    with Engine(IN_THE_DRIVER) as engine:
        create_streams(engine, clauses)
        engine.execute(f"CREATE QUERY q AS {JOIN}")
        began = time.process_time()
        for number in range(PAGES):
            for name, pages in zip("OF", streams, strict=True):
                push(engine, name, pages, number)
            engine.run_until_idle()
            kept.append(_kept(engine, sides))
        spent = time.process_time() - began
        engine.finish()
        answers = engine.results("q")
    rows, sizes = zip(*kept, strict=True)
    return Found(rows, sizes, _digest(answers), spent)


def create_streams(engine: Engine, clauses: tuple[str, str]) -> None:
    """Declare orders and fulfilments, with what is said of each."""
    for name, clause in zip("OF", clauses, strict=True):
        engine.execute(
            f"CREATE STREAM {name} (t BIGINT, id BIGINT, v BIGINT) TIMESTAMP BY t {clause}"
        )


def push(engine: Engine, name: str, pages: Pages, number: int) -> None:
    """A page of a stream comes, if there is one, and its time is over."""
    keys, start = pages[number], number * PAGE_ROWS
    if len(keys):
        engine.push(name, _page(start, keys))
    engine.advance(name, start + PAGE_ROWS - 1)


def _page(start: int, keys: Ints) -> pa.Table:
    numbers = np.arange(start, start + len(keys))
    return pa.table({"t": numbers, "id": keys, "v": numbers})


def _digest(answers: pa.Table) -> str:
    in_order = answers.sort_by([(name, "ascending") for name in answers.column_names])
    columns = map(np.ndarray.tobytes, map(np.asarray, in_order.columns))
    return hashlib.sha256(b"".join(columns)).hexdigest()


def _kept(engine: Engine, sides: Sequence[int]) -> tuple[int, int]:
    """The rows and bytes of some sides of the join."""
    states = [each.state for each in engine.runtime.running.values() if each.state is not None]
    (versions,) = filter(None, (getattr(state, "versions", ()) for state in states))
    deltas = [d for side in sides for bucket in versions[side].buckets for d in bucket]
    return sum(each.rows for each in deltas), sum(each.bytes for each in deltas)


def measured(adherence: Adherence, seeds: Sequence[int]) -> Tables:
    """For each k what the join keeps with the constraint, and without one over the same streams.

    What is kept is the most after any page of the second half; the course is that of one seed.
    """
    rows, course = [], dict[str, list[int]]()
    for seed in seeds:
        for k in KS:
            streams = adherence.streams(k, seed)
            for clauses in (adherence.clauses(k), ("", "")):
                each = joined(streams, clauses, adherence.sides)
                most = [max(sizes[PAGES // 2 :]) for sizes in (each.rows, each.bytes_)]
                is_declared = any(clauses)
                rows.append((seed, k, is_declared, *most, each.growth, each.answers))
                course.setdefault(str(k) if is_declared else NO_CONSTRAINT, list(each.rows))
    names = ("seed", "k", "declared", "rows", "bytes", "growth", "answers")
    return {"kept": table_of(names, rows), "course": {"page": list(range(1, PAGES + 1)), **course}}


def speeds(adherence: Adherence, seeds: Sequence[int]) -> list[tuple[int, bool, float, int]]:
    """For each k the rows a second with the constraint and without, in turns, and the bytes."""
    found = []
    for seed in seeds:
        for k in KS:
            streams = adherence.streams(k, seed)
            count = sum(len(page) for pages in streams for page in pages)
            for clauses in (adherence.clauses(k), ("", "")):
                each = joined(streams, clauses, adherence.sides)
                most = max(each.bytes_[PAGES // 2 :])
                found.append((k, any(clauses), count / each.seconds, most))
    return found
