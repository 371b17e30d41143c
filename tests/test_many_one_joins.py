"""A join whose one side references the other carries what is known of that side's columns: a pair
comes soon after its row of that side."""

from __future__ import annotations

import itertools
import random

import pytest

from millpond import Engine
from millpond.errors import MillpondError
from millpond.execution.operators import freeing
from millpond.execution.operators.freeing import FreeingOperator
from millpond.execution.operators.keyed import RunningKeyed
from millpond.storage import state
from tests.adhering import farthest_behind, latest_partner, most_others
from tests.execution.in_process import InProcess

STREAMS = "OFCG"
PAIRS = "O, F WHERE O.id = F.id"
QUERIES = {
    "groups": f"SELECT F.day, count(*) AS n, sum(O.v) AS s FROM {PAIRS} GROUP BY F.day",
    "once": f"SELECT DISTINCT F.day FROM {PAIRS}",
    "three": f"SELECT F.v, G.v AS w FROM G, {PAIRS} AND F.day = G.day",
    "chain": "SELECT F.day, count(*) AS n FROM O, F, C WHERE O.id = F.id "
    "AND O.other = C.id GROUP BY F.day",
    "last": "SELECT day, v FROM Pairs [PARTITION BY day ROWS 2]",
}
VIEW = f"CREATE VIEW Pairs AS STREAM (SELECT F.day, F.v FROM {PAIRS})"
BEHIND = 3
"""So much later the partner of a tuple comes."""


def clauses(far, ordered):
    """F and G have days; F references O, and O references C."""
    return {
        "F": f"{ordered} REFERENCES O (id) WITHIN {far}",
        "O": f"FOREIGN KEY (other) REFERENCES C (id) WITHIN {far}",
        "G": ordered,
    }


def declared(said):
    """The streams, each with what is said of it."""
    columns = "(t BIGINT, id INT, other INT, day INT, v INT) TIMESTAMP BY t DELAY 2"
    return ";".join(f"CREATE STREAM {name} {columns} {said.get(name, '')}" for name in "COFG")


def tuples(count):
    """For each time two tuples of each stream: a day ends with the first one of its last time, and
    partners come as late as they may."""
    for time in range(count):
        numbers = 2 * time, 2 * time + 1
        o, c = ([each - 2 * far * BEHIND for each in numbers] for far in (1, 2))
        days = [(time, number, 0, (number + 1) // 2, number) for number in numbers]
        yield (
            time,
            {
                "C": [(time, number, 0, 0, 0) for number in c],
                "O": [(time, number, number, 0, 1) for number in o],
                "F": days,
                "G": days,
            },
        )


def random_tuples(rng, count):
    """Tuples that come about in order, and what all of them adhere to."""
    came = []
    for time in range(count):
        pages = {}
        for name, lag in zip("COFG", (4, 2, 0, 0), strict=True):
            near = [max(0, time - rng.randrange(4) - lag) for _ in range(rng.randrange(3))]
            days = [max(0, (time - rng.randrange(5)) // 3) for _ in near]
            pages[name] = [
                (time + rng.randrange(3), each, max(0, each - rng.randrange(2)), day, time)
                for each, day in zip(near, days, strict=True)
            ]
        came.append((time, pages))
    return came, _adhered_to(rng, came)


def _adhered_to(rng, came):
    """What is said of F, O and G, just as it is or a little wider."""
    rows = {name: [row for _, pages in came for row in pages[name]] for name in "COFG"}
    days = {name: [row[3] for row in rows[name]] for name in "FG"}
    said = {
        name: rng.choice(
            (
                f"ORDERED BY (day) WITHIN {farthest_behind(days[name]) + rng.randrange(2)} ROWS",
                f"CLUSTERED BY (day) WITHIN {most_others(days[name]) + rng.randrange(2)} ROWS",
            )
        )
        for name in "FG"
    }
    for name, key, column, target in (("F", "id", 1, "O"), ("O", "other", 2, "C")):
        own = [(row[column], row[0]) for row in rows[name]]
        theirs = [(row[1], row[0]) for row in rows[target]]
        far = f"{latest_partner(own, theirs)}"
        if rng.random() < 0.5:
            far = f"{_latest_row(came, name, column, target)} ROWS"
        said[name] = f"{said.get(name, '')} FOREIGN KEY ({key}) REFERENCES {target} (id) "
        said[name] += f"WITHIN {far}"
    return said


def _latest_row(came, name, column, target):
    """How many rows later than a value the same one of another stream, which comes first, is."""
    numbers, places, most = itertools.count(), [], 0
    for _, pages in came:
        for row in pages[target]:
            far = [len(places) - place for value, place in places if value == row[1]]
            most = max([most, *far])
        places += [(row[column], next(numbers)) for row in pages[name]]
    return most


def answers(said, came, seed=0, store=None, restarts=True, names=tuple(QUERIES), **settings):
    """What all queries answer, and what operators have freed; for every seed the streams come in
    other pieces."""
    rng, found = random.Random(seed), {}
    engine = Engine(settings, store=store)
    engine.execute(f"{declared(said)}; {VIEW}")
    for name in names:
        engine.execute(f"CREATE QUERY {name} AS {QUERIES[name]}")
    for time, pages in came:
        for name, page in pages.items():
            engine.push(name, page)
        for name in STREAMS if not seed or rng.random() < 0.7 else ():
            engine.advance(name, time if not seed else time - 1)
        if not seed or rng.random() < 0.6:
            engine.run_until_idle()
        if restarts and store is not None and rng.random() < 0.2:
            engine.close()
            engine = Engine(settings, store=store)
    engine.finish()
    assert not any(engine.violating(name).num_rows for name in STREAMS)
    for name in names:
        found[name] = sorted(map(str, engine.results(name).to_pylist()))
    running = engine.runtime.running.items()
    freed = {name: each.freed_rows for name, each in running if isinstance(each, RunningKeyed)}
    engine.close()
    return found, freed


@pytest.fixture(autouse=True)
def _freed_at_once(monkeypatch):
    monkeypatch.setattr(state, "COMPACT_ROWS", 0)
    monkeypatch.setattr(freeing, "COMPACT_ROWS", 1)


@pytest.fixture(scope="module")
def plain():
    return answers({}, SHARP)[0]


ORDERED, CLUSTERED = "ORDERED BY (day) WITHIN 0 ROWS", "CLUSTERED BY (day) WITHIN 0 ROWS"
SHARP = list(tuples(11))
FAR = (f"{BEHIND}", f"{2 * BEHIND} ROWS")
WAYS = list(zip(FAR, (ORDERED, CLUSTERED), strict=True))


@pytest.mark.parametrize(("far", "ordered"), WAYS)
def test_answers_are_those_without_the_constraints(plain, far, ordered):
    found, freed = answers(clauses(far, ordered), SHARP)
    assert found == plain
    assert all(freed.values()), freed


def test_executors_and_restarts_do_not_matter(plain, monkeypatch, tmp_path):
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    assert answers(clauses(FAR[0], ORDERED), SHARP, 1, driver_rows=0, place_by="rows")[0] == plain
    assert answers(clauses(FAR[1], CLUSTERED), SHARP, 2, store=tmp_path / "store")[0] == plain


@pytest.mark.parametrize(("far", "ordered"), WAYS)
def test_what_is_freed_one_tick_too_early_is_missed(plain, far, ordered, monkeypatch):
    begun = FreeingOperator._begun

    def early(self, source, until):
        found = begun(self, source, until)
        return found + 1 if source.soon and found is not None else found

    monkeypatch.setattr(FreeingOperator, "_begun", early)
    wrong = answers(clauses(far, ordered), SHARP, names=("groups", "chain"))[0]
    assert wrong["groups"] != plain["groups"]
    assert wrong["chain"] != plain["chain"]


def test_explain_names_all_that_is_relied_on_and_a_violation_of_any_stops_the_query():
    with Engine() as engine:
        engine.execute(declared(clauses("3", ORDERED)))
        engine.execute(f"CREATE QUERY q AS {QUERIES['groups']}")
        told = str(engine.explain("q"))
        assert "F.ordered_by_day, F.references_o frees groups with day < bound" in told
        engine.push("F", [(0, 7, 0, 0, 0), (9, 8, 0, 1, 0)])
        engine.push("O", [(9, 7, 7, 0, 0)])
        with pytest.raises(MillpondError, match="a tuple breaks constraint"):
            engine.finish()
        assert [each.query for each in engine.failures()] == ["q"]


def test_what_came_before_the_constraint_is_of_any_age():
    """Nothing is known of how soon pairs come of what was there before."""
    with Engine() as engine:
        engine.execute(declared({"F": ORDERED}))
        engine.execute(f"CREATE QUERY q AS {QUERIES['groups']}")
        engine.push("O", [(0, 1, 0, 0, 0)])
        engine.push("F", [(0, 1, 0, 5, 0), (0, 2, 0, 5, 0)])
        engine.execute("ALTER STREAM F ADD REFERENCES O (id) WITHIN 1 ON VIOLATION COUNT")
        for time in range(1, 9):
            engine.push("F", [(time, 10 + time, 0, 10 + time, 0)])
            engine.push("O", [(time, 10 + time, 0, 0, 0)])
            engine.run_until_idle()
        engine.push("O", [(9, 2, 0, 0, 0)])
        engine.finish()
        assert not engine.violating("O").num_rows
        assert {"ts": 9, "weight": 1, "day": 5, "n": 2, "s": 0} in engine.results("q").to_pylist()


def test_a_wider_order_takes_over_and_what_references_cannot_be_dropped():
    with Engine() as engine:
        engine.execute(declared(clauses("3", f"{ORDERED} ON VIOLATION COUNT")))
        engine.execute(f"CREATE QUERY q AS {QUERIES['groups']}")
        engine.execute("ALTER STREAM F ADD CONSTRAINT wide ORDERED BY (day) WITHIN 4 ROWS")
        for _, pages in SHARP:
            for name, page in pages.items():
                engine.push(name, page)
            engine.run_until_idle()
        with pytest.raises(MillpondError, match="references_o of stream F has freed rows of q"):
            engine.execute("ALTER STREAM F DROP CONSTRAINT references_o")
        (answer,) = engine.execute("ALTER STREAM F DROP CONSTRAINT ordered_by_day")
        assert answer["complete from"].to_pylist() == ["row 26"]
