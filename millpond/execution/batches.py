"""How many rows one decision serves, where what a strategy calls a tuple is a batch of rows.

A step costs a + b·n, and its fixed part must not eat the time: where enough waits, a step reads so
many rows that a is a tenth of it, and if it is the first of a round, so many that this holds of the
whole round. It never waits for more: with little backlog steps are small and answers quick, under
load they grow. They grow by and by, as what large steps cost is not known from small ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from millpond.execution.costs import Line
from millpond.scheduling.decisions import RunOperator

FIXED_SHARE = 0.1
"""The fixed part of a step is to be at most so much of it, where enough waits."""

FIRST_ROWS, GROWTH = 1_000, 2
"""For the sake of the fixed part a step has so many rows at first, then twice as many as others."""


GROWTH_SHARE = 0.25
"""By such a part of what waits a step may let it grow, where a strategy has asked for few tuples:
beyond that its fixed part counts for less than memory."""

FIRST_SLICE_ROWS = 50
"""So many it has at first where it has to be over soon."""


@dataclass(frozen=True)
class Experience:
    """What steps are thought to cost, and up to how many rows they have had lately."""

    line: Line
    known_rows: float

    def beside(self, seconds: float) -> Experience:
        """The same with so much more for each step."""
        return replace(self, line=Line(self.line.step + seconds, self.line.row))


def batch_rows(decision: RunOperator, known: Experience, waiting: int, most: int) -> int:
    """About how many of the rows that wait a step reads, and ``most`` in any case.

    >>> known = Experience(Line(0.002, 1e-6), 50_000)
    >>> batch_rows(RunOperator(1, max_tuples=1), known, 100_000, 500_000)
    20000
    >>> batch_rows(RunOperator(1, slice_seconds=0.1), known, 100_000, 500_000)
    98000
    """
    line = known.line
    asked = math.inf if decision.max_tuples is None else float(decision.max_tuples)
    if decision.slice_seconds is not None:
        asked = min(asked, _quotient(decision.slice_seconds - line.step, line.row))
    breakeven = decision.breakeven_tuples or _quotient(line.step, line.row)
    foreseen = GROWTH * known.known_rows if known.known_rows else FIRST_ROWS
    least = min(breakeven * (1 / FIXED_SHARE - 1), foreseen)
    rows = asked if asked >= least else _portion(waiting, least)
    return max(1, math.ceil(min(most, rows) - 1e-6))


def sliced_rows(slice_seconds: float, known: Experience, most: int) -> int:
    """How many rows a step reads at most to give its processor back in time; 0 seconds: ``most``.

    Few at first, then twice as many as others: what rows cost is only known of steps there were.

    >>> sliced_rows(0.1, Experience(Line(0.02, 1e-3), 1_000), 500_000)
    100
    >>> sliced_rows(0.1, Experience(Line(0.0, 0.0), 0), 500_000)
    50
    """
    if not slice_seconds:
        return most
    foreseen = GROWTH * known.known_rows if known.known_rows else FIRST_SLICE_ROWS
    return max(1, int(min(most, foreseen, _quotient(slice_seconds, known.line.row) + 1e-6)))


def growing_rows(growth_bytes: float, waiting_bytes: float, most: int) -> int:
    """How many rows a step reads at most that leaves so many bytes more waiting for each of them.

    To a strategy an operator that puts out more than it reads, a join say, and those behind it that
    make less of it again are one: it takes tuples through one by one. A step takes all of them to
    where they are most, so a strategy that asks for few is not given many there.

    >>> growing_rows(100.0, 4e6, 500_000), growing_rows(-10.0, 4e6, 500_000)
    (10000, 500000)
    """
    if growth_bytes <= 0:
        return most
    return min(most, max(FIRST_ROWS, int(GROWTH_SHARE * waiting_bytes / growth_bytes)))


def _portion(waiting: int, least: float) -> float:
    """What waits, in even parts that are not smaller: else the last one is hardly worth a step."""
    return waiting / (waiting // least) if least <= waiting else least


def _quotient(seconds: float, row_seconds: float) -> float:
    """How many rows fit into so many seconds."""
    if seconds <= 0:
        return 0.0
    return seconds / row_seconds if row_seconds > 0 else math.inf
