"""Where an operator's steps run: in the driver or on the executors, whichever is the quicker.

Both are measured as a + b·n, each operator for itself. What was not measured, or not lately, is
expected: a step on the executors costs a job, and shares its rows among the cores. What is measured
in one place makes the other's figures older, so a place that was slow once is tried again.
"""

import math

from millpond.execution.costs import MEMORY, Costs, Line
from millpond.execution.steps import DRIVER, EXECUTORS, Outcome
from millpond.execution.surroundings import Limits

IN_DRIVER = Line(0.002, 1.5e-6)
"""What a step in the driver is expected to cost."""

JOB_SECONDS = 0.06
"""What a job is expected to cost whatever it does."""

WORKER_FACTOR = 1.5
"""How much longer a row is expected to take on one core of an executor than in the driver."""

START_SECONDS = 3.0
"""What Spark is expected to need until it can be asked, while it is starting."""

EXPECTED_WEIGHT = 0.1
"""So many steps an expectation counts for, beside those that were measured."""

MEASURED_WEIGHT = 2.0
"""From so many steps on those that were measured speak for themselves."""

ELSEWHERE_MEMORY = 0.98
"""How much of the figures of one place a step in the other leaves."""

MUCH_QUICKER = 0.8
"""A step goes to the executors if that is expected to take at most so much of the time."""


class Places:
    """The two places of one operator."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._costs = {DRIVER: Costs(), EXECUTORS: Costs()}
        self._known_rows = {DRIVER: 0.0, EXECUTORS: 0.0}
        self._is_warm = False

    def choose(self, rows: int, spark_is_there: bool, is_awaited: bool = False) -> str:
        """The place for a step of so many rows; ``driver_rows`` bounds what the driver takes.

        While Spark ``is_awaited``, the driver takes more: whatever it is done with earlier.
        """
        if rows > self._limits.driver_rows:
            return DRIVER if is_awaited and self._is_done_earlier(rows) else EXECUTORS
        if not spark_is_there or not self._limits.by_cost:
            return DRIVER
        lines = self.lines
        is_quicker = lines[EXECUTORS].at(rows) < MUCH_QUICKER * lines[DRIVER].at(rows)
        return EXECUTORS if is_quicker else DRIVER

    def _is_done_earlier(self, rows: int) -> bool:
        """Whether the driver has done a step before Spark has started."""
        is_asked = self._limits.by_cost and self._limits.driver_rows > 0
        return is_asked and self.lines[DRIVER].at(rows) <= START_SECONDS

    def seconds_here(self, rows: float) -> float:
        """How long a step takes in the driver, by those that were measured; infinity before."""
        costs = self._costs[DRIVER]
        return costs.line.at(rows) if costs.weight >= 1 else math.inf

    def record(self, rows: int, outcome: Outcome) -> None:
        """Adds a step; the first one on the executors, which compiles, says nothing of others."""
        if outcome.place == EXECUTORS and not self._is_warm:
            self._is_warm = True
            return
        for place, costs in self._costs.items():
            if place == outcome.place:
                costs.record(rows, outcome.seconds)
                self._known_rows[place] = max(rows, MEMORY * self._known_rows[place])
            else:
                costs.fade(ELSEWHERE_MEMORY)

    def line(self, place: str) -> Line:
        """What steps cost in a place by those that were measured, if there were some."""
        costs = self._costs[place]
        return costs.line if costs.weight >= MEASURED_WEIGHT else self.lines[place]

    def known_rows(self, place: str) -> float:
        """Steps of up to so many rows were measured in a place lately; 0 if there were none."""
        return self._known_rows[place]

    @property
    def lines(self) -> dict[str, Line]:
        """What steps are thought to cost in each place."""
        here = self._costs[DRIVER].expected(IN_DRIVER, EXPECTED_WEIGHT).line
        job = Line(JOB_SECONDS, here.row * WORKER_FACTOR / self._limits.buckets)
        there = self._costs[EXECUTORS].expected(job, EXPECTED_WEIGHT).line
        return {DRIVER: here, EXECUTORS: there}
