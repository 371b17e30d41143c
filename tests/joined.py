"""Sets of queries over the same few joins, which share them or do not."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace

from millpond.sharing.shared_joins import SharedJoins
from tests.cases import Drop, Register, Run
from tests.generator import random_case
from tests.siblings import first_in_time

WINDOWS = ("[NOW]", "[RANGE 4]", "[RANGE 4]", "[RANGE 9 SLIDE 2]", "[UNBOUNDED]", "[ROWS 3]")


def joined_case(seed, most=7):
    """A case with queries over one or two joins, registered and dropped at any time."""
    rng = random.Random(seed)
    case = random_case(rng, 1, title=f"joined, seed {seed}")
    schedule = [action for action in case.schedule if not hasattr(action, "query")]
    schedule = [each for action in schedule for each in (action, Run())]
    joins = [drawn_join(rng, case) for _ in range(rng.randint(1, 2))]
    texts = {}
    for number in range(rng.randint(3, most)):
        name, text = f"q{number}", telling(rng, case, joins)
        if text is None:
            continue
        texts[name], first = text, 0
        if rng.random() < 0.6:
            first = rng.randint(0, len(schedule))
            schedule.insert(first, Register(name))
        if rng.random() < 0.3:
            schedule.insert(rng.randint(first + 1, len(schedule) + 1), Drop(name))
    return replace(case, queries=texts, schedule=tuple(schedule), skipping=frozenset())


def drawn_join(rng, case):
    """A column of each side, and what stands behind FROM."""
    left = rng.choice(case.streams)
    a, a_type = rng.choice(left.schema)
    others = [
        (each, column)
        for each in case.streams + case.relations
        for column, type_ in each.schema
        if type_ == a_type
    ]
    right, b = rng.choice(others)
    short = rng.choice(WINDOWS) if right in case.streams else ""
    on = rng.choice((f"l.{a} = r.{b}", f"l.{a} <= r.{b}"))
    return a, b, f"FROM {left.name} l {rng.choice(WINDOWS)}, {right.name} r {short} WHERE {on}"


def telling(rng, case, joins):
    """A query that the reference answers in time; None if no draw is one."""
    return first_in_time(case, lambda: query(rng, *rng.choice(joins)))


def query(rng, a, b, source):
    """Something over the pairs, which all have the same two columns."""
    pairs = f"SELECT l.{a} AS x, r.{b} AS y {source}"
    counted = f"SELECT l.{a} AS x, count(r.{b}) AS n {source} GROUP BY l.{a}"
    return rng.choice(
        [
            pairs,
            counted,
            f"SELECT DISTINCT l.{a}, r.{b} {source}",
            f"SELECT r.{b}, min(l.{a}) AS m {source} GROUP BY r.{b}",
            f"SELECT max(l.{a}) AS m, count(r.{b}) AS n {source}",
            f"SELECT n, x FROM ({counted}) c",
            f"SELECT ISTREAM x, n FROM ({counted}) c",
            f"SELECT ISTREAM x, y FROM ({pairs}) p",
            f"SELECT p.x, q.y FROM ({pairs}) p, ({pairs}) q WHERE p.y = q.x",
            f"SELECT p.x, c.n FROM ({pairs}) p, ({counted}) c WHERE p.x = c.x",
        ]
    )


@contextlib.contextmanager
def drawn_apart(seed, share):
    """A part of the joins that run is not shared, whatever was measured; how often that was so."""
    rng, against, taken = random.Random(seed), SharedJoins._against, []

    def drawn(self, identity):
        if rng.random() >= share:
            return None
        taken.append(identity)
        return "that was drawn"

    SharedJoins._against = drawn
    try:
        yield taken
    finally:
        SharedJoins._against = against
