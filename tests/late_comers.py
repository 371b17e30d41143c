"""Cases in which queries come again while data flows: each is to answer as if alone since then."""

from __future__ import annotations

import random
from dataclasses import replace

from millpond.cql.check.statements import check_statement
from millpond.errors import MillpondError, Position
from tests import reference
from tests.cases import Drop, Register, Run
from tests.generator import MOST_WORK, random_case
from tests.reference_values import AggregateOverflowError
from tests.siblings import declared, drawn_start, keeping, with_alterations, with_other_constants

WINDOWS = ("[NOW]", "[RANGE 1]", "[RANGE 3]", "[RANGE 3]", "[ROWS 1]", "[ROWS 3]")
RARE = ("[UNBOUNDED]", "[RANGE 4 SLIDE 2]", "[ROWS 4 SLIDE 2]", "[PARTITION BY {key} ROWS 2]")


def late_case(seed, most=6):
    """A case whose queries come again at any time, many of them with windows that pass soon."""
    rng = random.Random(seed)
    case = random_case(rng, rng.randint(1, 2), title=f"late-comers, seed {seed}")
    passing = {f"p{i}": telling(rng, case) for i in range(rng.randint(1, 2))}
    case = replace(case, queries=case.queries | {k: t for k, t in passing.items() if t})
    case = with_repetitions(rng, case, rng.randint(1, most))
    return with_alterations(rng, case) if rng.random() < 0.5 else case


def with_repetitions(rng, case, count):
    """The case with queries that are there already, registered again, and some dropped."""
    keepers = keeping(case) if rng.random() < 0.2 else {}
    texts, schedule = dict(keepers), [each for action in case.schedule for each in (action, Run())]
    schedule = schedule if rng.random() < 0.7 else list(case.schedule)
    skipping = set(case.skipping)
    chosen = [name for name in case.queries if name not in case.dropped] or list(case.queries)
    for number in range(count):
        like = rng.choice(chosen)
        name, first = f"x{number}", rng.randint(0, len(schedule) * 2 // 3)
        texts[name] = case.queries[like]
        skipping |= {name} if like in skipping else set()
        schedule.insert(first, Register(name, drawn_start(rng, case, keepers)))
        if rng.random() < 0.2:
            schedule.insert(rng.randint(first + 1, len(schedule) + 1), Drop(name))
    if rng.random() < 0.3 and not any(getattr(a, "query", None) == chosen[0] for a in schedule):
        schedule.insert(rng.randint(len(schedule) // 2, len(schedule)), Drop(chosen[0]))
    return replace(
        case,
        queries=case.queries | texts,
        schedule=tuple(schedule),
        skipping=frozenset(skipping),
    )


def telling(rng, case):
    """A query with windows that pass soon, which the reference answers in time."""
    catalog = declared(case)
    for _ in range(6):
        text = passing_query(rng, case)
        text = with_other_constants(rng, text) if rng.random() < 0.2 else text
        try:
            check_statement(f"CREATE QUERY telling AS {text}", Position(1, 1), catalog)
            answer = reference.evaluate(text, *case.reference_arguments(), most_work=MOST_WORK)
        except (MillpondError, reference.TooMuchWorkError, AggregateOverflowError, ValueError):
            continue
        if len(answer) > 2:
            return text
    return None


def passing_query(rng, case):
    """Groups, joins and derived streams over short windows; no constants that are lifted."""
    stream = rng.choice(case.streams)
    (key, key_type), (other, _) = rng.choice(stream.schema), rng.choice(stream.schema)
    window, second = (drawn_window(rng, key) for _ in range(2))
    inside = f"SELECT {key}, count(*) AS n FROM {stream.name} {window} GROUP BY {key}"
    partners = [
        (entry, column)
        for entry in case.streams + case.relations
        for column, type_ in entry.schema
        if type_ == key_type
    ]
    partner, column = rng.choice(partners)
    of_partner = drawn_window(rng, column) if partner in case.streams else ""
    on = f"a.{key} = b.{column}"
    outside = second.replace(f"BY {key}", "BY n")
    keys = f"SELECT {key} FROM {stream.name}"
    joined = f"{stream.name} a {window}, {partner.name} b {of_partner} WHERE {on}"
    return rng.choice(
        [
            inside,
            f"SELECT count(*) AS n, max({other}) AS m FROM {stream.name} {window}",
            f"SELECT DISTINCT {key}, {other} FROM {stream.name} {window}",
            f"SELECT a.{key}, b.{column} FROM {joined}",
            f"SELECT a.{key}, count(*) AS n FROM {joined} GROUP BY a.{key}",
            (
                f"SELECT a.{key}, b.{column} FROM {stream.name} a {window} "
                f"LEFT JOIN {partner.name} b {of_partner} ON {on}"
            ),
            f"ISTREAM({inside})",
            f"DSTREAM({inside})",
            f"RSTREAM({inside})",
            f"SELECT count(*) AS n FROM (ISTREAM({inside})) {outside}",
            f"SELECT n, count(*) AS m FROM (ISTREAM({inside})) {outside} GROUP BY n",
            f"SELECT n, count(*) AS m FROM (DSTREAM({inside})) {outside} GROUP BY n",
            f"SELECT x.n FROM (ISTREAM({inside})) {outside} x, {stream.name} {window}",
            f"{keys} {window} UNION {keys} {second}",
            f"{keys} {window} EXCEPT {keys} {second}",
        ]
    )


def drawn_window(rng, key):
    """A window that passes soon, in most cases."""
    return rng.choice(WINDOWS if rng.random() < 0.85 else RARE).format(key=key)
