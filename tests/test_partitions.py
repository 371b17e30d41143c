"""Partitions: threads and a strategy for the queries and operators that are put in one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from millpond import Engine
from millpond.errors import CqlError, MillpondError, StateError
from millpond.scheduling.runtime import SchedulingLoop
from millpond.scheduling.threads import thread_scheduler

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE PARTITION fast STRATEGY chain THREADS 2 PRIORITY 3;
CREATE PARTITION slow;
CREATE QUERY even PARTITION slow AS SELECT a FROM S WHERE a % 2 = 0;
CREATE QUERY counts AS SELECT a, count(*) AS n FROM S [RANGE 3] GROUP BY a;
CREATE QUERY of_counts AS SELECT n, count(*) AS m FROM
  (SELECT a, count(*) AS n FROM S [RANGE 3] GROUP BY a) GROUP BY n;
"""


def rows(engine: Engine, what: str = "partitions") -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in engine.show(what).to_pylist()}


def feed(engine: Engine, first: int, last: int) -> None:
    engine.push("S", [(t, t % 7) for t in range(first, last)])
    engine.run_until_idle()


def answers(engine: Engine) -> list[list[tuple[Any, ...]]]:
    names = "even", "counts", "of_counts"
    return [sorted(map(tuple, map(dict.values, engine.results(q, "rows")))) for q in names]


def test_queries_and_operators_are_put_in_partitions_and_taken_out() -> None:
    with Engine() as engine:
        engine.execute(SCRIPT + "ALTER QUERY counts SET PARTITION fast")
        feed(engine, 1, 20)
        assert rows(engine)["slow"]["queries"] == "even"
        assert rows(engine)["slow"]["strategy"] == "round-robin (as SET)"
        shared, own = rows(engine)["fast"]["operators"].split(
            ", "
        )  # the urgent have what is shared
        assert {
            row["after"] for row in engine.show("queues").to_pylist() if row["queue"] == "yes"
        } >= {shared}
        engine.execute(f"ALTER PARTITION slow ADD OPERATOR {shared}")
        assert rows(engine)["fast"]["operators"] == own
        assert rows(engine)["slow"]["by hand"] == shared
        assert f"partition slow, THREADS 1 PRIORITY 1: {shared}" in str(engine.explain("counts"))
        engine.execute(f"ALTER PARTITION fast ADD OPERATORS {shared}, {own}")  # it is in one only
        assert rows(engine)["slow"]["by hand"] == ""
        engine.execute(f"ALTER PARTITION fast DROP OPERATORS {shared}, {own}")
        engine.execute("ALTER QUERY counts SET NO PARTITION; DROP PARTITION fast")
        feed(engine, 20, 30)
        assert set(rows(engine)) == {"slow"}
        assert "partition slow" in rows(engine, "queries")["even"]["detail"]


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("CREATE PARTITION fast", "exists already"),
        ("CREATE PARTITION p STRATEGY chian", 'no strategy "chian"; did you mean "chain"'),
        ("CREATE PARTITION p STRATEGY hmts", "has threads of its own, and so has a partition"),
        ("CREATE PARTITION p THREADS 0", "THREADS is a whole number, at least 1"),
        ("CREATE PARTITION p THREADS 1.5", "THREADS is a whole number, at least 1"),
        ("CREATE PARTITION p PRIORITY 0", "PRIORITY must be above zero"),
        ("CREATE PARTITION p PRIORITY 1 PRIORITY 2", "PRIORITY is given twice"),
        ("CREATE OR REPLACE PARTITION fast", "write ALTER PARTITION"),
        ("ALTER PARTITION fsat THREADS 2", 'no partition "fsat"; did you mean "fast"'),
        ("ALTER PARTITION fast", "expected STRATEGY, THREADS, PRIORITY, ADD OPERATOR"),
        ("ALTER PARTITION fast ADD OPERATOR op99", 'no operator "op99"; EXPLAIN PHYSICAL names'),
        ("ALTER PARTITION fast DROP OPERATOR op1", 'was not put in partition "fast" by hand'),
        ("ALTER QUERY even SET PARTITION S", 'no partition "S"'),
        ("CREATE QUERY q PARTITION p AS SELECT a FROM S", 'no partition "p"'),
        ("DROP PARTITION slow", "still has even; ALTER QUERY"),
        ("DROP PARTITION counts", "is a query; write DROP QUERY"),
    ],
)
def test_what_cannot_be_is_refused_with_its_way_out(
    declared: Engine, statement: str, complaint: str
) -> None:
    with pytest.raises(CqlError, match=complaint):
        declared.execute(statement)


@pytest.fixture(scope="module")
def declared() -> Any:
    with Engine() as engine:
        engine.execute(SCRIPT)
        yield engine


def test_conditional_statements_are_lenient(declared: Engine) -> None:
    declared.execute("CREATE PARTITION IF NOT EXISTS fast; DROP PARTITION IF EXISTS nobody")
    assert set(rows(declared)) == {"fast", "slow"}


def test_control_tables_show_and_set_them() -> None:
    with Engine() as engine:
        engine.execute(SCRIPT)
        feed(engine, 1, 10)
        entities = engine.entities()
        fast, even = entities.get("partition", "fast"), entities.get("query", "even")
        fast.set("threads", 3)
        fast.set("priority", 0.5)
        fast.set("strategy", "threshold(beta = 0.8)")
        assert [fast.get(each) for each in ("threads", "priority")] == [3, 0.5]
        assert fast.get("strategy") == "threshold(beta = 0.8)"
        for bad in (("threads", 0), ("priority", -1), ("strategy", "hope")):
            with pytest.raises(MillpondError):
                fast.set(*bad)
        even.set("partition", "fast")
        assert (even.get("partition"), fast.get("queries")) == ("fast", "even")
        operator = entities.get("operator", fast.get("operators"))
        operator.set("partition", "slow")
        assert (operator.get("partition"), fast.get("operators")) == ("slow", "")
        operator.set("partition", "")
        assert operator.get("partition") == "fast"
        even.set("partition", "")
        assert fast.get("operators") == ""
        with pytest.raises(StateError, match="no partition"):
            entities.get("partition", "nobody")


def test_threads_tell_what_they_execute_and_how() -> None:
    with Engine({"mode": "ots"}) as engine:
        engine.execute(SCRIPT + "ALTER QUERY counts SET PARTITION fast")
        feed(engine, 1, 10)
        first = engine.entities().get("thread", "thread0")
        assert (first.get("partition"), first.get("strategy")) == ("fast", "chain")
        assert first.get("priority") == 3
        first.set("priority", 5)
        feed(engine, 10, 20)  # it counts from the next decision on
        assert (first.get("priority"), rows(engine)["fast"]["priority"]) == (5, 5)
        own = engine.entities().of_kind("thread")[-1]
        assert own.get("partition") == ""
        with pytest.raises(StateError, match=r"of no partition.*CREATE PARTITION"):
            own.set("priority", 2)


def test_a_restart_finds_partitions_as_they_were(tmp_path: Any) -> None:
    changes = (
        "ALTER QUERY counts SET PARTITION fast;"
        "ALTER PARTITION fast STRATEGY 'simplified-segment(gamma = 0.5)' THREADS 4;"
    )
    with Engine(store=tmp_path / "store") as engine:
        engine.execute(SCRIPT + changes)
        feed(engine, 1, 20)
        moved = rows(engine)["fast"]["operators"].split(", ")[0]
        engine.execute(f"ALTER PARTITION slow ADD OPERATOR {moved}")
        before = rows(engine)
    for compacts in (False, True):
        with Engine(store=tmp_path / "store") as engine:
            found = rows(engine)
            assert {name: {**row, "seconds": 0} for name, row in found.items()} == {
                name: {**row, "seconds": 0} for name, row in before.items()
            }
            if not compacts:
                engine.compact_log()
            else:
                feed(engine, 20, 40)
                assert engine.result_count("even") > 0


def test_a_group_is_where_the_most_urgent_of_its_queries_is() -> None:
    with Engine({"sharing": "on"}) as engine:
        engine.execute(
            "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
            "CREATE PARTITION fast PRIORITY 3; CREATE PARTITION slow PRIORITY 0.1;"
            "CREATE QUERY one AS SELECT a FROM S WHERE a > 1;"
            "CREATE QUERY two PARTITION slow AS SELECT a FROM S WHERE a > 2;"
        )
        feed(engine, 1, 10)
        assert rows(engine)["slow"]["operators"] == ""
        engine.execute("ALTER QUERY two SET PARTITION fast")
        feed(engine, 10, 20)
        assert rows(engine)["fast"]["operators"] != ""


STARVING = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t; CREATE STREAM T (t BIGINT, a INT) TIMESTAMP BY t;
CREATE PARTITION urgent PRIORITY 1000000000; CREATE PARTITION idle PRIORITY 0.000000001;
CREATE QUERY busy PARTITION urgent AS SELECT a, count(*) AS n FROM S [ROWS 5] GROUP BY a;
CREATE QUERY poor PARTITION idle AS SELECT a, count(*) AS n FROM T [ROWS 5] GROUP BY a;
"""


@pytest.mark.parametrize("mode", ["free", "hmts"])
def test_nobody_starves_beside_work_that_never_ends_and_is_more_urgent(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    aging = 10
    monkeypatch.setattr(thread_scheduler, "AGING", aging)
    with Engine({"processors": 1, "mode": mode}) as engine:
        engine.execute(STARVING)
        engine.push("T", [(1, 1), (2, 2)])
        loop, turns = SchedulingLoop(engine.runtime, engine.queries.partitioning.strategy()), 0
        while not engine.result_count("poor") and turns < 100 * aging:
            turns += 1
            engine.push("S", [(turns, turns % 3)])  # so that somebody urgent has work at each turn
            loop.turn()
        assert engine.result_count("poor")


def drawn_change(rng: random.Random, engine: Engine) -> str:
    """Something that may be said of partitions while data flow."""
    name, operators = rng.choice(("fast", "slow")), list(engine.graph.operators)
    strategy = rng.choice(("chain", "fifo", "path-capacity", "greedy", "auto"))
    return rng.choice(
        (
            f"ALTER QUERY {rng.choice(('even', 'counts', 'of_counts'))} SET PARTITION {name}",
            f"ALTER QUERY {rng.choice(('even', 'counts', 'of_counts'))} SET NO PARTITION",
            f"ALTER PARTITION {name} ADD OPERATOR {rng.choice(operators)}",
            f"ALTER PARTITION {name} STRATEGY {strategy!r} THREADS {rng.randint(1, 3)}",
            f"ALTER PARTITION {name} PRIORITY {rng.choice((0.001, 1, 50))}",
            f"SET mode = {rng.choice(('free', 'gts', 'ots', 'hmts', 'di', 'direct'))!r}",
            f"SET slice = {rng.choice(('0', '1 us', '1 s'))!r}",
            f"SET strategy = {strategy!r}",
        )
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_answer_depends_on_partitions_threads_or_slices(seed: int) -> None:
    rng = random.Random(seed)
    with Engine() as plain:
        plain.execute(SCRIPT)
        feed(plain, 1, 61)
        expected = answers(plain)
    with Engine({"processors": 2, "validate": "on", "linear": "apart"}) as engine:
        engine.execute(SCRIPT)
        engine.start()
        for first in range(1, 61, 4):
            engine.push("S", [(t, t % 7) for t in range(first, first + 4)])
            for _ in range(2):
                engine.execute(drawn_change(rng, engine))
        engine.run_until_idle()
        engine.stop()
        assert answers(engine) == expected
