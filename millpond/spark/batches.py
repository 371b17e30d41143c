"""How many rows one decision serves on Spark, where what a strategy calls a tuple is a batch.

A step costs a + b·n, and its fixed part must not eat the time: where enough waits, a step reads so
many rows that a is a tenth of it. It never waits for more: with little backlog steps are small and
answers quick, under load they grow. They grow by and by, as what large steps cost is not known from
small ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from millpond.decisions import RunOperator
from millpond.spark.costs import Line

FIXED_SHARE = 0.1
"""The fixed part of a step is to be at most so much of it, where enough waits."""

FIRST_ROWS, GROWTH = 1_000, 2
"""For the sake of the fixed part a step has so many rows at first, then twice the usual ones."""


@dataclass(frozen=True)
class Experience:
    """What steps are thought to cost, and how many rows they have had lately."""

    line: Line
    usual_rows: float

    def beside(self, seconds: float) -> Experience:
        """The same with so much more for each step."""
        return replace(self, line=Line(self.line.step + seconds, self.line.row))


def batch_rows(decision: RunOperator, known: Experience, most: int) -> int:
    """About how many rows a step reads, if as many wait, and ``most`` in any case.

    >>> known = Experience(Line(0.002, 1e-6), 50_000)
    >>> batch_rows(RunOperator(1, max_tuples=1), known, 500_000)
    18000
    >>> batch_rows(RunOperator(1, slice_seconds=0.1), known, 500_000)
    98000
    """
    line = known.line
    asked = math.inf if decision.max_tuples is None else float(decision.max_tuples)
    if decision.slice_seconds is not None:
        asked = min(asked, _quotient(decision.slice_seconds - line.step, line.row))
    worthwhile = _quotient(line.step * (1 / FIXED_SHARE - 1), line.row)
    foreseen = GROWTH * known.usual_rows if known.usual_rows else FIRST_ROWS
    rows = min(most, max(asked, min(worthwhile, foreseen)))
    return max(1, math.ceil(rows - 1e-6))


def _quotient(seconds: float, row_seconds: float) -> float:
    """How many rows fit into so many seconds."""
    if seconds <= 0:
        return 0.0
    return seconds / row_seconds if row_seconds > 0 else math.inf
