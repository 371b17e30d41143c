"""BINARYs and ARRAYs as keys and in states, and days of a zone, by jobs of Spark as in the
driver."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from millpond import Engine
from millpond.errors import MillpondError
from tests import test_arrays, test_binaries, test_time_zones

pytestmark = pytest.mark.spark

HERE = {"driver_rows": 10**9, "place_by": "rows"}
THERE = {"driver_rows": 0, "place_by": "rows", "residents": 0}


def rows(engine: Engine, names: list[str]) -> dict[str, list[Any]]:
    found = {name: engine.results(name).to_pylist() for name in names}
    return {name: sorted(each, key=repr) for name, each in found.items()}


@pytest.mark.parametrize("tests", [test_arrays, test_binaries], ids=["arrays", "binaries"])
def test_they_are_the_same_by_jobs(tests: Any, spark: SparkSession) -> None:
    lines = tests.QUERIES.splitlines()
    names = [line.split()[2] for line in lines if line.startswith("CREATE")]
    found = []
    for settings, session in ((HERE, None), (THERE, spark)):

        def made(_: object, settings: Any = settings, session: Any = session) -> Engine:
            return Engine(settings, spark=session)

        (answers,) = (rows(engine, names) for engine in tests.lives(made, None))
        found.append(answers)
    assert found[0] == found[1]


def test_days_of_a_zone_are_the_same_by_jobs(spark: SparkSession) -> None:
    first, found = datetime(2024, 10, 25, 5), []
    for settings, session in ((HERE, None), (THERE, spark)):
        with Engine(settings | {"time_zone": "Europe/Berlin"}, spark=session) as engine:
            engine.execute(test_time_zones.BY_DAYS.format("1 DAY"))
            engine.push("S", [(first + timedelta(minutes=37 * n), 1) for n in range(170)])
            engine.finish()
            (steps,) = engine.execute("SHOW STEPS")
            assert any(steps["on executors"].to_pylist()) == (settings is THERE)
            found.append(rows(engine, ["q", "r"]))
    assert found[0] == found[1]
    assert len(found[0]["q"]) == 5


def test_rows_on_which_spark_fails_are_told_with_lists(spark: SparkSession) -> None:
    needs_spark = "CAST(CAST(t AS DOUBLE) AS STRING)"
    with Engine(THERE, spark=spark) as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a ARRAY<INT>, b BINARY) TIMESTAMP BY t")
        engine.execute(f"CREATE QUERY q AS SELECT {needs_spark} AS s, t * t AS u FROM S [NOW]")
        engine.push("S", [(2**40, [1, None], b"\xca")])
        with pytest.raises(MillpondError):
            engine.finish()
        (failure,) = engine.failures()
        assert "[1,null], CA" in str(failure)
