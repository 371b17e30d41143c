"""Queries that tolerate a sample on the executors: the same bounds as in the driver."""

import pytest

from millpond import Engine
from tests.test_tolerating import QUERIES, STREAM, TOLERATE, fed, results, tuples

TEXTS = {
    "filtered": QUERIES["filtered"],
    "ordered": "SELECT k, median(x) AS p, stddev(v) AS d FROM S [RANGE 20] WHERE v > 10 GROUP BY k",
}


def engine_of(text, **given):
    """An engine that drops."""
    engine = Engine(**given)
    engine.execute(f"{STREAM} CREATE QUERY q {TOLERATE} AS {text}")
    return engine


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_bounds_on_spark_are_those_of_the_driver(spark, text):
    usual, rows = {"overload": "approximate"}, tuples(60, times=2)
    elsewhere = {"driver_rows": 0, "place_by": "rows", "small_steps": "spark", "residents": "0"}
    here = fed(engine_of(text, settings=usual), rows, 2, [20, 60])
    with engine_of(text, spark=spark, settings=usual | elsewhere) as engine:
        assert results(fed(engine, rows, 2, [20, 60]), "q") == results(here, "q")
