"""Where an operator's steps run: in the driver or on the executors, whichever is the quicker.

Both are measured as a + b·n, each operator for itself. What was not measured, or not lately, is
expected: a step on the executors costs a job, and shares its rows among the cores. What is measured
in one place makes the other's figures older, so a place that was slow once is tried again.
"""

import math

from millpond.execution.costs import MEMORY, Costs, Line
from millpond.execution.steps import DRIVER, EXECUTORS, Outcome
from millpond.execution.surroundings import START_SECONDS, Limits, Missed

IN_DRIVER = Line(0.002, 1.5e-6)
"""What a step in the driver is expected to cost."""

JOB_SECONDS = 0.06
"""What a job of Spark's is expected to cost beside what a step in the driver does."""

RESIDENT_SECONDS = 0.004
"""The same of a step that residents do."""

WORKER_FACTOR = 1.5
"""How much longer a row is expected to take on one core of an executor than in the driver."""

EXPECTED_WEIGHT = 0.1
"""So many steps an expectation counts for, beside those that were measured."""

MEASURED_WEIGHT = 2.0
"""From so many steps on those that were measured speak for themselves."""

ELSEWHERE_MEMORY = 0.98
"""How much of the figures of one place a step in the other leaves."""

MUCH_QUICKER = 0.8
"""A step goes to the executors if that is expected to take at most so much of the time; one of more
than ``driver_rows``, which takes much of the driver's memory, if it takes any less."""


class Places:
    """The two places of one operator."""

    def __init__(self, limits: Limits, missed: Missed | None = None) -> None:
        self._limits = limits
        self._missed = missed or Missed()
        self._costs = {DRIVER: Costs(), EXECUTORS: Costs()}
        self._known_rows = {DRIVER: 0.0, EXECUTORS: 0.0}
        self._is_warm = False

    def choose(self, rows: int, is_awaited: bool = False) -> str:
        """The place for a step of so many rows: the quicker one, or by ``driver_rows`` alone.

        While executors are awaited their start counts too.
        """
        limits = self._limits
        is_large = rows > limits.driver_rows
        if not limits.by_cost or not limits.driver_rows:
            return EXECUTORS if is_large else DRIVER
        lines = self.lines
        here, there = lines[DRIVER].at(rows), lines[EXECUTORS].at(rows)
        if is_awaited:
            return DRIVER if here <= START_SECONDS + there else EXECUTORS
        return EXECUTORS if there < (1.0 if is_large else MUCH_QUICKER) * here else DRIVER

    def reason(self, rows: int, is_awaited: bool) -> str:
        """Why a step of so many rows runs where it does."""
        limits, place = self._limits, self.choose(rows, is_awaited)
        if not limits.driver_rows:
            return "executors: driver_rows is 0"
        if not limits.by_cost:
            return f"{place}: driver_rows is {limits.driver_rows:,}"
        here, there = (1000 * line.at(rows) for line in self.lines.values())
        costs = f"{rows:,} rows cost {here:.1f} ms in the driver, {there:.1f} ms on the executors"
        if is_awaited:
            missed = f"would have saved {self._missed.seconds:.1f} s so far"
            return f"{place}: {costs}; these {missed}, and take {START_SECONDS:g} s to start"
        return f"{place}: {costs}"

    def _miss(self, rows: int) -> None:
        """Notes what such a step in the driver would take less on the executors."""
        if self.choose(rows) == EXECUTORS:
            lines = self.lines
            self._missed.seconds += lines[DRIVER].at(rows) - lines[EXECUTORS].at(rows)

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
                if place == DRIVER and outcome.seconds > RESIDENT_SECONDS:
                    self._miss(rows)
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
        alone = JOB_SECONDS if self._limits.residents == 0 else RESIDENT_SECONDS
        job = Line(here.step + alone, here.row * WORKER_FACTOR / self._limits.buckets)
        there = self._costs[EXECUTORS].expected(job, EXPECTED_WEIGHT).line
        return {DRIVER: here, EXECUTORS: there}
