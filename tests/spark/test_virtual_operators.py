"""Virtual operators: where queues are changes how steps are done, and no answer."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace

import pytest

from millpond import Engine
from millpond.errors import MillpondError
from millpond.execution.executor import Executors
from millpond.execution.unit_steps import UnitStep
from millpond.planning.placement import QueuePlacement, edges
from millpond.spark import executor
from tests.crashing import validate_open
from tests.fuzz import check
from tests.generator import QUICK, seeded_case
from tests.ways import Way

STREAM = "CREATE STREAM S (t BIGINT, k INT, v INT) TIMESTAMP BY t;"
COUNTED = "CREATE VIEW counted AS SELECT k, count(*) AS n, sum(v) AS s FROM S [RANGE 3] GROUP BY k;"
CHAIN = "CREATE QUERY chain AS SELECT k, max(n * 2) AS m FROM counted WHERE n > 1 GROUP BY k;"
BESIDE = "CREATE QUERY beside AS SELECT k, s + 9223372036854775000 AS x FROM counted;"
LATER = "CREATE QUERY later AS SELECT k FROM (ISTREAM(SELECT k, n FROM counted)) [RANGE 4];"


def page(number, keys=3):
    return [(2 * number + i // 5, i % keys, i + number) for i in range(10)]


def without_queues(engine):
    engine.runtime.placement = QueuePlacement().choose(engine.graph, ())


def with_queues(engine):
    engine.runtime.placement = QueuePlacement().choose(engine.graph, edges(engine.graph))


def fed(engine, pages):
    for number in pages:
        engine.push("S", page(number))
        engine.run_until_idle()


def answers(engine, *queries):
    return {query: sorted(map(str, engine.results(query, "rows"))) for query in queries}


def units(engine):
    return sorted(len(unit.members) for unit in engine.runtime.units)


def test_a_queue_that_goes_is_read_to_its_end_first():
    with Engine() as engine, Engine() as other:
        for each in (engine, other):
            each.execute(STREAM + COUNTED + CHAIN + LATER)
        fed(other, range(6))
        other.finish()
        with_queues(engine)
        engine.push("S", page(0))
        held = engine.runtime
        unit = held.units.of["op1"]
        held.observe(complete=True)
        # the aggregate runs ahead of those that read it
        step = UnitStep(unit, unit.prepare(unit.horizon))
        step.execute(held._executors)
        assert held._publishing._committed(step)
        assert held.units.of["op2"].cursor < unit.cursor
        without_queues(engine)
        fed(engine, range(1, 4))
        assert units(engine) == [len(engine.graph.operators)]
        with_queues(engine)
        fed(engine, range(4, 6))
        assert units(engine) == [1] * len(engine.graph.operators)
        engine.finish()
        assert answers(engine, "chain", "later") == answers(other, "chain", "later")


def test_between_members_only_what_is_needed_later_is_kept(tmp_path):
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(STREAM + COUNTED + CHAIN)
        without_queues(engine)
        fed(engine, range(4))
        inner = engine.inputs.queues["op1"]
        assert not inner.pages, "an aggregate's changes are not read again"
        validate_open(engine)
    with Engine() as engine:
        engine.execute(STREAM + COUNTED + LATER)
        without_queues(engine)
        fed(engine, range(4))
        kept = [queue for name, queue in engine.inputs.queues.items() if name.startswith("op")]
        assert sum(queue.rows for queue in kept) > 0, "a window over what was put out needs it"


def test_a_member_that_fails_takes_only_its_queries_along(spark):
    with Engine(spark=spark) as engine, Engine(spark=spark) as other:
        for each in (engine, other):
            each.execute(STREAM + COUNTED + CHAIN)
        engine.execute(BESIDE)
        without_queues(engine)
        fed(engine, range(3))
        fed(other, range(3))
        engine.push("S", [(9, 0, 1000)])
        other.push("S", [(9, 0, 1000)])
        with pytest.raises(MillpondError, match=r"query beside: a number leaves the range"):
            engine.finish()
        other.finish()
        assert answers(engine, "chain") == answers(other, "chain")
        (failure,) = engine.failures()
        assert failure.query == "beside"
        assert failure.rows


def test_an_execution_that_breaks_off_commits_nothing_of_itself(monkeypatch):
    """A disk is full when the members have done their work: all of them fail, aloud."""
    with Engine() as engine:
        engine.execute(STREAM + COUNTED + CHAIN)
        without_queues(engine)
        fed(engine, [0])
        before = answers(engine, "chain")

        def full(step):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(UnitStep, "_find_published", full)
        engine.push("S", page(1))
        with pytest.raises(MillpondError, match="No space left on device"):
            engine.run_until_idle()
        assert answers(engine, "chain") == before
        assert [failure.query for failure in engine.failures()] == ["chain"]
        assert not engine.graph.operators


def test_dropping_one_of_several_while_their_step_runs_repeats_the_others_part(monkeypatch):
    with Engine() as engine, Engine() as other:
        for each in (engine, other):
            each.execute(STREAM + COUNTED + CHAIN)
        engine.execute(LATER)
        without_queues(engine)
        execute, dropped = Executors.execute, []

        def drops(executors, step):
            if "Output later" in step.running.operator.label() and not dropped:
                dropped.append(engine.drop("later"))
            return execute(executors, step)

        monkeypatch.setattr(Executors, "execute", drops)
        fed(engine, range(4))
        monkeypatch.undo()
        fed(other, range(4))
        assert dropped
        assert answers(engine, "chain") == answers(other, "chain")


def test_who_begins_to_read_between_members_sees_all_of_it(monkeypatch):
    """A page was not kept because only members read it; then somebody else does."""
    with Engine() as engine:
        engine.execute(STREAM + "CREATE VIEW total AS SELECT count(*) AS n FROM S [RANGE 3];")
        engine.execute("CREATE QUERY one AS SELECT n FROM total;")
        without_queues(engine)
        find, registered = UnitStep._find_published, []

        def registers(step):
            find(step)
            if not registered:
                registered.append(
                    engine.execute("CREATE QUERY two AS SELECT n + 1 AS m FROM total")
                )

        monkeypatch.setattr(UnitStep, "_find_published", registers)
        engine.run_until_idle()
        fed(engine, range(3))
        engine.finish()
        assert registered
        ones = [row["n"] + 1 for row in engine.results("one", "rows")]
        assert [row["m"] for row in engine.results("two", "rows")] == ones


def jobs(spark, script, placed=lambda engine: None, **settings):
    """How many jobs a page takes on the executors, and the answers."""
    tracker = spark.sparkContext.statusTracker()
    alone = {"driver_rows": 0, "place_by": "rows", "residents": 0}
    with Engine(alone | settings, spark) as engine:
        engine.execute(STREAM + script)
        placed(engine)
        fed(engine, [0])
        before = set(tracker.getJobIdsForGroup())
        fed(engine, [1])
        count = len(set(tracker.getJobIdsForGroup()) - before)
        engine.finish()
        return count, answers(engine, "chain")


@pytest.mark.spark
def test_a_chain_of_one_key_is_one_job_on_the_executors_unless_queues_are_wanted(spark):
    usual, expected = jobs(spark, COUNTED + CHAIN)
    queued, found = jobs(spark, COUNTED + CHAIN, with_queues)
    assert (usual, queued) == (1, 3)
    assert found == expected


@pytest.mark.spark
def test_a_selection_that_stands_alone_needs_no_job_of_its_own(spark):
    script = (
        "CREATE QUERY chain AS SELECT k, max(v) AS m FROM S [RANGE 3] WHERE v % 3 > 0 GROUP BY k;"
    )
    fused, expected = jobs(spark, script)
    apart, found = jobs(spark, script, linear="apart")
    assert (fused, apart) == (1, 1)
    assert found == expected


@pytest.mark.spark
@pytest.mark.parametrize(("seed", "driver_rows"), [(7002, 0), (7003, 50_000)])
def test_queues_that_come_and_go_change_no_answer(spark, seed, driver_rows):
    case = replace(seeded_case(seed, 4), strategy=QUICK[seed % 2])
    way = replace(Way.drawn(seed), driver_rows=driver_rows, store="dying", moves=0.7)
    failures = check(way.engines(spark), case)
    assert not failures, "\n".join(map(str, failures[:1]))


def test_a_log_replays_a_virtual_step_as_a_whole():
    directory = tempfile.mkdtemp(prefix="millpond-test")
    try:
        with Engine(store=directory) as engine:
            engine.execute(STREAM + COUNTED + CHAIN + LATER)
            without_queues(engine)
            fed(engine, range(3))
            before = answers(engine, "chain", "later")
            cursors = {unit.cursor for unit in engine.runtime.units}
            assert len(cursors) == 1
        with Engine(store=directory) as engine:
            assert {unit.cursor for unit in engine.runtime.units} == cursors
            assert answers(engine, "chain", "later") == before
            fed(engine, range(3, 5))
            engine.finish()
            found = answers(engine, "chain", "later")
        with Engine() as other:
            other.execute(STREAM + COUNTED + CHAIN + LATER)
            fed(other, range(5))
            other.finish()
            assert found == answers(other, "chain", "later")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


LINEAR = """
    CREATE QUERY few AS SELECT k, v * 2 AS w FROM S WHERE v > 3;
    CREATE QUERY last AS SELECT k, v FROM S [ROWS 2 WHERE v % 2 = 0];
    CREATE QUERY many AS SELECT k + 1 AS l, count(*) AS n FROM S [RANGE 3 SLIDE 2] WHERE v > 3
      GROUP BY k HAVING count(*) > 1;
    CREATE QUERY sampled AS SELECT v FROM S SAMPLE(40) [RANGE 2] WHERE k = 1;
"""
QUERIES = ("few", "last", "many", "sampled")


def of_linear(engine, move=lambda engine, number: None, more=""):
    engine.execute(STREAM + LINEAR + more)
    for number in range(6):
        move(engine, number)
        fed(engine, [number])
    engine.finish()
    return answers(engine, *QUERIES)


@pytest.mark.slow
def test_selections_and_projections_that_stand_alone_change_no_answer(tmp_path):
    def moves(engine, number):
        has_queue = ("NO QUEUE", "QUEUE")[number % 2]
        for operator in list(engine.graph.operators)[number % 3 :: 2]:
            engine.execute(f"ALTER PLAN {has_queue} AFTER {operator}")

    with Engine() as engine:
        expected, fused = of_linear(engine), len(engine.graph.operators)
        assert all(expected.values())
    for store, move in (
        ("memory", moves),
        (tmp_path / "store", moves),
        ("memory", lambda *_: None),
    ):
        with Engine({"linear": "apart"}, store=store) as engine:
            assert of_linear(engine, move) == expected
            assert len(engine.graph.operators) > fused


def test_queues_by_hand_are_shown_and_found_again(tmp_path):
    store = tmp_path / "store"
    with Engine({"linear": "apart"}, store=store) as engine:
        engine.execute(STREAM + LINEAR)
        engine.run_until_idle()
        assert "no queue between op1, op2, op3" in str(engine.explain("few"))
        engine.execute("ALTER PLAN QUEUE AFTER op1; ALTER PLAN NO QUEUE AFTER op2")
        assert "no queue between op2, op3: one virtual operator" in str(engine.explain("few"))
        fed(engine, [0])
        assert [len(engine.runtime.units.of[each].members) for each in ("op1", "op2")] == [1, 2]
        engine.push("S", page(1))
        rows = engine.show("queues").to_pylist()
        first = next(row for row in rows if row["after"] == "op1")
        named = {name: first[name] for name in ("after", "before", "queue", "by hand")}
        assert named == {"after": "op1", "before": "op2", "queue": "yes", "by hand": "queue"}
    for linear in ("apart", "functions"):  # from the log, then from one that began anew
        with Engine({"linear": linear}, store=store) as engine:
            assert engine.runtime.placement.by_hand == {"op1": True, "op2": False}
            engine.compact_log()


def test_what_is_no_operator_is_named(tmp_path):
    with Engine() as engine:
        engine.execute(STREAM + "CREATE QUERY all_of_it AS SELECT v FROM S")
        with pytest.raises(MillpondError, match=r'no operator "op9"; EXPLAIN PHYSICAL .*: op1'):
            engine.execute("ALTER PLAN QUEUE AFTER op9")
        with pytest.raises(MillpondError, match="only before the first query"):
            engine.execute("SET linear = 'apart'")


@pytest.mark.slow
def test_modes_change_while_data_flow_and_no_answer_does():
    modes, more = ("hmts", "di", "gts", "free", "ots", "hmts"), COUNTED + CHAIN + LATER

    def switches(engine, number):
        engine.execute(f"SET mode = '{modes[number]}'")

    def all_answers(settings, move):
        with Engine(settings) as engine:
            return of_linear(engine, move, more) | answers(engine, "chain", "later")

    expected = all_answers({}, lambda *_: None)
    assert all_answers({}, switches) == expected
    assert all_answers({"linear": "apart"}, switches) == expected


@pytest.mark.parametrize(("mode", "is_apart"), [("di", False), ("gts", True), ("ots", True)])
def test_a_mode_has_queues_where_it_wants_them(mode, is_apart):
    with Engine({"mode": mode, "linear": "apart"}) as engine:
        engine.execute(STREAM + COUNTED + CHAIN)
        fed(engine, range(2))
        count = len(engine.graph.operators)
        assert units(engine) == ([1] * count if is_apart else [count])


def test_shapes_ride_beside_one_another_on_the_executors(spark, monkeypatch):
    """Two kinds of alerts and counts: one job matches, one counts."""
    jobs = []
    work = executor.answers_of_tasks
    monkeypatch.setattr(
        executor, "answers_of_tasks", lambda *given: jobs.append(given) or work(*given)
    )
    texts = [
        "SELECT t, v FROM S WHERE k = {}",
        "SELECT t, k FROM S WHERE v > {}",
        "SELECT k, count(*) AS n FROM S [RANGE 3] WHERE k = {} GROUP BY k",
        "SELECT k, max(v) AS m FROM S [RANGE 2] WHERE k = {} GROUP BY k",
    ]
    queries = {f"q{i}_{n}": text.format(n) for i, text in enumerate(texts) for n in range(3)}
    script = ";".join(f"CREATE QUERY {name} AS {text}" for name, text in queries.items())
    with Engine({"driver_rows": 0}, spark) as engine, Engine(spark=spark) as other:
        for each in (engine, other):
            each.execute(STREAM + script)
            each.push("S", page(0))
            each.run_until_idle()
        jobs.clear()
        fed(engine, [1])
        assert len(jobs) == 2
        fed(other, [1])
        for each in (engine, other):
            fed(each, range(2, 4))
            each.finish()
        assert answers(engine, *queries) == answers(other, *queries)
