"""A sample is drawn before anything is asked of its stream's elements."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.errors import InputError

STREAM = "CREATE STREAM S (ts BIGINT, k INT, b BIGINT) TIMESTAMP BY ts;"
DRAWN = "CREATE QUERY drawn AS SELECT ts FROM S SAMPLE(10);"
ROWS = 500
TEXTS = (
    "SELECT ts FROM S SAMPLE(10) WHERE b * b > 3",
    "SELECT ts FROM S [ROWS 3 WHERE b * b > 3] SAMPLE(10)",
    "SELECT count(*) AS n FROM S [RANGE 3] SAMPLE(10) WHERE k >= 0 AND b * b > 3",
)


def answers(settings, spark, text, large):
    """What a query answers to a stream of which some numbers are too large to be squared, and the
    times of those that were drawn."""
    with Engine(settings, spark) as engine:
        engine.execute(f"{STREAM}{DRAWN}CREATE QUERY q AS {text}")
        engine.push("S", [(ts, ts % 7, 2**62 if ts in large else 5) for ts in range(ROWS)])
        engine.advance("S", ROWS - 1)
        engine.run_until_idle()
        found = engine.results("q").to_pylist()
        return found, {row["ts"] for row in engine.results("drawn").to_pylist()}


def check(settings, spark, text):
    expected, drawn = answers(settings, spark, text, set())
    others = set(range(ROWS)) - drawn
    assert answers(settings, spark, text, others)[0] == expected != []
    with pytest.raises(InputError, match="leaves the range"):
        answers(settings, spark, text, {max(drawn)})


@pytest.mark.parametrize("linear", ["functions", "apart"])
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_not_drawn_is_asked_nothing(text, linear):
    check({"linear": linear}, None, text)


@pytest.mark.spark
@pytest.mark.parametrize("settings", [{"small_steps": "spark"}, {"driver_rows": 0}])
def test_the_same_on_spark(spark, settings):
    for text in TEXTS:
        check(settings, spark, text)
