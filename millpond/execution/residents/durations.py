"""How long tasks take by their rows, as they were measured, and how long one may take at most.

What a few rows cost says nothing of a thousand times as many, and what many cost must not excuse a
task of few that hangs: so seconds are known by the row, as far as so many rows were seen.
"""

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


class Durations:
    """What the tasks of operators took."""

    def __init__(self) -> None:
        self._dearest: dict[OperatorName, tuple[float, int]] = {}
        """The seconds a row where it took most, and how many rows a task had at most."""

    def record(self, operator: OperatorName, rows: int, seconds: float) -> None:
        """Adds a task of a step of so many rows."""
        dearest, most = self._dearest.pop(operator, (0.0, 0))
        if len(self._dearest) >= MOST_OPERATORS:
            del self._dearest[next(iter(self._dearest))]
        row_seconds = seconds / (START_ROWS + rows)
        self._dearest[operator] = max(dearest, row_seconds), max(most, rows)

    def expected(self, operator: OperatorName, rows: int) -> float:
        """What a task takes at most, if rows cost what they did; 0 before any was measured."""
        return self._dearest.get(operator, (0.0, 0))[0] * (START_ROWS + rows)

    def deadline(self, operator: OperatorName, rows: int) -> float:
        """After so many seconds a task is thought to hang."""
        known = operator in self._dearest and self._is_known(rows, self._dearest[operator][1])
        least = LEAST_SECONDS if known else UNKNOWN_SECONDS
        return max(least, DEADLINE_FACTOR * self.expected(operator, rows))

    def _is_known(self, rows: int, most: int) -> bool:
        return rows <= max(KNOWN_ROWS, KNOWN_FACTOR * most)
