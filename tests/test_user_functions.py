"""Functions of the user: registered, called in any expression, found at fault, asked for again."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.errors import CqlError, StateError
from millpond.spark.user_functions import user_function
from tests import reference, reference_values
from tests.crashing import die
from tests.drawn_examples import examples
from tests.user_functions import FUNCTIONS, MEANINGS, QUERIES, SCHEMA, reciprocal, script

STREAM = "CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"


@pytest.fixture
def engine():
    with Engine(functions=FUNCTIONS) as engine:
        engine.execute(STREAM)
        yield engine


def fed(engine, values):
    engine.push("S", list(enumerate(values)))
    engine.finish()


def output(engine, query):
    """What a query has put out, as the reference evaluator lists it."""
    rows = engine.results(query, "rows")
    return sorted(
        ((r.pop("ts"), r.pop("weight"), tuple(r.values())) for r in rows),
        key=lambda r: (r[0], str(r[2]), r[1]),
    )


def expected(query, values):
    """The same by the reference evaluator."""
    before = dict(reference_values.LENIENT)
    reference_values.LENIENT.update(MEANINGS)
    arrivals = [(ts, ts, (ts, a)) for ts, a in enumerate(values)]
    try:
        found = reference.evaluate(QUERIES[query], {"S": (SCHEMA, arrivals)}, on_error="skip")
    finally:
        reference_values.LENIENT.clear()
        reference_values.LENIENT.update(before)
    return sorted(found, key=lambda r: (r[0], str(r[2]), r[1]))


@pytest.mark.slow
@examples(12)
@given(
    values=st.lists(st.none() | st.integers(-4, 4), max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=3),
)
def test_answers_are_those_of_the_reference_however_pages_are_cut(values, cuts):
    with Engine(functions=FUNCTIONS) as engine:
        engine.execute(script())
        ends = sorted({min(cut, len(values)) for cut in cuts} | {len(values)})
        for low, high in zip([0, *ends], ends, strict=False):
            engine.push("S", [(t, values[t]) for t in range(low, high)])
            engine.run_until_idle()
        engine.finish()
        for query in QUERIES:
            assert output(engine, query) == expected(query, values), query


def test_what_on_error_skip_leaves_out_is_told_by_row(engine):
    engine.execute("CREATE QUERY q ON ERROR SKIP AS SELECT reciprocal(a) AS r FROM S;")
    fed(engine, [1, 0, 2, 0])
    assert [row["row"] for row in engine.left_out("q").to_pylist()] == [
        "t = 1, a = 0",
        "t = 3, a = 0",
    ]


def test_behind_a_cheap_condition_only_its_rows_are_seen(engine):
    def refuses_small(numbers):
        if pc.min(numbers).as_py() < 5:
            raise ValueError("small")
        return pc.greater(numbers, 6)

    engine.register_function("large", refuses_small, ["INT"], "BOOLEAN")
    engine.execute("CREATE QUERY q AS SELECT a FROM S WHERE a >= 5 AND large(a);")
    fed(engine, [1, 5, 7, 2, 9])
    assert [row["a"] for row in engine.results("q", "rows")] == [7, 9]


def test_arguments_are_checked_and_cast_like_those_of_other_functions(engine):
    engine.register_function("half", lambda x: pc.divide(x, 2.0), ["DOUBLE"], "DOUBLE")
    engine.execute("CREATE QUERY q AS SELECT HALF(a) AS h FROM S;")
    for text, words in {
        "SELECT half('x') AS h FROM S": "argument 1 of half must be a DOUBLE, not STRING",
        "SELECT half(a, a) AS h FROM S": r"half is called as half\(DOUBLE\), not with 2 arguments",
        "SELECT halve(a) AS h FROM S": 'no function "halve"; did you mean "half"?',
    }.items():
        with pytest.raises(CqlError, match=words):
            engine.execute(text)
    fed(engine, [3])
    assert engine.results("q", "rows")[0]["h"] == 1.5


def test_changes_of_relations_may_call_functions(engine):
    engine.execute(
        """CREATE RELATION R (a INT, b BIGINT); INSERT INTO R VALUES (1, 0), (4, 0), (5, 0);
           UPDATE R SET b = reciprocal(a); DELETE FROM R WHERE reciprocal(a) = 200;
           CREATE QUERY q AS SELECT * FROM R;"""
    )
    engine.run_until_idle()
    assert sorted(r["b"] for r in engine.results("q", "rows")) == [250, 1000]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("upper", len, ["INT"], "INT"), "upper is a function of CQL already"),
        (("count", len, ["INT"], "INT"), "count is a function of CQL already"),
        (("select", len, ["INT"], "INT"), "select is a word of CQL"),
        (("istream", len, ["INT"], "INT"), "istream is a word of CQL"),
        (("a b", len, ["INT"], "INT"), "a function's name is a word, not 'a b'"),
        (("f", 3, ["INT"], "INT"), "function f: 3 cannot be called"),
        (("f", len, [], "INT"), "parameters are a list of one or more types"),
        (("f", len, "INT", "INT"), "parameters are a list of one or more types"),
        (("f", len, ["NUMBER"], "INT"), "function f: no type 'NUMBER'; known: BOOLEAN, INT"),
        (("f", len, ["INT"], None), "function f: no type None"),
    ],
)
def test_what_cannot_be_a_function_is_refused(engine, given, words):
    with pytest.raises(StateError, match=words):
        engine.register_function(*given)


def test_functions_are_given_as_they_are_registered():
    with pytest.raises(
        StateError, match=r"given as \(name, function, parameter types, result type"
    ):
        Engine(functions=[("f", len)])


def test_what_cannot_be_sent_is_refused(engine, tmp_path):
    refused = pytest.raises(StateError, match="function f cannot be sent to Spark's workers")
    with (tmp_path / "file").open("wb") as file, refused:
        engine.register_function("f", file.write, ["INT"], "INT")


def test_a_function_in_use_is_not_replaced_by_another(engine):
    engine.register_function("f", lambda x: x, ["INT"], "INT")
    engine.register_function("f", pc.negate, ["INT"], "INT")
    engine.execute("CREATE QUERY q AS SELECT f(a) AS a FROM S;")
    engine.register_function("f", pc.negate, ["INT"], "INT")
    with pytest.raises(StateError, match="function f: another one of this name is in use"):
        engine.register_function("f", lambda x: x, ["INT"], "INT")
    engine.drop("q")
    engine.register_function("f", lambda x: x, ["INT"], "INT")


def test_queries_share_what_calls_the_same_function_and_no_other():
    def operators(*functions):
        with Engine() as engine:
            engine.execute(STREAM)
            for number, function in enumerate(functions):
                engine.register_function("f", function, ["INT"], "INT")
                text = "SELECT f(a) AS a, count(*) AS n FROM S [RANGE 5] GROUP BY f(a)"
                engine.execute(f"CREATE QUERY q{number} AS {text}")
            return len(engine.graph.operators)

    assert operators(lambda x: x, lambda x: x) == 1 + operators(lambda x: x)


def test_the_digest_follows_what_the_code_does_and_not_where_it_stands():
    def made(text, file):
        space = {}
        exec(compile(text, file, "exec"), space)
        return user_function("f", space["f"], (), "INT").digest

    same = made("def f(x):\n    return x + 1", "here.py")
    assert made("\n\n# moved\ndef f(x):\n\n    return x + 1", "there.py") == same
    assert made("def f(x):\n    return x + 2", "here.py") != same


def test_show_functions_lists_them(engine):
    (table,) = engine.execute("SHOW FUNCTIONS")
    assert table.column("function").to_pylist() == [
        "reciprocal(BIGINT) BIGINT",
        "shown(INT, STRING) STRING",
    ]


@pytest.mark.parametrize("shortens", [False, True])
def test_a_store_asks_for_the_functions_its_queries_call(tmp_path, shortens):
    store = tmp_path / "store"
    engine = Engine(store=store, functions=FUNCTIONS)
    engine.execute(STREAM + "CREATE QUERY q AS SELECT a, reciprocal(a) AS r FROM S;")
    engine.push("S", [(1, 1), (2, 4)])
    engine.run_until_idle()
    if shortens:
        engine.compact_log()
    die(engine)
    with pytest.raises(StateError, match=r"call reciprocal\(BIGINT\) BIGINT, which is not reg"):
        Engine(store=store)
    other = ("reciprocal", lambda x: x, ["BIGINT"], "BIGINT")
    with pytest.raises(StateError, match="registered with other code or types"):
        Engine(store=store, functions=[other])
    with Engine() as again:
        again.register_function("reciprocal", reciprocal, ["BIGINT"], "BIGINT")
        again.execute(f"SET store = '{store}'")
        again.push("S", [(3, 5)])
        again.finish()
        assert [row["r"] for row in again.results("q", "rows")] == [1000, 250, 200]


def test_a_store_asks_no_more_for_a_function_that_was_replaced(tmp_path):
    store, text = tmp_path / "store", "AS SELECT reciprocal(a) AS r FROM S"
    engine = Engine(store=store, functions=FUNCTIONS)
    engine.execute(STREAM + f"CREATE QUERY q {text};")
    engine.drop("q")
    negation = ("reciprocal", pc.negate, ["BIGINT"], "BIGINT")
    engine.register_function(*negation)
    engine.execute(f"CREATE QUERY p {text};")
    die(engine)
    with Engine(store=store, functions=[negation]) as again:
        again.push("S", [(1, 3)])
        again.finish()
        assert [row["r"] for row in again.results("p", "rows")] == [-3]
