"""SET tasks: into how many tasks a step on the executors is divided."""

from __future__ import annotations

import pytest

from millpond import Engine
from millpond.spark.executor import SparkExecutor

pytestmark = pytest.mark.spark

SCRIPT = """
CREATE STREAM S (ts BIGINT, k INT, v INT) TIMESTAMP BY ts;
CREATE QUERY large AS SELECT ts, v FROM S WHERE v > 3;
CREATE QUERY counts AS SELECT k, count(*) AS n FROM S [RANGE 5] GROUP BY k;
"""


def tasks_of(spark, monkeypatch, settings):
    """How many tasks the jobs of two queries had, and what the queries answered."""
    found = {}
    counted = SparkExecutor.tasks

    def told(self, job):
        number = counted(self, job)
        found.setdefault("counts" if job.keys else "large", set()).add(number)
        return number

    with monkeypatch.context() as patch, Engine(settings | {"driver_rows": 0}, spark) as engine:
        patch.setattr(SparkExecutor, "tasks", told)
        engine.execute(SCRIPT)
        for ts in range(6):
            engine.push("S", [(ts, i % 7, i % 10) for i in range(200)])
            engine.run_until_idle()
        engine.finish()
        return found, [engine.results(name).to_pylist() for name in ("large", "counts")]


def test_steps_have_as_many_tasks_as_is_said_and_the_same_answers(spark, monkeypatch):
    usual, answers = tasks_of(spark, monkeypatch, {})
    assert usual == {"large": {1}, "counts": {2}}
    for number in (1, 2, 3):
        found, others = tasks_of(spark, monkeypatch, {"tasks": number})
        assert found == {"large": {number}, "counts": {number}}
        assert others == answers
