"""Punctuations that hold: patterns that nothing which is still to come matches."""

from __future__ import annotations

import random

from tests.cases import Punctuate, Push, literal

RANGED_TYPES = ("INT", "BIGINT", "DATE", "TIMESTAMP")
LISTED_TYPES = (*RANGED_TYPES, "STRING", "BOOLEAN")
MOST_LISTED = 6


def punctuated(case, seed):
    """The case with punctuations behind some of the pushes to its streams."""
    rng, schemas = random.Random(seed), {stream.name: stream.schema for stream in case.streams}
    schedule = []
    for place, action in enumerate(case.schedule):
        schedule.append(action)
        schema = schemas.get(getattr(action, "target", None))
        if isinstance(action, Push) and schema is not None:
            before = _rows(case.schedule[: place + 1], action.target)
            rest = _rows(case.schedule[place + 1 :], action.target)
            found = patterns(rng, schema, before, rest)
            schedule += [Punctuate(action.target, each) for each in found]
    return case.with_schedule(schedule)


def _rows(actions, stream):
    return [
        row
        for action in actions
        if isinstance(action, Push) and action.target == stream
        for row in action.rows
    ]


def patterns(rng, schema, before, rest, most=2):
    """Some patterns that rows have matched and none of the rest does; not of the first column,
    which is the time."""
    fields = [(at, *field) for at, field in enumerate(schema) if at and field[1] in LISTED_TYPES]
    found = []
    for _ in range(rng.randrange(most + 1) if fields else 0):
        chosen = rng.sample(fields, rng.choice((1, 1, min(2, len(fields)))))
        pattern = _wide(rng, *chosen[0], rest) if len(chosen) == 1 else None
        pattern = pattern or _listed(rng, chosen, before, rest)
        found += [] if pattern is None else [pattern]
    return found


def _wide(rng, at, name, type_name, rest):
    """All below the least of the rest."""
    values = [row[at] for row in rest if row[at] is not None]
    if type_name not in RANGED_TYPES or not values or rng.random() < 0.5:
        return None
    return f"{name} < {literal(min(values))}"


def _listed(rng, chosen, before, rest):
    """Values of one column, or of two with one value of the second, that come no more."""
    places = [at for at, _, _ in chosen]
    last = {tuple(row[at] for at in places) for row in rest}
    seen = {tuple(row[at] for at in places) for row in before}
    over = sorted((each for each in seen - last if None not in each), key=str)
    if not over:
        return None
    second = rng.choice(over)[1:]
    values = [each[0] for each in over if each[1:] == second][:MOST_LISTED]
    told = f"{chosen[0][1]} IN ({', '.join(map(literal, values))})"
    fixed = [f"{name} = {literal(v)}" for (_, name, _), v in zip(chosen[1:], second, strict=True)]
    return " AND ".join([told, *fixed])
