"""Queries that live while pages come: what each answers alone, and engines that die meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from typing import NamedTuple

from millpond import Engine
from tests.crashing import die, validate_open

DDL = """
CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts;
CREATE STREAM T (ts BIGINT, k INT) TIMESTAMP BY ts;
CREATE RELATION R (k INT PRIMARY KEY, name STRING);
INSERT INTO R VALUES (0, 'a'), (1, 'b');
"""
OTHERS = "CREATE QUERY from_s AS SELECT ts FROM S; CREATE QUERY from_t AS SELECT ts FROM T;"
"""So that data flows."""
SHAPES = (
    "SELECT count(*) AS n FROM S [RANGE {w}] WHERE v > {c}",
    "SELECT count(*) AS n, sum(v) AS s FROM S [RANGE {w}]",
    "SELECT k, count(*) AS n FROM S [RANGE {w}] WHERE v > {c} GROUP BY k",
    "SELECT k, max(v) AS top FROM S [ROWS {w}] WHERE v <> {c} GROUP BY k",
    "SELECT k, v FROM S [ROWS {w} WHERE v > {c}]",
    "SELECT DSTREAM k FROM S [RANGE {w}] WHERE v = {c}",
    "SELECT v FROM S [PARTITION BY k ROWS {w}] WHERE v > {c}",
    "SELECT RSTREAM k, v FROM S [RANGE {w}] WHERE v = {c}",
    "SELECT DISTINCT k FROM S [RANGE {w} SLIDE 2] WHERE v > {c}",
    "SELECT DISTINCT S.k, name FROM S [RANGE {w}], R WHERE S.k = R.k AND v > {c}",
    "SELECT S.k, sum(v) AS n FROM S [RANGE {w}], T [ROWS 3] WHERE S.k = T.k AND v > {c} GROUP BY 1",
    "SELECT k FROM R UNION SELECT k FROM S [RANGE {w}] WHERE v > {c}",
    "SELECT name FROM R WHERE k NOT IN (SELECT k FROM S [RANGE {w}] WHERE v > {c})",
)


class Told:
    """What happens to engines: pages, and what is registered and altered between them."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.pages = [self._page(ts) for ts in range(self.rng.randint(6, 14))]
        shapes = self.rng.sample(SHAPES, self.rng.randint(1, 4))
        self.lives = [self._life(self.rng.choice(shapes)) for _ in range(self.rng.randint(2, 9))]
        self.changes_relation = self.rng.random() < 0.4

    def _page(self, ts):
        rng = self.rng
        rows = [(ts, rng.randrange(4), rng.randrange(5)) for _ in range(rng.randrange(7))]
        return rows, [(ts, rng.randrange(4)) for _ in range(rng.randrange(4))]

    def _life(self, shape):
        """The texts of a query and the pages before which it has them."""
        constant, count = self.rng.randrange(4), self.rng.randint(1, 3)
        moments = sorted(self.rng.choices(range(len(self.pages)), k=count))
        if self.rng.random() < 0.5:
            moments[0] = 0
        windows = [self.rng.randint(1, 5) for _ in moments]
        return [(at, shape.format(c=constant, w=w)) for at, w in zip(moments, windows, strict=True)]

    def feed(self, engine, at):
        """Hands one page over, and has it worked on."""
        self.hand_over(engine, at)
        engine.run_until_idle()

    def hand_over(self, engine, at):
        for name, rows in zip("ST", self.pages[at], strict=True):
            engine.push(name, rows)
            engine.advance(name, at)
        if self.changes_relation and at % 4 == 2:
            engine.execute_anew(f"DELETE FROM R WHERE k = {at % 3}")
            engine.execute_anew(f"INSERT INTO R VALUES ({at % 3}, 'x{at}')")


def sums(engine, name):
    """The net changes of a query."""
    found = Counter()
    for row in engine.results(name).to_pylist():
        ts, weight, *values = row.values()
        found[(-1 if ts is None else ts, *values)] += weight
    return Counter({key: weight for key, weight in found.items() if weight})


class Answer(NamedTuple):
    """What a query has put out: its net changes, and how many rows they came in."""

    changes: Counter
    rows: int
    is_stream: bool


def alone(told, text, first, last):
    """What a query alone answers that is registered before a page, until before another one."""
    with Engine({"sharing": "off"}) as engine:
        engine.execute(DDL + OTHERS)
        for at in range(first):
            told.hand_over(engine, at)
        engine.run_until_idle()
        engine.execute(f"CREATE QUERY q AS {text}")
        for at in range(first, last):
            told.feed(engine, at)
        if last == len(told.pages):
            engine.finish()
        is_stream = engine.query_entry("q").plan.is_stream
        return Answer(sums(engine, "q"), engine.result_count("q"), is_stream)


class Dying:
    """An engine on a store that dies before half of the pages, and its successors."""

    def __init__(self, store, seed):
        self._store, self._rng = store, random.Random(seed)
        self.engine = Engine(store=store)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.engine.close()

    def live_on(self, engine):
        """The engine, or the one that takes its place."""
        if self._rng.random() < 0.5:
            return engine
        if self._rng.random() < 0.5:
            engine.compact_log()
        die(engine)
        self.engine = Engine(store=self._store)
        validate_open(self.engine)
        return self.engine
