"""max_by, first, string_agg and aggregates of the user, against the reference evaluator."""

from __future__ import annotations

from datetime import date, datetime
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Aggregate, Engine
from millpond.errors import CqlError, MillpondError, StateError
from millpond.functions.stepping import MOST_IN_BLOCK, stepped
from tests import reference, reference_parser, reference_values
from tests.drawn_examples import examples
from tests.execution.in_process import InProcess

SCHEMA = [("t", "BIGINT"), ("a", "INT"), ("s", "STRING")]
STREAM = "CREATE STREAM S (t BIGINT, a INT, s STRING) TIMESTAMP BY t;"


def longest_rise(rows):
    """How many numbers of a row each are larger than the one before, at most."""
    best = run = 0
    before = None
    for (number,) in rows:
        run = run + 1 if before is not None and number > before else 1
        best, before = max(best, run), number
    return best


def rise_init():
    return (0, 0, None)


def rise_add(state, number):
    best, run, before = state
    run = run + 1 if before is not None and number > before else 1
    return max(best, run), run, number


def rise_value(state):
    return state[0]


def list_add(state, number, text):
    state.append((number, text))
    return state


def list_remove(state, number, text):
    state.remove((number, text))
    return state


def list_value(state):
    return "|".join(f"{number}{text}" for number, text in sorted(state))


def joined(rows):
    return "|".join(f"{number}{text}" for number, text in sorted(rows))


def listed_merge(state, other):
    state.extend(other)
    return state


def in_turn(state):
    return "|".join(f"{number}{text}" for number, text in state)


OWN = [
    ("rise", Aggregate(rise_init, rise_add, rise_value), ["INT"], "INT"),
    ("pairs", Aggregate(list, list_add, list_value, list_remove), ["INT", "STRING"], "STRING"),
    (
        "in_turn",
        Aggregate(list, list_add, in_turn, merge=listed_merge),
        ["INT", "STRING"],
        "STRING",
    ),
]
MEANINGS = {
    "rise": longest_rise,
    "pairs": joined,
    "in_turn": lambda rows: "|".join(f"{number}{text}" for number, text in rows),
}
QUERIES = {
    "best": "SELECT max_by(s, a), min_by(a, s), max_by(a, a), count(*) FROM S [RANGE 3]",
    "ends": "SELECT s, first(a), last(a), max(a) FROM S [ROWS 4] GROUP BY s",
    "so_far": "SELECT first(s), last(s), max_by(a, s) FILTER (WHERE a > 0) FROM S",
    "texts": "SELECT a, string_agg(s, ', '), percentile(a, 0.5) FROM S [RANGE 2] GROUP BY a",
    "by_value": "SELECT string_agg(s, '') FROM (SELECT DISTINCT a, s FROM S [RANGE 2]) T",
    "risen": "SELECT s, rise(a), last(a) FROM S [RANGE 4] GROUP BY s",
    "risen_so_far": "SELECT rise(a) FROM S",
    "risen_values": "SELECT rise(a) FROM (SELECT DISTINCT a, s FROM S) T",
    "paired": "SELECT pairs(a, s), pairs(a, 'x') FILTER (WHERE s > 'a') FROM S [RANGE 2]",
    "turns": "SELECT in_turn(a, s), rise(a) FROM S [ROWS 5]",
}


@pytest.fixture
def meant():
    """The reference evaluator knows the aggregates of these tests."""
    reference_values.OWN_AGGREGATES.update(MEANINGS)
    reference_parser.OWN_AGGREGATES.update(MEANINGS)
    yield
    reference_values.OWN_AGGREGATES.clear()
    reference_parser.OWN_AGGREGATES.clear()


def script():
    """The statements that register all queries."""
    return STREAM + "".join(f"CREATE QUERY {n} AS RELATION {t};" for n, t in QUERIES.items())


def output(engine, query):
    """What a query has put out, as the reference evaluator lists it."""
    rows = engine.results(query, "rows")
    made = [(r.pop("ts"), r.pop("weight"), tuple(r.values())) for r in rows]
    return sorted(made, key=_order)


def _order(change):
    return (-1 if change[0] is None else change[0], str(change[2]), change[1])


def expected(query, rows):
    """The same by the reference evaluator."""
    arrivals = [(row[0], number, tuple(row)) for number, row in enumerate(rows)]
    found = reference.evaluate(f"RELATION {QUERIES[query]}", {"S": (SCHEMA, arrivals)})
    return sorted(found, key=_order)


VALUES = st.tuples(
    st.integers(0, 2), st.none() | st.integers(-2, 3), st.none() | st.sampled_from(["", "a", "b"])
)


@pytest.mark.usefixtures("meant")
@examples(4)
@given(rows=st.lists(VALUES, max_size=12), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_all_agree_with_the_reference(rows, cuts):
    time, timed = 0, []
    for step, *row in rows:
        time += step
        timed.append((time, *row))
    bounds = [0, *sorted(min(cut, len(timed)) for cut in cuts), len(timed)]
    with Engine(functions=OWN) as engine:
        engine.execute(script())
        for start, end in pairwise(bounds):
            engine.push("S", timed[start:end])
            engine.run_until_idle()
        engine.finish()
        for query in QUERIES:
            assert output(engine, query) == expected(query, timed), query


ROWS = [(t, (t * 5) % 7 - 2, "ab"[t % 2]) for t in range(12)]


def answers(store=None, settings=None):
    """The answers of all queries to the same rows; with a store, by several engines."""
    engine = Engine(settings or {}, store=store, functions=OWN)
    engine.execute(script())
    for start in range(0, len(ROWS), 4):
        engine.push("S", ROWS[start : start + 4])
        engine.run_until_idle()
        if store is not None:
            engine.close()
            engine = Engine(store=store, functions=OWN)
    engine.finish()
    found = {query: engine.results(query).to_pylist() for query in QUERIES}
    engine.close()
    return found


def test_they_go_on_after_restarts_and_in_processes_of_their_own(tmp_path):
    expected = answers()
    assert all(len(rows) > 3 for rows in expected.values())
    assert answers(tmp_path / "store") == expected
    assert answers(settings={"functions": "process"}) == expected


def test_tasks_of_executors_answer_what_the_driver_does(monkeypatch):
    monkeypatch.setattr("millpond.spark.executor.SparkExecutor", InProcess)
    there = {"driver_rows": 0, "place_by": "rows", "validate": "on", "tasks": 3}
    assert answers(settings=there) == answers()


def test_many_rows_are_merged_by_blocks():
    added = []

    def add(state, number):
        added.append(number)
        return [*state, number]

    functions = (list, add, sum, None, lambda state, other: state + other)
    rows = [{"0": number} for number in range(640)]
    instants = [[0], [100], [5], [5, 6]]
    moved = [each for one in instants for each in one]
    moments = [at for at, one in enumerate(instants) for _ in one]
    group = [None, rows, [1] * 640, moved, [1, -1, 1, -1, -1], moments, len(instants)]
    type_ = pa.struct([("values", pa.list_(pa.int64())), ("state", pa.binary())])
    columns = [pa.array([each]) for each in group]
    (found,) = stepped(functions, False, type_, columns).to_pylist()
    total = sum(range(640))
    assert found["values"] == [total, total - 100, total - 95, total - 106]
    assert len(added) < 640 + 3 * MOST_IN_BLOCK + 5


def failing(state, number):
    if number == 3:
        raise ValueError("three")
    return state + number


def test_what_raises_stops_its_query_alone():
    own = ("fragile", Aggregate(int, failing, str), ["INT"], "STRING")
    with Engine(functions=[own]) as engine:
        engine.execute(STREAM)
        engine.execute("CREATE QUERY q ON ERROR SKIP AS SELECT fragile(a) AS f FROM S [RANGE 2]")
        engine.execute("CREATE QUERY other AS SELECT last(a) AS l FROM S [RANGE 2]")
        engine.push("S", [(1, 1, "a"), (2, 3, "a"), (9, 4, "b")])
        with pytest.raises(MillpondError, match="function fragile: ValueError: three"):
            engine.finish()
        engine.finish()
        assert [failure.query for failure in engine.failures()] == ["q"]
        assert engine.results("other", "rows")[-1]["l"] is None


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("STRING", 7),
        ("STRING", b"x"),
        ("INT", 1.5),
        ("INT", 1.0),
        ("INT", True),
        ("BIGINT", "7"),
        ("DOUBLE", "7"),
        ("BOOLEAN", 1),
        ("DATE", datetime(2024, 1, 1, 5)),
        ("TIMESTAMP", date(2024, 1, 1)),
        ("TIMESTAMP", 7),
    ],
)
def test_an_answer_of_another_type_stops_the_query(type_name, value):
    own = ("other", Aggregate(int, max, lambda state: value), ["INT"], type_name)
    with Engine(functions=[own]) as engine:
        engine.execute(STREAM + "CREATE QUERY q AS SELECT other(a) AS f FROM S")
        engine.push("S", [(1, 1, "a")])
        with pytest.raises(MillpondError, match="function other: TypeError: gives"):
            engine.finish()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT max_by(a) FROM S", r"max_by is called as max_by\(x, y\)"),
        ("SELECT first(a, s) FROM S", r"first is called as first\(x\)"),
        ("SELECT last(*) FROM S", r"last is called as last\(x\)"),
        ("SELECT string_agg(a, ',') FROM S", "string_agg needs a STRING, not INT"),
        ("SELECT string_agg(s, s) FROM S", "second argument of string_agg is a text written out"),
        ("SELECT string_agg(DISTINCT s, ',') FROM S", "string_agg does not take DISTINCT"),
        ("SELECT first(x.a) FROM S x, S y", "FROM is one stream alone; say the order elsewhere"),
        ("SELECT pairs(a) FROM S", r"pairs is called as pairs\(INT, STRING\)"),
        ("SELECT a FROM S WHERE rise(a) > 1", "rise is an aggregate function; it cannot stand in"),
        ("SELECT rise(rise(a)) FROM S", "an aggregate function cannot stand inside another"),
    ],
)
def test_wrong_calls_are_refused(text, words):
    with Engine(functions=OWN) as engine:
        engine.execute(STREAM)
        with pytest.raises(CqlError, match=words):
            engine.execute(text)


def test_parts_of_an_aggregate_can_be_called():
    with Engine() as engine, pytest.raises(StateError, match="function f: 3 cannot be called"):
        engine.register_function("f", Aggregate(int, 3, int), ["INT"], "INT")


def test_explain_and_show_name_them():
    with Engine(functions=OWN) as engine:
        engine.execute(STREAM)
        (plan,) = engine.execute("EXPLAIN SELECT s, max_by(t, a), rise(a) FROM S GROUP BY s")
        assert "Aggregate max_by(t, a), rise(a) BY s" in str(plan)
        (shown,) = engine.execute("SHOW FUNCTIONS")
        assert "removing aggregate pairs(INT, STRING) STRING" in str(shown)
