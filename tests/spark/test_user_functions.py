"""Functions of the user in Spark's workers and as columns of Spark's."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F

from millpond import Engine
from millpond.cql.expressions import Call, Column, Literal, UserCall
from millpond.errors import MillpondError
from millpond.planning.attempts import success, value
from millpond.schema import Type
from millpond.spark.expressions import lower
from millpond.spark.user_functions import user_function
from tests.spark.test_two_lowerings import agree
from tests.test_ordered_aggregates import OWN
from tests.test_ordered_aggregates import QUERIES as ORDERED
from tests.test_ordered_aggregates import ROWS as ORDERED_ROWS
from tests.test_ordered_aggregates import STREAM as ORDERED_STREAM
from tests.test_user_functions import expected, output
from tests.user_functions import FUNCTIONS, QUERIES, reciprocal, script

VALUES = [1, 0, None, 3, -2, 4, 0, 1, 7, None]
PLACES = {"workers": {"driver_rows": 0}, "columns": {"small_steps": "spark"}}


@pytest.mark.parametrize("place", PLACES)
def test_answers_are_the_same_in_every_place(place, spark):
    with Engine(PLACES[place], spark, functions=FUNCTIONS) as engine:
        engine.execute(script())
        engine.push("S", list(enumerate(VALUES)))
        engine.finish()
        for query in QUERIES:
            assert output(engine, query) == expected(query, VALUES), query


@pytest.mark.parametrize("place", PLACES)
def test_errors_have_the_same_words_in_every_place(place, spark):
    short = ("short", lambda x: x[:1], ["INT"], "INT")
    with Engine(PLACES[place], spark, functions=[*FUNCTIONS, short]) as engine:
        engine.execute(
            """CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
               CREATE QUERY raises AS SELECT reciprocal(a) AS r FROM S;
               CREATE QUERY breaks ON ERROR SKIP AS SELECT short(a) AS r FROM S;"""
        )
        engine.push("S", [(1, 1), (1, 0), (1, 0), (2, 0)])
        with pytest.raises(MillpondError):
            engine.finish()
        assert {failure.query: failure.error for failure in engine.failures()} == {
            "raises": "query raises: function reciprocal: ZeroDivisionError: integer division or "
            "modulo by zero",
            "breaks": "query breaks: function short gives 1 values for 3 rows; it must give one "
            "for each",
        }


@pytest.mark.parametrize(
    ("answer", "policy", "words"),
    [
        (lambda n: n.slice(1), "STOP", "gives 1 values for 2 rows; it must give one for each"),
        (lambda n: pc.cast(n, pa.int64()), "SKIP", "gives int64, but was registered to give INT"),
        (lambda n: [1, 2], "SKIP", "gives list; it must give an Arrow array"),
    ],
)
def test_a_broken_promise_stops_the_query_under_any_policy(spark, answer, policy, words):
    with Engine(spark=spark, functions=[("odd", answer, ["INT"], "INT")]) as engine:
        engine.execute(
            f"""CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
                CREATE QUERY q ON ERROR {policy} AS SELECT odd(a) AS b FROM S;"""
        )
        engine.push("S", [(1, 1), (1, 2), (2, 3)])
        with pytest.raises(MillpondError, match=f"query q: function odd {words}"):
            engine.finish()


def test_values_of_every_type_have_the_same_bits(spark, tmp_path):
    table = pa.table(
        {
            "c0": pa.array([True, None, False]),
            "c1": pa.array([1, None, 0], pa.int32()),
            "c2": pa.array([2**62, 0, None]),
            "c3": pa.array([-0.0, float("nan"), None]),
            "c4": pa.array(["ä", None, ""]),
            "c5": pa.array([date(1, 1, 1), None, date(2024, 2, 29)]),
            "c6": pa.array([datetime(1, 1, 1), None, datetime(2024, 2, 29, 1, 2, 3, 4)]),
        }
    )
    types = (Type.BOOLEAN, Type.INT, Type.BIGINT, Type.DOUBLE, Type.STRING, Type.DATE)
    columns = [Column(i, each) for i, each in enumerate((*types, Type.TIMESTAMP))]
    same = [
        UserCall("f", (c,), c.type, user_function("f", lambda x: x, (c.type,), c.type))
        for c in columns
    ]
    definition = user_function("g", reciprocal, (Type.BIGINT,), Type.BIGINT)
    risky = UserCall("g", (Call("cast", (columns[1],), Type.BIGINT),), Type.BIGINT, definition)
    constant = UserCall("g", (Literal(7, Type.BIGINT),), Type.BIGINT, definition)
    agree(spark, table, [*same, constant, value(risky), success(risky)], tmp_path)


def test_arguments_and_calls_fail_only_where_they_are_needed(spark, tmp_path):
    x, t = Column(0, Type.BIGINT), Column(1, Type.BOOLEAN)
    definition = user_function("g", reciprocal, (Type.BIGINT,), Type.BIGINT)
    total = Call("+", (x, x), Type.BIGINT)
    of_total = UserCall("g", (total,), Type.BIGINT, definition)
    divided = Call("div", (x, UserCall("g", (x,), Type.BIGINT, definition)), Type.BIGINT)
    made = [Call("case", (t, each), Type.BIGINT) for each in (of_total, divided)]
    table = pa.table({"c0": [2**63 - 1, 0, 1, None], "c1": [False, False, True, True]})
    agree(spark, table, made, tmp_path)
    page = spark.createDataFrame([(0,)], "c0 BIGINT")
    with pytest.raises(Exception, match="function g: ZeroDivisionError"):
        page.select(lower(divided, [F.col("c0")])).toArrow()


def test_spark_makes_equal_calls_once(spark):
    definition = user_function("g", reciprocal, (Type.BIGINT,), Type.BIGINT)
    call = UserCall("g", (Column(0, Type.BIGINT),), Type.BIGINT, definition)
    frame = spark.range(3).select(lower(call, [F.col("id")]), lower(success(call), [F.col("id")]))
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1
    assert plan.split("ArrowEvalPython")[1].splitlines()[0].count("called(") == 1


def test_aggregates_are_the_same_in_workers(spark):
    queries = {name: ORDERED[name] for name in ("risen", "paired", "turns")}
    script = ";".join(f"CREATE QUERY {name} AS {text}" for name, text in queries.items())
    found = []
    for settings in ({"driver_rows": 0}, {"driver_rows": 10**9}):
        with Engine(settings | {"place_by": "rows"}, spark, functions=OWN) as engine:
            engine.execute(ORDERED_STREAM + script)
            engine.push("S", ORDERED_ROWS)
            engine.finish()
            found.append({name: engine.results(name).to_pylist() for name in queries})
    assert found[0] == found[1]
    assert all(len(rows) > 3 for rows in found[0].values())
