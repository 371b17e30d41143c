"""The function table is whole: what CQL has runs on Arrow, or is said to need Spark."""

from __future__ import annotations

from millpond.cql.functions import FUNCTIONS, OPERATORS, SPARK_ONLY
from millpond.kernels.expressions import table

PLANNED = {"aligned", "bound", "local_time", "zoned_time", "zoned_text"}
"""What the planner and the analysis call, and nobody can write."""


def test_every_function_is_lowered_or_said_to_need_spark() -> None:
    here = (set(table.FUNCTIONS) | set(table.OF_CALL)) - PLANNED
    assert not here & SPARK_ONLY
    assert here | SPARK_ONLY == set(FUNCTIONS) | set(OPERATORS)
