"""Steps, results, sinks and failures after a death; random cases that die between any two calls."""

from __future__ import annotations

import csv
import itertools
import random
import shutil
import tempfile
from contextlib import contextmanager

import pytest

from millpond import Engine
from millpond.errors import InputError
from tests.cases import Run
from tests.crashing import Mortal, die, recovered, validate_open
from tests.fuzz import check
from tests.generator import seeded_case

pytestmark = [
    pytest.mark.spark,
]

STREAM = "CREATE STREAM S (t BIGINT, a INT, k INT) TIMESTAMP BY t;"
COUNT = "CREATE QUERY n AS SELECT k, count(*) AS n FROM S [RANGE 4] GROUP BY k;"
BIG = 2**63 - 1
ROWS = [(n // 2, n, n % 3) for n in range(60)]


@pytest.fixture
def reopened(spark, tmp_path):
    """Opens the store, as often as it is called, each time after a death."""
    engines = []

    def reopen(**options):
        if engines:
            die(engines.pop())
        engines.append(Engine(spark=spark, store=tmp_path / "store", **options))
        validate_open(engines[-1])
        return engines[-1]

    yield reopen
    for engine in engines:
        engine.close()


def mortal_engines(spark, rng, **more):
    """Makes engines that die at a third of all calls, and whose logs begin anew at half of them."""

    @contextmanager
    def made(settings):
        store = tempfile.mkdtemp(prefix="millpond-test")
        engine = Mortal(
            lambda: Engine(settings | more, spark, store=store),
            lambda: rng.random() < 0.3,
            lambda: rng.random() < 0.5,
        )
        try:
            with engine:
                yield engine
        finally:
            shutil.rmtree(store, ignore_errors=True)

    return made


@pytest.mark.parametrize("driver_rows", [50_000, 0])
@pytest.mark.parametrize("seed", range(7_001, 7_003))
def test_deaths_between_any_two_calls_do_not_matter(spark, seed, driver_rows):
    case = seeded_case(seed, 3 if driver_rows == 0 else 6, late=seed % 2 == 0)
    runs = [place for place, action in enumerate(case.schedule) if isinstance(action, Run)]
    kept = case.with_schedule(
        action for place, action in enumerate(case.schedule) if place not in runs[2:]
    )
    failures = check(mortal_engines(spark, random.Random(seed), driver_rows=driver_rows), kept)
    assert not failures, "\n".join(map(str, failures[:1]))


def test_results_are_complete_after_a_restart(reopened):
    engine = reopened()
    engine.execute(STREAM + COUNT)
    engine.push("S", ROWS[:30])
    engine.run_until_idle()
    before = engine.results("n").to_pylist()
    assert before
    engine = reopened()
    assert engine.results("n").to_pylist() == before
    engine.compact_log()
    engine = reopened()
    assert engine.results("n").to_pylist() == before
    engine.push("S", ROWS[30:])
    engine.finish()
    with_restarts = engine.results("n").to_pylist()
    with Engine(spark=engine.spark) as undisturbed:
        undisturbed.execute(STREAM)
        undisturbed.execute(COUNT)
        undisturbed.push("S", ROWS)
        undisturbed.finish()
        assert undisturbed.results("n").to_pylist() == with_restarts


def test_a_sink_gets_what_was_committed_before_it_was_written(reopened, tmp_path, monkeypatch):
    """A death between commit and delivery, where results are not kept."""
    engine = reopened(keep_results=False)
    engine.execute(STREAM + f"CREATE QUERY q AS SELECT a FROM S INTO csv('{tmp_path}/q.csv');")
    engine.push("S", ROWS[:20])
    with monkeypatch.context() as patch:
        patch.setattr("millpond.delivery.deliveries.feed_sink", lambda *_: None)
        engine.run_until_idle()
    engine = reopened(keep_results=False)
    engine.compact_log()
    engine = reopened(keep_results=False)
    engine.push("S", ROWS[20:])
    engine.finish()
    validate_open(engine)
    with (tmp_path / "q.csv").open() as file:
        assert [int(row["a"]) for row in csv.DictReader(file)] == [a for _, a, _ in ROWS]


def test_results_that_were_not_kept_are_not_missed(reopened, tmp_path):
    engine = reopened(keep_results=False)
    engine.execute(STREAM + f"CREATE QUERY q AS SELECT a FROM S INTO csv('{tmp_path}/q.csv');")
    engine.push("S", ROWS[:20])
    engine.run_until_idle()
    engine = reopened()
    engine.push("S", ROWS[20:])
    engine.finish()
    assert engine.results("q")["a"].to_pylist() == [a for _, a, _ in ROWS[18:]]
    validate_open(reopened(keep_results=False))


def test_what_a_sink_has_beyond_its_mark_is_cut_off(reopened, tmp_path):
    sinks = {"csv": "q.csv", "json": "q.json", "parquet": "parts"}
    queries = [
        f"CREATE QUERY {kind}_q AS SELECT a FROM S INTO {kind}('{tmp_path}/{file}');"
        for kind, file in sinks.items()
    ]
    engine = reopened()
    engine.execute(STREAM + "".join(queries))
    engine.push("S", ROWS)
    engine.run_until_idle()
    text = {name: (tmp_path / name).read_bytes() for name in ("q.csv", "q.json")}
    parts = sorted(file.name for file in (tmp_path / "parts").iterdir())
    for name, content in text.items():
        (tmp_path / name).write_bytes(content + b"half a li")
    (tmp_path / "parts" / f"part-{len(parts):06d}.parquet").write_bytes(b"half a file")
    reopened()
    assert {name: (tmp_path / name).read_bytes() for name in text} == text
    assert sorted(file.name for file in (tmp_path / "parts").iterdir()) == parts


def test_failures_survive_and_their_queries_can_be_restarted(reopened):
    engine = reopened()
    engine.execute(STREAM + f"CREATE QUERY bad AS SELECT {BIG} + k * (30 - a) AS b FROM S;")
    engine.execute("CREATE QUERY good AS SELECT a FROM S;")
    engine.push("S", ROWS)
    with pytest.raises(InputError):
        engine.run_until_idle()
    for _ in range(2):
        engine = reopened()
        (failure,) = engine.failures()
        assert failure.query == "bad"
        assert engine.results("good").num_rows > 0
        assert engine.show("failures").to_pylist()[0]["query"] == "bad"
        engine.compact_log()
    engine.execute("ALTER QUERY bad ACTIVE;")
    engine.push("S", [(40, 35, 1)])
    engine.run_until_idle()
    for _ in range(2):
        engine = reopened()
        assert not engine.failures()
        assert engine.graph.whole().operators
        engine.compact_log()
    engine.finish()
    assert engine.results("bad", "rows")[-1]["b"] == BIG - 5


def test_what_a_query_left_out_is_counted_after_a_restart(reopened):
    engine = reopened(keep_results=False)
    engine.execute(STREAM + f"CREATE QUERY q ON ERROR SKIP AS SELECT {BIG} + a AS b FROM S;")
    engine.push("S", ROWS)
    engine.finish()
    assert engine.left_out_count("q") == len(ROWS) - 1
    for _ in range(2):
        engine = reopened(keep_results=False)
        assert engine.left_out_count("q") == len(ROWS) - 1
        engine.compact_log()


def test_the_log_begins_anew_while_the_engine_works(reopened, monkeypatch, tmp_path):
    monkeypatch.setattr("millpond.storage.journal.LOG_BYTES", 4_000)
    path = tmp_path / "store" / "commits.log"
    engine = reopened()
    engine.execute(STREAM + "CREATE QUERY n AS SELECT k, sum(a) AS s FROM S [ROWS 5] GROUP BY k;")
    sizes = []
    for first in range(0, 60, 4):
        engine.push("S", ROWS[first : first + 4])
        engine.run_until_idle()
        sizes.append(path.stat().st_size)
    assert any(later < earlier for earlier, later in itertools.pairwise(sizes))
    results, before = engine.results("n").to_pylist(), recovered(engine)
    engine = reopened()
    assert engine.results("n").to_pylist() == results
    assert recovered(engine) == before


def test_steps_are_shown_with_the_way_they_went(reopened):
    engine = reopened()
    engine.execute(STREAM + "CREATE QUERY n AS SELECT count(*) AS n FROM S [RANGE 4];")
    engine.push("S", ROWS[:30])
    engine.run_until_idle()
    engine.execute("SET driver_rows = 0;")
    engine.push("S", ROWS[30:])
    engine.finish()
    (shown,) = engine.execute("SHOW STEPS;")
    steps = {row["does"].split()[0]: row for row in shown.to_pylist()}
    assert len(steps) == 2
    for row in steps.values():
        assert row["in driver"] > 0
        assert row["on executors"] > 0
        assert row["steps"] == row["in driver"] + row["on executors"]
        assert row["queries"] == "n"
        assert row["driver bytes"] > 0
    tally = engine.runtime.tally
    assert tally.steps == sum(row["steps"] for row in steps.values())
