"""Sets of queries of which many select what others select too, to be read from one another."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace

from millpond.sharing.containments import Containments
from millpond.sharing.groups import Groups
from tests.cases import Drop, Register, Run
from tests.generator import random_case
from tests.siblings import condition, constant_of, first_in_time

WINDOWS = ("", "[NOW]", "[RANGE 4]", "[RANGE 9 SLIDE 2]", "[UNBOUNDED]", "[ROWS 3]")


def contained_case(seed, most=8):
    """A case with queries over the same few selections, registered and dropped at any time."""
    rng = random.Random(seed)
    case = random_case(rng, 1, title=f"contained, seed {seed}")
    schedule = [action for action in case.schedule if not hasattr(action, "query")]
    schedule = [each for action in schedule for each in (action, Run())]
    stream = rng.choice(case.streams)
    wide = [wide_selection(rng, stream) for _ in range(rng.randint(1, 2))]
    texts = {}
    for number in range(rng.randint(3, most)):
        name, text = f"q{number}", telling(rng, case, stream, wide)
        if text is None:
            continue
        texts[name], first = text, 0
        if texts and rng.random() < 0.6:
            first = rng.randint(0, len(schedule))
            schedule.insert(first, Register(name))
        if rng.random() < 0.3:
            schedule.insert(rng.randint(first + 1, len(schedule) + 1), Drop(name))
    return replace(case, queries=texts, schedule=tuple(schedule), skipping=frozenset())


def wide_selection(rng, stream):
    """Conditions on one or two columns."""
    chosen = rng.sample(stream.schema, min(len(stream.schema), rng.randint(1, 2)))
    return [(name, type_, drawn_test(rng, name, type_)) for name, type_ in chosen]


def drawn_test(rng, name, type_):
    """A condition that leaves something over, most often."""
    if rng.random() < 0.2:
        return f"s.{name} IS NOT NULL"
    if rng.random() < 0.5:
        return condition(rng, name, type_)
    return f"s.{name} {rng.choice(('>=', '<>', '<'))} {constant_of(rng, type_)}"


def narrowed(rng, stream, wide):
    """Conditions that imply others, most often: the same, tighter ones, and more."""
    parts = [
        text
        if rng.random() < 0.6
        else drawn_test(rng, name, type_)
        if rng.random() < 0.3
        else f"s.{name} {rng.choice(('=', '=', '>', '<'))} {constant_of(rng, type_)}"
        for name, type_, text in rng.choice(wide)
    ]
    if rng.random() < 0.5:
        parts.append(condition(rng, *rng.choice(stream.schema)))
    rng.shuffle(parts)
    return " AND ".join(parts)


def telling(rng, case, stream, wide):
    """A query that the reference answers in time; None if no draw is one."""

    def draw():
        return query(rng, case, stream, narrowed(rng, stream, wide), narrowed(rng, stream, wide))

    return first_in_time(case, draw)


def query(rng, case, stream, where, where_else):
    """Something over a selection or two: rows, counts, extremes, joins, what a window holds."""
    (a, _), (b, b_type) = rng.choice(stream.schema), rng.choice(stream.schema)
    window, name = rng.choice(WINDOWS), stream.name
    inside = where.replace("s.", "")
    others = [
        (each.name, column, "[RANGE 3]" if each in case.streams else "")
        for each in case.streams + case.relations
        for column, type_ in each.schema
        if type_ == b_type
    ]
    other, column, short = rng.choice(others)
    return rng.choice(
        [
            f"SELECT s.{a}, s.{b} FROM {name} s {window} WHERE {where}",
            f"SELECT s.{b}, s.{a} FROM {name} s [ROWS 2 WHERE {inside}]",
            f"SELECT s.{a}, count(*) AS n FROM {name} s {window} WHERE {where} GROUP BY s.{a}",
            f"SELECT max(s.{b}) AS m FROM {name} s {window} WHERE {where}",
            f"SELECT DISTINCT s.{b} FROM {name} s {window} WHERE {where}",
            f"SELECT RSTREAM s.{a} FROM {name} s [RANGE 2] WHERE {where}",
            (
                f"SELECT d.x FROM (SELECT ISTREAM s.{a} AS x, s.{b} AS y FROM {name} s [RANGE 2] "
                f"WHERE {where}) d [RANGE 3]"
            ),
            (
                f"SELECT e.x, count(*) AS n FROM (SELECT s.{a} AS x, s.{b} AS y FROM {name} s "
                f"[RANGE 4] WHERE {where} {rng.choice(('UNION', 'EXCEPT'))} SELECT s.{a}, s.{b} "
                f"FROM {name} s [RANGE 4] WHERE {where_else}) e GROUP BY e.x"
            ),
            (
                f"SELECT s.{a}, o.{column} FROM {name} s [RANGE 4], {other} o {short} "
                f"WHERE s.{b} = o.{column} AND {where}"
            ),
        ]
    )


@contextlib.contextmanager
def always_read(has_groups=True):
    """Whatever is implied is read, however little that saves; how often that was so.

    Without groups all queries stand alone.
    """
    weighed, choose, taken = Containments._weighed, Groups.choose, []

    def read(self, *given):
        found = replace(weighed(self, *given), is_read=True)
        taken.append(found)
        return found

    Containments._weighed = read
    if not has_groups:
        Groups.choose = lambda self, shapes, sharing: None
    try:
        yield taken
    finally:
        Containments._weighed, Groups.choose = weighed, choose
