"""Queries whose selections are implied by selections that run read what these let through."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from millpond import Engine
from millpond.cql.algebra import Filter
from millpond.errors import InputError
from millpond.planning.physical import LinearOperator
from millpond.sharing import containments
from tests.contained import always_read, contained_case
from tests.crashing import die
from tests.fuzz import check
from tests.ways import Way

STREAM = "CREATE STREAM S (ts BIGINT, k INT, v INT, b BIGINT) TIMESTAMP BY ts;"
FEW = "SELECT ts, k FROM S WHERE v > 90"
COUNT = "SELECT k, count(*) AS n FROM S [RANGE 20] WHERE v > 95 GROUP BY k"
LARGEST = "SELECT max(v) AS m FROM S [RANGE 9] WHERE v > 92 AND k = 3"


@pytest.fixture(autouse=True)
def _small_steps_are_large(monkeypatch):
    """What is measured in a test counts."""
    monkeypatch.setattr(containments, "LARGE_STEP", 100)


def page(engine, number, rows=1000):
    rng = random.Random(number)
    start = number * rows
    engine.push("S", [(start + i, i % 5, rng.randrange(100), i) for i in range(rows)])
    engine.advance("S", start + rows - 1)
    engine.run_until_idle()


def begun(engine, *queries, pages=2):
    """Some queries that have run for a while."""
    engine.execute(STREAM)
    for number, text in enumerate(queries):
        engine.execute(f"CREATE QUERY q{number} AS {text}")
    for number in range(pages):
        page(engine, number)


def selections(engine):
    """The selections that are operators."""
    parts = [e.input for e in engine.graph.operators.values() if isinstance(e, LinearOperator)]
    return [str(each.predicate) for each in parts if isinstance(each, Filter)]


def physical(engine, text):
    return str(engine.execute(f"EXPLAIN PHYSICAL {text}")[0])


def test_what_is_implied_by_a_selection_that_passes_few_rows_reads_what_that_passes():
    with Engine() as engine:
        begun(engine, FEW)
        told = physical(engine, f"CREATE QUERY c AS {COUNT}")
        assert "(v > 95) implies (v > 90)" in told
        assert "of the rows pass): reads what that selection lets through, which becomes" in told
        engine.execute(f"CREATE QUERY c AS {COUNT}; CREATE QUERY m AS {LARGEST}")
        assert selections(engine) == ["(v > 90)"]
        assert "which runs already" in physical(engine, "m")
        shared = engine.show("sharing").to_pylist()
        assert [(row["does"], row["queries"]) for row in shared] == [("Filter (v > 90)", "c, m")]


def test_answers_are_those_of_the_query_alone():
    answers = []
    for sharing in ("auto", "off"):
        with Engine({"sharing": sharing}) as engine:
            begun(engine, FEW)
            engine.execute(f"CREATE QUERY c AS {COUNT}; CREATE QUERY m AS {LARGEST}")
            page(engine, 2)
            engine.execute(f"CREATE QUERY late AS {COUNT.replace('count(*)', 'sum(b)')}")
            page(engine, 3)
            assert len(selections(engine)) == (sharing == "auto")  # those of late-comers are one
            engine.execute("DROP QUERY q0; DROP QUERY c")
            page(engine, 4)
            engine.finish()
            answers.append([engine.results(name).to_pylist() for name in ("m", "late")])
    assert answers[0] == answers[1] != [[], []]


def test_the_selection_goes_with_the_last_that_reads_it():
    with Engine() as engine:
        begun(engine, FEW)
        engine.execute(f"CREATE QUERY c AS {COUNT}; CREATE QUERY m AS {LARGEST}")
        engine.execute("DROP QUERY q0; DROP QUERY c")
        assert selections(engine) == ["(v > 90)"]
        engine.execute("ALTER QUERY m DEACTIVATE")
        assert not engine.graph.operators
        assert not engine.queries.containments._holders
        assert not engine.queries.containments._read


NOT_READ = {
    "too many rows pass": ("SELECT ts FROM S WHERE v > 20", COUNT, "would save little"),
    "more rows pass than it is worth an operator": (
        "SELECT ts FROM S WHERE v > 70",
        COUNT,
        "reading a queue behind that would save little",
    ),
    "it is not implied": ("SELECT ts FROM S WHERE v > 97", COUNT, None),
    "the query's own can fail": (FEW, COUNT.replace("v > 95", "v > 95 AND b * b > 3"), None),
    "the other one can fail": ("SELECT ts FROM S WHERE v > 90 AND b * b > 3", COUNT, None),
    "it stands above a sample": (FEW, COUNT.replace("[RANGE 20]", "[RANGE 20] SAMPLE(50)"), None),
    "it is of a relation": (FEW, "SELECT k FROM S [ROWS 3] WHERE v > 95", None),
}


@pytest.mark.parametrize("case", NOT_READ)
def test_what_is_not_read(case):
    running, text, told = NOT_READ[case]
    with Engine() as engine:
        begun(engine, running)
        explained = physical(engine, f"CREATE QUERY c AS {text}")
        assert ("implies" in explained) == (told is not None)
        assert told is None or told in explained
        engine.execute(f"CREATE QUERY c AS {text}")
        assert not selections(engine)


def test_who_leaves_out_what_fails_reads_for_itself():
    with Engine() as engine:
        begun(engine, FEW)
        assert "implies" not in physical(engine, f"CREATE QUERY c ON ERROR SKIP AS {COUNT}")
        engine.execute(f"CREATE QUERY c ON ERROR SKIP AS {COUNT}")
        assert not selections(engine)


def test_nothing_is_read_that_was_not_measured_or_with_sharing_off():
    with Engine() as engine:
        begun(engine, FEW, COUNT, pages=0)
        assert not selections(engine)
        assert "not measured" in physical(engine, f"CREATE QUERY m AS {LARGEST}")
    with Engine({"sharing": "off"}) as engine:
        begun(engine, FEW)
        engine.execute(f"CREATE QUERY c AS {COUNT}")
        assert not selections(engine)


def test_selections_that_are_operators_anyway_are_read():
    with Engine({"linear": "apart"}) as engine:
        begun(engine, FEW, COUNT, pages=0)
        assert selections(engine)[:2] == ["(v > 90)", "(v > 95)"]
        assert "reads what that selection lets through" in physical(engine, "q1")


def test_equal_queries_stay_one_whatever_comes_between():
    """What does the same as operators that run is planned as they were."""
    with Engine() as engine:
        begun(engine, COUNT)
        engine.execute(f"CREATE QUERY few AS {FEW}")
        page(engine, 2)
        page(engine, 3)
        engine.execute(f"CREATE QUERY again AS SELECT n, k FROM ({COUNT}) x")
        assert not selections(engine)
        page(engine, 4)
        labels = [each.label() for each in engine.graph.operators.values()]
        assert labels.count("Aggregate count(*) BY k") == 1


@pytest.mark.parametrize("shortens", [False, True])
def test_what_was_chosen_is_chosen_again_after_a_restart(tmp_path, shortens):
    """Though nothing is measured then, and who had the other selection is gone."""
    with Engine() as engine:
        begun(engine, FEW)
        engine.execute(f"CREATE QUERY c AS {COUNT}")
        page(engine, 2)
        page(engine, 3)
        engine.finish()
        expected = engine.results("c").to_pylist()
    engine = Engine(store=tmp_path)
    begun(engine, FEW)
    engine.execute(f"CREATE QUERY c AS {COUNT}; CREATE QUERY m AS {LARGEST}")
    page(engine, 2)
    engine.execute("DROP QUERY q0; ALTER QUERY m DEACTIVATE; ALTER QUERY m ACTIVATE")
    if shortens:
        engine.compact_log()
    plan = engine.graph.describe()
    die(engine)
    with Engine(store=tmp_path) as again:
        assert again.graph.describe() == plan
        assert set(selections(again)) == {"(v > 90)"}
        page(again, 3)
        again.finish()
        assert again.results("c").to_pylist() == expected


def test_who_fails_and_begins_again_is_planned_again_after_a_restart(tmp_path):
    text = "SELECT k, sum(b * b * v) AS n FROM S [NOW] WHERE v > 95 GROUP BY k"
    engine = Engine(store=tmp_path)
    begun(engine, FEW)
    engine.execute(f"CREATE QUERY c AS {text}")
    engine.push("S", [(9000, 1, 99, 2**62)])
    engine.advance("S", 9001)
    with pytest.raises(InputError, match="leaves the range"):
        engine.run_until_idle()
    assert [failure.query for failure in engine.failures()] == ["c"]
    engine.restart("c")
    assert selections(engine) == ["(v > 90)"]
    plan = engine.graph.describe()
    die(engine)
    with Engine(store=tmp_path) as again:
        assert again.graph.describe() == plan


SETS = 24
"""Others are for make fuzz."""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_each_query_of_a_set_answers_as_if_alone(number):
    read = 0
    for seed in range(1000 + number, 1000 + SETS, 4):
        with always_read(has_groups=seed % 3 == 0) as taken:
            failures = check(way_of(seed).engines(None), contained_case(seed))
        assert not failures, "\n".join(map(str, failures[:1]))
        read += len(taken)
    assert read


def way_of(seed):
    """A way without executors in which selections may be operators."""
    way = Way.drawn(seed).seldom_validated()
    linear = ("functions", "functions", "apart")[seed // 2 % 3]
    moves = min(way.moves, 0.3)
    return replace(way, sharing="auto", driver_rows=10**9, switches=0.0, linear=linear, moves=moves)


@pytest.mark.parametrize("on_top", ["k", "v"])
def test_each_of_several_selections_below_one_reader_has_its_own(on_top):
    both = "(SELECT k, v FROM S [RANGE 4] WHERE k = 1 UNION SELECT k, v FROM S [RANGE 4] {})"
    body = both.format("WHERE v > 95")
    answers = []
    for sharing in ("off", "auto"):
        with Engine({"sharing": sharing}) as engine:
            begun(engine, FEW)
            engine.execute(f"CREATE QUERY u AS SELECT k, count(*) AS n FROM {body} GROUP BY k")
            engine.execute(
                f"CREATE QUERY w AS SELECT {on_top}, max(v) AS n FROM {body} GROUP BY {on_top}"
            )
            page(engine, 2)
            answers.append([engine.results(name).to_pylist() for name in "uw"])
    assert answers[0] == answers[1]
