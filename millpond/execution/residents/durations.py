"""How long tasks take by their rows, as they were measured, and how long one may take at most.

What a few rows cost says nothing of a thousand times as many, and what many cost must not excuse a
task of few that hangs: so seconds are known by the row, as far as so many rows were seen.
"""

from __future__ import annotations

from dataclasses import dataclass

OperatorName = tuple[str, str]
"""An operator, behind the store of its engine: those of several engines may have one name."""

UNKNOWN_SECONDS = 300.0
"""So long a task may take of as many rows as were never measured, at least."""

LEAST_SECONDS = 60.0
"""So long any task may take: its state may have to be read again, and a busy machine is slow."""

DEADLINE_FACTOR = 30.0
"""A task may take so many times as long as its operator's dearest rows let expect."""

START_ROWS = 10_000
"""What a task costs beside its rows is counted as so many rows."""

KNOWN_FACTOR, KNOWN_ROWS = 10, 100
"""So many times the rows that were measured are known to cost as they did, and so many anyway."""

MOST_OPERATORS = 10_000
"""Of so many operators is remembered what their tasks took."""

MEMORY = 0.9
"""How much of what is usual each task leaves."""


@dataclass(frozen=True)
class _Known:
    """What the tasks of an operator took, in seconds a row."""

    dearest: float
    usual: float
    rows: int
    """How many rows a task had at most."""

    def following(self, rows: int, row_seconds: float) -> _Known:
        return _Known(
            max(self.dearest, row_seconds),
            MEMORY * self.usual + (1 - MEMORY) * row_seconds,
            max(self.rows, rows),
        )


class Durations:
    """What the tasks of operators took."""

    def __init__(self) -> None:
        self._known: dict[OperatorName, _Known] = {}
        """Those that were heard of last at the end."""

    def record(self, operator: OperatorName, rows: int, seconds: float) -> None:
        """Adds a task of a step of so many rows."""
        row_seconds = seconds / (START_ROWS + rows)
        known = self._known.pop(operator, None) or _Known(row_seconds, row_seconds, rows)
        if len(self._known) >= MOST_OPERATORS:
            del self._known[next(iter(self._known))]
        self._known[operator] = known.following(rows, row_seconds)

    def usual(self, operator: OperatorName, rows: int) -> float:
        """What a task takes as those before it did; 0 before any was measured."""
        known = self._known.get(operator)
        return 0.0 if known is None else known.usual * (START_ROWS + rows)

    def deadline(self, operator: OperatorName, rows: int) -> float:
        """After so many seconds a task is thought to hang."""
        known = self._known.get(operator)
        if known is None:
            return UNKNOWN_SECONDS
        is_known = rows <= max(KNOWN_ROWS, KNOWN_FACTOR * known.rows)
        least = LEAST_SECONDS if is_known else UNKNOWN_SECONDS
        return max(least, DEADLINE_FACTOR * known.dearest * (START_ROWS + rows))
