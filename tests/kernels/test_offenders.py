"""The rows on which an expression fails are found where they are."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.errors import InputError

BIG = 2**63 - 1


@pytest.fixture
def engine():
    with Engine() as engine:
        engine.execute("CREATE STREAM S (t BIGINT, a BIGINT, d DOUBLE, s STRING) TIMESTAMP BY t")
        yield engine
        assert not engine.ground.lazy_spark.is_started


def failing_rows(engine, rows):
    engine.push("S", rows)
    with pytest.raises(InputError, match="a number leaves the range"):
        engine.finish()
    (failure,) = engine.failures()
    return failure.rows


ROWS = [(1, 1, 0.5, "x"), (2, BIG, None, None), (3, BIG - 1, 2.5, "y, z"), (4, 2, 1.0, "w")]
FOUND = (f"2, {BIG}, NULL, NULL", f"3, {BIG - 1}, 2.5, y, z")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a + a AS b FROM S",
        "SELECT t FROM S WHERE a + a > 0",
        "SELECT sum(a + a) AS b FROM S [RANGE 10]",
        "SELECT a + a AS b FROM S [RANGE 10]",
        "SELECT DISTINCT a + a AS b FROM S",
    ],
)
def test_rows_of_a_step_in_the_driver_are_found_without_spark(engine, query):
    engine.execute(f"CREATE QUERY q AS {query}")
    assert failing_rows(engine, ROWS) == FOUND


def test_only_some_rows_are_told(engine):
    engine.execute("CREATE QUERY q AS SELECT a + a AS b FROM S")
    found = failing_rows(engine, [(t, BIG, 1.0, "x") for t in range(20)])
    assert found == tuple(f"{t}, {BIG}, 1.0, x" for t in range(5))


def test_functions_of_the_user_that_raise_are_told_apart(engine):
    def careful(values):
        if 7 in values.to_pylist():
            raise ValueError("seven")
        return values

    engine.register_function("careful", careful, ["BIGINT"], "BIGINT")
    engine.execute("CREATE QUERY q AS SELECT careful(a) AS b FROM S")
    engine.push("S", [(1, 6, 1.0, "x"), (2, 7, 1.0, "x")])
    with pytest.raises(InputError, match="seven"):
        engine.finish()
    assert engine.failures()[0].rows == ("2, 7, 1.0, x",)
