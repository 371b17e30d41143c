"""What steps cost: a + b·n seconds for n rows, fitted through what was measured."""

from __future__ import annotations

from dataclasses import dataclass

MEMORY = 0.9
"""How much of the old averages each step leaves."""

SPREAD_ROWS = 10_000
"""An expected line counts like a step without rows and one of so many."""


@dataclass(frozen=True)
class Line:
    """Seconds for n rows: ``step`` + ``row``·n."""

    step: float
    row: float

    def at(self, rows: float) -> float:
        """Seconds for so many rows."""
        return self.step + self.row * rows


class Costs:
    """Fading sums over steps, and the line fitted through them."""

    def __init__(self, memory: float = MEMORY) -> None:
        self._memory = memory
        self.weight = 0.0
        """How many steps are remembered."""
        self.rows = 0.0
        self.seconds = 0.0
        self._rows_squared = self._rows_seconds = 0.0

    def record(self, rows: int, seconds: float) -> None:
        """Adds one step."""
        self.fade(self._memory)
        self._add(1.0, rows, seconds)

    def fade(self, memory: float) -> None:
        """Leaves so much of what was measured."""
        self.weight *= memory
        self.rows *= memory
        self.seconds *= memory
        self._rows_squared *= memory
        self._rows_seconds *= memory

    def expected(self, line: Line, weight: float) -> Costs:
        """The same with some steps that cost what is expected."""
        costs = Costs(self._memory)
        costs.weight, costs.rows, costs.seconds = self.weight, self.rows, self.seconds
        costs._rows_squared, costs._rows_seconds = self._rows_squared, self._rows_seconds
        costs._add(weight, 0, line.at(0))
        costs._add(weight, SPREAD_ROWS, line.at(SPREAD_ROWS))
        return costs

    def _add(self, weight: float, rows: int, seconds: float) -> None:
        self.weight += weight
        self.rows += weight * rows
        self.seconds += weight * seconds
        self._rows_squared += weight * rows * rows
        self._rows_seconds += weight * rows * seconds

    @property
    def line(self) -> Line:
        """The line; where steps are all of one size, or there are none, it has no fixed part."""
        spread = self.weight * self._rows_squared - self.rows**2
        if spread <= 1e-9 * self._rows_squared:
            row = self.seconds / self.rows if self.rows else 1e-6
        else:
            row = (self.weight * self._rows_seconds - self.rows * self.seconds) / spread
        row = max(row, 0.0)
        rest = self.seconds - row * self.rows
        return Line(max(rest, 0.0) / self.weight if self.weight else 0.0, row)
