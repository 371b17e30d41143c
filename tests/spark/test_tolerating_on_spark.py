"""A query that tolerates a sample on the executors: the same bounds as in the driver."""

from millpond import Engine
from tests.test_tolerating import QUERIES, STREAM, TOLERATE, fed, results, tuples


def engine_of(**given):
    """An engine that drops."""
    engine = Engine(**given)
    engine.execute(STREAM)
    for name in ("filtered", "deviating", "ranked"):
        engine.execute(f"CREATE QUERY {name} {TOLERATE} AS {QUERIES[name]}")
    return engine


def test_bounds_on_spark_are_those_of_the_driver(spark):
    usual, rows = {"overload": "approximate"}, tuples(60, times=2)
    elsewhere = {"driver_rows": 0, "place_by": "rows", "small_steps": "spark", "residents": "0"}
    here = fed(engine_of(settings=usual), rows, 2, [20, 60])
    with engine_of(spark=spark, settings=usual | elsewhere) as engine:
        fed(engine, rows, 2, [20, 60])
        for name in ("filtered", "deviating", "ranked"):
            assert results(engine, name) == results(here, name)
