"""Random cases: a small database, queries over it, and a schedule of arrivals, heartbeats and runs.

Domains are small, NULLs, equal rows and equal timestamps frequent, so that joins hit and
corner cases meet. ``random_case`` depends on its ``random.Random`` only.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from hypothesis import strategies

from millpond.errors import MillpondError
from millpond.scheduling.registry import BUILT_IN
from millpond.scheduling.strategy_text import engine_strategy
from tests import reference
from tests.cases import (
    Advance,
    Case,
    Change,
    Delete,
    Drop,
    Insert,
    Push,
    Register,
    Relation,
    Run,
    Stream,
    Update,
)
from tests.failing_queries import FailingQueryGenerator
from tests.query_generator import (
    ARRAYS,
    BINARIES,
    DATES,
    DECIMAL,
    EPOCH,
    FIELDS,
    MAP,
    STRINGS,
    STRUCT,
    TIMESTAMPS,
    TYPES,
    QueryGenerator,
    Table,
    element_of,
)
from tests.query_generator import Column as QueryColumn
from tests.reference_values import AggregateOverflowError, Array, Map, Struct

LAST_TIME = 30
MOST_WORK = 300_000
SKIPPING = 0.2
"""How many of the queries fail here and there, and say ON ERROR SKIP."""
QUICK = ("fifo", "round-robin")
"""Strategies that take all that waits in one step."""


def _drives_spark(name):
    try:
        engine_strategy(name, 2**30)
    except MillpondError:
        return False
    return True


STRATEGIES = tuple(filter(_drives_spark, BUILT_IN))
"""Those that run on Spark."""


def cases(queries=1, late=False):
    """A Hypothesis strategy of cases; the seed is all there is to shrink, see ``tests.fuzz``."""
    return strategies.integers(0, 2**48).map(lambda seed: seeded_case(seed, queries, late))


def seeded_case(seed, queries=1, late=False):
    """The case of a seed."""
    return random_case(random.Random(seed), queries, late, f"seed {seed}, {queries} queries")


def random_case(rng, queries=1, late=False, title=""):
    """A random case; with ``late`` some tuples come too late."""
    case, tables = with_queries(rng, random_database(rng, late, title), queries, telling_query)
    return with_failing_queries(rng, with_latecomers(rng, case), tables)


def unevaluated_case(seed, queries=1):
    """A case whose queries the reference has not seen: for tests of what is said, not answered."""
    rng = random.Random(seed)
    case, _ = with_queries(rng, random_database(rng), queries, any_query)
    return case


def random_database(rng, late=False, title=""):
    """A case without queries."""
    usual = {name: rng.choice(TYPES) for name in "abcd"}
    streams = tuple(random_stream(rng, f"S{i}", usual) for i in range(1, rng.randint(1, 3) + 1))
    relations = tuple(
        Relation(f"R{i}", random_columns(rng, usual), timed=rng.random() < 0.5)
        for i in range(1, rng.randint(0, 2) + 1)
    )
    tracks = [stream_track(rng, stream, late) for stream in streams]
    tracks += [relation_track(rng, relation) for relation in relations]
    schedule = with_runs(rng, interleaved(rng, tracks))
    strategy = random_strategy(random.Random(rng.random()))  # whatever there are, queries stay
    return Case(streams, relations, {}, {}, schedule, strategy, title=title)


def random_strategy(rng):
    """Any that runs on Spark, often a quick one."""
    return rng.choice(QUICK if rng.random() < 0.4 else STRATEGIES)


def query_generator(rng, case):
    """What draws queries over the streams and relations of a case."""
    rows = Counter()
    for action in case.schedule:
        rows[getattr(action, "target", None)] += len(getattr(action, "rows", ()))
    return QueryGenerator(
        rng,
        [
            Table(e.name, e.schema, isinstance(e, Stream), max(rows[e.name], 1), False, ticks)
            for e in case.streams + case.relations
            for ticks in [isinstance(e, Stream) and e.schema[0][1] != "TIMESTAMP"]
        ],
    )


def with_queries(rng, case, queries, draw):
    """The case with views and queries over its streams and relations, and what they may name."""
    generator = query_generator(rng, case)
    for number in range(1, rng.choice([0, 0, 1, 2, 3, 4]) + 1):
        name, query = f"V{number}", draw(rng, case, generator)
        case = replace(case, views=case.views | {name: query.text})
        generator.tables.append(generator.table_of(name, query, is_view=True))
    texts = [draw(rng, case, generator).text for _ in range(queries)]
    queries = {f"q{i}": text for i, text in enumerate(texts, 1)}
    return replace(case, queries=queries), generator.tables


def with_failing_queries(rng, case, tables):
    """The case with some of its queries replaced by ones that fail, with ON ERROR SKIP."""
    generator = FailingQueryGenerator(rng, tables)
    for name in case.queries:
        text = failing_query(case, generator) if rng.random() < SKIPPING else None
        if text:
            queries = case.queries | {name: text}
            case = replace(case, queries=queries, skipping=case.skipping | {name})
    return case


def failing_query(case, generator):
    """A query that leaves something out and has an answer too, the last of some draws if none."""
    found, arguments = None, case.reference_arguments()
    for _ in range(12):
        text = generator.top_level().text
        try:
            answer = reference.evaluate(text, *arguments, "skip", MOST_WORK)
            aside = reference.left_out(text, *arguments, MOST_WORK)
        except (reference.TooMuchWorkError, AggregateOverflowError):
            continue
        found = text
        if answer and (aside or (aside is None and generator.chance(0.3))):
            break
    return found


def with_latecomers(rng, case):
    """The case with some queries registered, and some dropped, while data flows.

    The first query is there from the start to the end.
    """
    schedule = list(case.schedule)
    for name in list(case.queries)[1:] if rng.random() < 0.5 else ():
        first = 0
        if rng.random() < 0.4:
            first = rng.randint(0, len(schedule))
            schedule.insert(first, Register(name))
        if rng.random() < 0.15:
            schedule.insert(rng.randint(first + 1, len(schedule) + 1), Drop(name))
    return case.with_schedule(schedule)


def telling_query(rng, case, generator):
    """A query with several result elements, in most cases: an empty answer tells little."""
    drawn, sizes = [], []
    draws = rng.choice([1, 4, 4, 4, 4])
    while len(drawn) < draws or max(sizes) < 0:
        drawn.append(generator.top_level())
        sizes.append(answer_size(case, drawn[-1]))
        if sizes[-1] >= 5:
            break
    return drawn[sizes.index(max(sizes))]


def any_query(_rng, _case, generator):
    """Whatever comes first."""
    return generator.top_level()


def answer_size(case, query):
    """How many elements the reference finds, -1 if that takes it too long."""
    try:
        return len(reference.evaluate(query.text, *case.reference_arguments(), most_work=MOST_WORK))
    except reference.TooMuchWorkError:
        return -1


def random_columns(rng, usual):
    """Two to four columns; columns of one name mostly have the same type everywhere."""
    names = sorted(rng.sample("abcd", rng.randint(2, 4)))
    return tuple((n, usual[n] if rng.random() < 0.8 else rng.choice(TYPES)) for n in names)


def random_stream(rng, name, usual):
    """A stream with a random schema and delay."""
    time_type = rng.choice(["INT", "BIGINT", "BIGINT", "TIMESTAMP"])
    schema = (("t", time_type), *random_columns(rng, usual))
    return Stream(name, schema, rng.choice([0, 0, 1, 3, 8]))


def random_value(rng, type_name):
    """A value from a small domain, or NULL."""
    if rng.random() < 0.12:
        return None
    if type_name in ("INT", "BIGINT"):
        return rng.choice([0, 1, 1, 2, 2, 3, -1])
    if type_name == DECIMAL:
        return Decimal(rng.choice(["0.000", "0.500", "1.000", "1.125", "2.000", "-0.500"]))
    if type_name == "DOUBLE":
        return rng.choice([0.0, 0.5, 1.0, 1.5, 2.0, -0.5])
    if type_name in ARRAYS:
        element = element_of(type_name)
        return Array(random_value(rng, element) for _ in range(rng.choice([0, 1, 1, 2])))
    if type_name == STRUCT:
        return Struct((name, random_value(rng, of)) for name, of in FIELDS)
    if type_name == MAP:
        keys = rng.sample(STRINGS, rng.choice([0, 1, 1, 2]))
        return Map((key, random_value(rng, "INT")) for key in keys)
    domains = {
        "STRING": STRINGS, "BINARY": BINARIES, "BOOLEAN": (True, False), "DATE": DATES,
        "TIMESTAMP": TIMESTAMPS,
    }  # fmt: skip
    return rng.choice(domains[type_name])


def random_row(rng, schema, known):
    """A row, now and then equal to one seen before."""
    if known and rng.random() < 0.15:
        return rng.choice(known)
    return tuple(random_value(rng, type_name) for _, type_name in schema)


def random_times(rng, count):
    """Sorted times, many of them equal, with gaps."""
    instants = [rng.randint(0, LAST_TIME) for _ in range(rng.randint(4, 14))]
    return sorted(rng.choice(instants) for _ in range(count))


def stream_track(rng, stream, late):
    """What happens to a stream: pushes and heartbeats, in order."""
    rows = []
    for ts in random_times(rng, rng.choice([5, 8, 12, 16, 20, 25]) * (rng.random() > 0.05)):
        values = random_row(rng, stream.schema[1:], [row[1:] for row in rows])
        rows.append((ts, *values))
    # A tuple is held back by at most the delay, so none is late.
    rows = [row for _, row in sorted(
        ((row[0] + rng.randint(0, stream.delay), row) for row in rows), key=lambda pair: pair[0]
    )]  # fmt: skip
    if late:
        rows = with_late_rows(rng, stream, rows)
    track = cut(rng, stream.name, rows, Push)
    return [in_timestamps(action) for action in track] if is_timestamped(stream) else track


def is_timestamped(stream):
    """Whether a stream's time is a moment, not a number."""
    return stream.schema[0][1] == "TIMESTAMP"


def in_timestamps(action):
    """The push with its times as moments; one tick is a microsecond."""
    if not isinstance(action, Push):
        return action
    moments = tuple((EPOCH + timedelta(microseconds=ts), *row) for ts, *row in action.rows)
    return replace(action, rows=moments)


def with_late_rows(rng, stream, rows):
    """Inserts tuples far behind; which of them are late follows from the schedule."""
    for _ in range(rng.randint(1, 3)):
        place = rng.randint(0, len(rows))
        values = random_row(rng, stream.schema[1:], [])
        rows.insert(place, (rng.randint(0, LAST_TIME // 2), *values))
    return rows


def relation_track(rng, relation):
    """What happens to a relation."""
    return timed_track(rng, relation) if relation.timed else statement_track(rng, relation)


def statement_track(rng, relation):
    """Rows that are pushed and statements that change them, none with a time of its own."""
    columns = tuple(QueryColumn(relation.name, *column) for column in relation.schema)
    generator = QueryGenerator(rng, ())
    track = []
    for number in range(rng.randint(0, 7)):
        rows = tuple(random_row(rng, relation.schema, []) for _ in range(rng.randint(1, 4)))
        predicate = generator.predicate(columns, 1) if rng.random() < 0.9 else ""
        column = rng.choice(columns)
        actions = [Push(relation.name, rows), Insert(relation.name, rows)]
        if number:
            value = generator.expression(column.type, columns, 1)
            actions += [
                Insert(relation.name, rows),
                Delete(relation.name, predicate),
                Update(relation.name, column.name, value, predicate),
                Update(relation.name, column.name, value, predicate),
            ]
        track.append(rng.choice(actions))
    return track


def timed_track(rng, relation):
    """The content at the beginning and the changes, in the order of time."""
    held, changes = [], []
    for _ in range(rng.randint(0, 6)):
        row = random_row(rng, relation.schema, held)
        held.append(row)
        changes.append((None, "+", row))
    for ts in random_times(rng, rng.choice([0, 0, 3, 8])):
        if held and rng.random() < 0.5:
            changes.append((ts, "-", held.pop(rng.randrange(len(held)))))
        else:
            held.append(random_row(rng, relation.schema, held))
            changes.append((ts, "+", held[-1]))
    initial = tuple(change for change in changes if change[0] is None)
    rest = [change for change in changes if change[0] is not None]
    first = [Change(relation.name, initial)] if initial else []
    return first + cut(rng, relation.name, rest, Change)


def cut(rng, name, rows, action):
    """Chops rows into pushes, with heartbeats that keep their promise in between."""
    track, start = [], 0
    while start < len(rows):
        end = min(len(rows), start + rng.choice([1, 1, 2, 4, 8, 30]))
        track.append(action(name, tuple(rows[start:end])))
        start = end
        if rng.random() < 0.3:
            following = min((row[0] for row in rows[start:]), default=LAST_TIME + 20)
            so_far = max(row[0] for row in rows[:start])
            track.append(Advance(name, min(following - 1, so_far + rng.randint(-1, 3))))
    return track


def interleaved(rng, tracks):
    """One sequence of all actions; what holds at the beginning comes first."""
    tracks = [list(track) for track in tracks]
    first = [
        track.pop(0)
        for track in tracks
        if track and isinstance(track[0], Change) and track[0].rows[0][0] is None
    ]
    rest = []
    while any(tracks):
        rest.append(rng.choice([track for track in tracks if track]).pop(0))
    return first + rest


def with_runs(rng, actions):
    """Lets the engine run now and then, a few times in all."""
    places = {rng.randrange(len(actions) + 1) for _ in range(rng.choice([0, 1, 3, 5]))}
    result = []
    for place, action in enumerate(actions):
        result += [action, Run()] if place in places else [action]
    return tuple(result)
