"""Sets of queries that count and sum by the same keys over windows of many lengths."""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace

from millpond.kernels import totals
from millpond.sharing import shared_totals
from tests.cases import Drop, Register, Run
from tests.generator import random_case
from tests.siblings import condition, first_in_time, with_alterations

INTEGERS = ("INT", "BIGINT")


def totalled_case(seed, most=8):
    """A case with queries of one or two forms, registered, altered and dropped at any time."""
    rng = random.Random(seed)
    case = random_case(rng, 1, title=f"totalled, seed {seed}")
    schedule = [action for action in case.schedule if not hasattr(action, "query")]
    schedule = [each for action in schedule for each in (action, Run())]
    forms = [drawn_form(rng, case) for _ in range(rng.randint(1, 2))]
    texts = {}
    for number in range(rng.randint(3, most)):
        name, text = f"q{number}", telling(rng, case, forms)
        if text is None:
            continue
        texts[name], first = text, 0
        if rng.random() < 0.5:
            first = rng.randint(0, len(schedule))
            schedule.insert(first, Register(name))
        if rng.random() < 0.3:
            schedule.insert(rng.randint(first + 1, len(schedule) + 1), Drop(name))
    case = replace(case, queries=texts, schedule=tuple(schedule), skipping=frozenset())
    return with_alterations(rng, case, 0.15)


def drawn_form(rng, case):
    """A query but for the length of its window."""
    stream = rng.choice(case.streams)
    integers = [name for name, type_ in stream.schema if type_ in INTEGERS]
    calls = ["count(*) AS n"]
    for number, name in enumerate(rng.sample(integers, min(len(integers), rng.randint(0, 2)))):
        calls.append(f"{rng.choice(('sum', 'sum', 'avg', 'count'))}(s.{name}) AS a{number}")
    key, where = "", ""
    if rng.random() < 0.7:
        key = f"s.{rng.choice(stream.schema)[0]}"
    if rng.random() < 0.2:
        where = f" WHERE {condition(rng, *rng.choice(stream.schema))}"
    select = ", ".join([key, *calls] if key else calls)
    group = f" GROUP BY {key}" if key else ""
    last = rng.choice(("", "", " HAVING count(*) > 1")) if key else ""
    return f"SELECT {select} FROM {stream.name} s [RANGE {{}}]{where}{group}{last}"


def telling(rng, case, forms):
    """A query that the reference answers in time; None if no draw is one."""

    def draw():
        text = rng.choice(forms).format(rng.randint(1, 9))
        return rng.choice((text, text, f"ISTREAM({text})"))

    return first_in_time(case, draw)


@contextlib.contextmanager
def totalled_from(windows):
    """Totals are read from so many windows on, and made of any rows."""
    usual = shared_totals.ENOUGH, totals.MOST_SHARE
    shared_totals.ENOUGH, totals.MOST_SHARE = windows, 1e9
    try:
        yield
    finally:
        shared_totals.ENOUGH, totals.MOST_SHARE = usual
