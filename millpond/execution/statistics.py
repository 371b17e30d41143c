"""What an operator's steps cost and yield."""

import time
from dataclasses import dataclass

from millpond.execution.costs import Costs
from millpond.execution.steps import EXECUTORS, Outcome
from millpond.storage.rates import Rate

LASTING = 0.98
"""How much of the old averages each step leaves: a line through ten steps is a line through noise,
and strategies that go by it change their minds with it."""


@dataclass
class Tally:
    """How many steps and rows went which way."""

    driver_steps: int = 0
    executor_steps: int = 0
    driver_rows: int = 0
    executor_rows: int = 0
    rows_taken: int = 0
    """How many of the rows that were read started, rather than ended."""
    rows_out: int = 0
    bytes_in: float = 0.0
    """About how many bytes were read."""
    bytes_out: int = 0
    seconds: float = 0.0
    driver_bytes: int = 0
    """How many bytes of rows came to the driver."""

    def record(self, rows: int, row_bytes: float, outcome: Outcome) -> None:
        """Adds one step over rows of so many bytes each."""
        if outcome.place == EXECUTORS:
            self.executor_steps += 1
            self.executor_rows += rows
        else:
            self.driver_steps += 1
            self.driver_rows += rows
        self.rows_taken += outcome.taken
        self.rows_out += outcome.rows
        self.bytes_in += rows * row_bytes
        self.bytes_out += outcome.bytes
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
    """Fading averages over the steps of one operator, as strategies see them."""

    def __init__(self) -> None:
        self.tally = Tally()
        self.input_bytes = 100.0
        self.output_bytes = 100.0
        began = time.monotonic()
        self.inputs = Rate(began)
        """Rows read in a second."""
        self.outputs = Rate(began)
        """Rows put out in a second."""
        self.busy = Rate(began)
        """Seconds of work in a second."""
        self.whole = Costs(memory=1.0)
        """What all steps have cost."""
        self._costs = Costs(LASTING)
        self._outputs = 0.0

    def record(self, rows: int, outcome: Outcome) -> None:
        """Adds one step."""
        self.tally.record(rows, self.input_bytes, outcome)
        now = time.monotonic()
        self.inputs.add(rows, now)
        self.outputs.add(outcome.rows, now)
        self.busy.add(outcome.seconds, now)
        self.whole.record(rows, outcome.seconds)
        self._costs.record(rows, outcome.seconds)
        self._outputs = self._outputs * LASTING + outcome.rows
        if outcome.rows:
            self.output_bytes = outcome.bytes / outcome.rows

    @property
    def cost_seconds(self) -> float:
        """Seconds for one more tuple: its row, and as many ends as come to one."""
        return self._costs.line.row * self.rows_a_tuple

    @property
    def step_seconds(self) -> float:
        """Seconds for a step without rows."""
        return self._costs.line.step

    @property
    def row_selectivity(self) -> float:
        """Rows out for one row that is read, whether it starts or ends."""
        return self._outputs / self._costs.rows if self._costs.rows else 1.0

    @property
    def made_bytes(self) -> float:
        """Bytes out for one row that is read; none before the first step."""
        return self.row_selectivity * self.output_bytes if self.tally.steps else 0.0

    @property
    def selectivity(self) -> float:
        """Rows out for one tuple in, with those that its end brings."""
        return self.row_selectivity * self.rows_a_tuple

    @property
    def rows_a_tuple(self) -> float:
        """How often a tuple is read: a window reads it again when it ends."""
        taken = self.tally.rows_taken
        return self.tally.rows_in / taken if taken else 1.0
