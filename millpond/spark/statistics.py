"""What an operator's steps cost and yield; cost is a + b·n, for a Spark job has a fixed part."""

from __future__ import annotations

from dataclasses import dataclass

from millpond.spark.steps import EXECUTORS, Outcome

MEMORY = 0.9
"""How much of the old averages each step leaves."""


@dataclass
class Tally:
    """How many steps and rows went which way."""

    driver_steps: int = 0
    executor_steps: int = 0
    driver_rows: int = 0
    executor_rows: int = 0
    rows_out: int = 0
    seconds: float = 0.0
    driver_bytes: int = 0
    """How many bytes of rows came to the driver."""

    def record(self, rows: int, outcome: Outcome) -> None:
        """Adds one step."""
        if outcome.place == EXECUTORS:
            self.executor_steps += 1
            self.executor_rows += rows
        else:
            self.driver_steps += 1
            self.driver_rows += rows
        self.rows_out += outcome.rows
        self.seconds += outcome.seconds
        self.driver_bytes += outcome.driver_bytes

    @property
    def steps(self) -> int:
        """All steps."""
        return self.driver_steps + self.executor_steps

    @property
    def rows_in(self) -> int:
        """About how many rows were read."""
        return self.driver_rows + self.executor_rows


class Statistics:
    """Fading sums over the steps of one operator, and the line fitted through them."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.input_bytes = 100.0
        self.output_bytes = 100.0
        self._weight = self._rows = self._rows_squared = 0.0
        self._seconds = self._rows_seconds = self._outputs = 0.0

    def record(self, rows: int, outcome: Outcome) -> None:
        """Adds one step."""
        seconds = outcome.seconds
        self.tally.record(rows, outcome)
        fade = MEMORY
        self._weight = self._weight * fade + 1
        self._rows = self._rows * fade + rows
        self._rows_squared = self._rows_squared * fade + rows * rows
        self._seconds = self._seconds * fade + seconds
        self._rows_seconds = self._rows_seconds * fade + rows * seconds
        self._outputs = self._outputs * fade + outcome.rows
        if outcome.output is not None:
            self.output_bytes = outcome.output.bytes / outcome.rows

    @property
    def cost_seconds(self) -> float:
        """Seconds for one more row."""
        spread = self._weight * self._rows_squared - self._rows**2
        if spread <= 1e-9 * self._rows_squared:
            return self._seconds / self._rows if self._rows else 1e-6
        slope = (self._weight * self._rows_seconds - self._rows * self._seconds) / spread
        return max(slope, 0.0)

    @property
    def step_seconds(self) -> float:
        """Seconds for a step without rows."""
        if not self._weight:
            return 0.0
        return max((self._seconds - self.cost_seconds * self._rows) / self._weight, 0.0)

    @property
    def selectivity(self) -> float:
        """Rows out for one row in."""
        return self._outputs / self._rows if self._rows else 1.0
