"""Random queries over random inputs: Spark agrees with the reference evaluator.

Each case registers several queries in one engine, cuts its input into random pages and runs under
one of the strategies, so agreement with the reference also shows that neither cuts, nor schedules,
nor the other queries matter; nor the way it is run: the number of processors, the place of steps,
the store, steps executed twice, deaths. The further tests vary one of these and keep the rest.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from millpond import Engine
from tests.adhering import adhering
from tests.cases import Advance, Change, Drop, Push, Register, Run
from tests.fuzz import ADHERING_EVERY, LATE_EVERY, PUNCTUATED_EVERY, check, drive
from tests.generator import QUICK, seeded_case
from tests.matching import difference
from tests.punctuating import punctuated
from tests.ways import Way

pytestmark = pytest.mark.spark

QUERIES = 10
SEEDS = (0, 2, 4, 5, 6, 7, 9)
"""7 cases of 10 queries: 70 query-input pairs; others are for make fuzz, and so are the two that
would take as long as all of these."""
MANY_RUNS_EVERY = 6


def engines(spark, **settings):
    """Makes engines on the shared session."""
    return lambda given: Engine(spark=spark, settings=given | settings)


def assert_agrees(factory, case):
    """Fails with a script that repeats the case."""
    failures = check(factory, case)
    assert not failures, "\n".join(map(str, failures[:1]))


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_agrees_with_the_reference(spark, seed):
    case = seeded_case(seed, QUERIES, late=seed % LATE_EVERY == 0)
    if seed % MANY_RUNS_EVERY:
        case = case.with_schedule(with_one_run(case.schedule))
    if seed % ADHERING_EVERY == 0:
        case = adhering(case)
    if seed % PUNCTUATED_EVERY == 0:
        case = punctuated(case, seed)
    way = Way.drawn(seed).seldom_validated()
    assert_agrees(way.engines(spark), replace(case, strategy=QUICK[seed % 2]))


def with_one_run(schedule):
    """Only the first of the runs: a step costs what it costs, however few tuples it reads."""
    runs = [place for place, action in enumerate(schedule) if isinstance(action, Run)]
    return tuple(action for place, action in enumerate(schedule) if place not in runs[1:])


@pytest.mark.parametrize("seed", [1015, 1018])
def test_kernels_in_workers_give_the_same(spark, seed):
    """With ``driver_rows = 0`` every keyed operator runs in Spark's Python workers."""
    case = seeded_case(seed, 4)
    actions = in_one_piece(case.schedule)
    half = len(actions) // 2
    halves = case.with_schedule((*actions[:half], Run(), *actions[half:]))
    assert_agrees(engines(spark, driver_rows=0), halves)


@pytest.mark.parametrize("seed", [2010])
def test_small_steps_give_the_same(spark, seed):
    """With ``step_rows = 4`` a step reads about four rows, whatever waits."""
    assert_agrees(engines(spark, step_rows=4), seeded_case(seed, 3))


@pytest.mark.parametrize("seed", [3006, 3012])
def test_cuts_and_strategies_do_not_matter(spark, seed):
    case = replace(seeded_case(seed, 4), strategy=QUICK[0])
    staying = [a for a in case.schedule if not isinstance(a, (Register, Drop))]
    case = case.with_schedule(staying)  # what others have seen depends on how far inputs were
    results = []
    for schedule, strategy in (
        (case.schedule, QUICK[0]),
        (in_one_piece(case.schedule), QUICK[1]),
        (in_small_pieces(case.schedule, random.Random(seed)), QUICK[1]),
    ):
        changed = replace(case.with_schedule(schedule), strategy=strategy)
        with Engine(spark=spark, settings={"strategy": strategy}) as engine:
            results.append(drive(engine, changed)[0])
    for name in case.queries:
        assert not difference(results[0][name], results[1][name]), str(case.only(name))
        assert not difference(results[0][name], results[2][name]), str(case.only(name))


def in_one_piece(schedule):
    """Everything arrives before the engine runs at all, and without heartbeats."""
    return tuple(a for a in schedule if not isinstance(a, (Run, Advance)))


def in_small_pieces(schedule, rng):
    """Every row comes alone, and the engine runs after some of them."""
    pieces = []
    for action in schedule:
        if isinstance(action, (Push, Change)):
            pieces += [replace(action, rows=(row,)) for row in action.rows]
        elif not isinstance(action, Run):
            pieces.append(action)
    places = {rng.randrange(len(pieces)) for _ in range(6)} if pieces else set()
    runs = [[piece, Run()] if i in places else [piece] for i, piece in enumerate(pieces)]
    return tuple(action for group in runs for action in group)


@pytest.mark.parametrize("seed", [4022])
def test_other_queries_do_not_matter(spark, seed):
    """The reference knows one query at a time; alone, each gives what it gave in company."""
    case = seeded_case(seed, 4)
    with Engine(spark=spark) as engine:
        together, _, _ = drive(engine, case)
    for name in case.queries:
        with Engine(spark=spark) as engine:
            alone, _, _ = drive(engine, case.only(name))
        assert not difference(together[name], alone[name]), str(case.only(name))


# Sampling.

ROWS = 400
SAMPLE = """
    CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
    CREATE QUERY whole AS SELECT t, a FROM S [NOW];
    CREATE QUERY part AS SELECT t, a FROM S SAMPLE(30) [NOW];
    CREATE QUERY again AS SELECT a, t FROM S SAMPLE(30) [RANGE 5];
    CREATE QUERY few AS SELECT t, a FROM S SAMPLE(10) [NOW];
    CREATE QUERY derived AS
      SELECT a FROM (ISTREAM(SELECT a FROM S [RANGE 2])) SAMPLE(30) [NOW];
    CREATE QUERY underived AS SELECT a FROM (ISTREAM(SELECT a FROM S [RANGE 2])) [NOW];
"""


def sampled(spark, cuts, seed=0):
    """What each of the sampling queries gives when the input is cut at these rows."""
    rows = [{"t": n // 2, "a": (n * 7919) % 97} for n in range(ROWS)]
    with Engine(spark=spark, settings={"seed": seed}) as engine:
        engine.execute(SAMPLE)
        for start, end in zip([0, *cuts], [*cuts, ROWS], strict=True):
            engine.push("S", rows[start:end])
            engine.run_until_idle()
        engine.finish()
        names = ("whole", "part", "again", "few", "derived", "underived")
        return {name: engine.results(name, "rows") for name in names}


def elements(records):
    """Each element as often as its weight says."""
    return sorted(
        tuple(sorted((k, v) for k, v in record.items() if k != "weight"))
        for record in records
        for _ in range(record["weight"])
    )


@pytest.fixture(scope="module")
def samples(_spark_session):
    return sampled(_spark_session, []), sampled(_spark_session, [37, 120, 121, 300])


def test_a_sample_is_part_of_the_stream(samples):
    one, _ = samples
    for part, whole in (("part", "whole"), ("few", "whole"), ("derived", "underived")):
        rest = elements(one[whole])
        for element in elements(one[part]):
            rest.remove(element)
        assert rest


def test_cuts_do_not_change_a_sample(samples):
    one, other = samples
    for name, records in one.items():
        assert elements(records) == elements(other[name])


def test_a_sample_has_about_the_size_asked_for(samples):
    one, _ = samples
    assert len(elements(one["whole"])) == ROWS
    for name, rate in (("part", 0.3), ("few", 0.1)):
        assert abs(len(elements(one[name])) - rate * ROWS) < 4 * (ROWS * rate * (1 - rate)) ** 0.5
    share = len(elements(one["derived"])) / len(elements(one["underived"]))
    assert 0.2 < share < 0.4


def test_equal_samples_of_a_stream_hold_the_same_elements(samples):
    one, _ = samples
    assert elements(one["part"]) == elements(one["again"])


def test_a_smaller_sample_is_part_of_a_larger_one(samples):
    one, _ = samples
    assert set(elements(one["few"])) <= set(elements(one["part"]))


def test_another_seed_gives_another_sample(spark, samples):
    assert elements(sampled(spark, [200], seed=1)["part"]) != elements(samples[0]["part"])
