"""How many rows one decision serves on Spark, where what a strategy calls a tuple is a batch.

A step costs a + b·n, and its fixed part must not eat the time: where enough waits, a step reads so
many rows that a is a tenth of it. It never waits for more: with little backlog steps are small and
answers quick, under load they grow.
"""

from __future__ import annotations

import math

from millpond.decisions import RunOperator
from millpond.spark.costs import Line

FIXED_SHARE = 0.1
"""The fixed part of a step is to be at most so much of it, where enough waits."""


def batch_rows(decision: RunOperator, line: Line, most: int) -> int:
    """About how many rows a step reads, if as many wait, and ``most`` in any case.

    >>> batch_rows(RunOperator(1, max_tuples=1), Line(0.002, 1e-6), 500_000)
    18000
    >>> batch_rows(RunOperator(1, slice_seconds=0.1), Line(0.002, 1e-6), 500_000)
    98000
    """
    asked = math.inf if decision.max_tuples is None else float(decision.max_tuples)
    if decision.slice_seconds is not None:
        asked = min(asked, _quotient(decision.slice_seconds - line.step, line.row))
    worthwhile = _quotient(line.step * (1 / FIXED_SHARE - 1), line.row)
    return max(1, min(most, math.ceil(min(most, max(asked, worthwhile)) - 1e-6)))


def _quotient(seconds: float, row_seconds: float) -> float:
    """How many rows fit into so many seconds."""
    if seconds <= 0:
        return 0.0
    return seconds / row_seconds if row_seconds > 0 else math.inf
