"""The step of an operator with one input."""

import math
from collections.abc import Sequence

import numpy as np

from millpond.errors import StateError
from millpond.scheduling.snapshot import FloatArray, OperatorState, WaitingTuples
from millpond.simulator.distributions import Distribution, Draws, Uniform, mean_of
from millpond.simulator.inlets import Inlet, Release
from millpond.simulator.plan import SimulatedOperator
from millpond.simulator.steps import SLACK, IntArray, MemberStep, Yield, cut, new_state


class OneInputStep(MemberStep):
    """The step of an operator with one input."""

    def __init__(
        self, operator: SimulatedOperator, inlet: Inlet, preemptive: bool, seed: int
    ) -> None:
        super().__init__(operator, (inlet,), preemptive)
        only = operator.inputs[0]
        self._idle = OperatorState(operator.id)
        self.bare_cost = self.mean_cost = mean_of(only.cost_seconds)
        self.overhead = 0.0
        self.costs = _draws(only.cost_seconds, (seed, operator.id, 0))
        self.mean_selectivity = mean_of(only.selectivity)
        self.rounds = isinstance(only.selectivity, int | float)
        key = (seed, operator.id, 1)
        self.yields = _draws(only.selectivity, key) or Draws(Uniform(), key)
        self._ends: FloatArray | None = None
        self._offset = 0.0

    def set_overhead(self, seconds: float) -> None:
        self.overhead = seconds
        self.mean_cost = self.bare_cost + seconds

    def state(self) -> OperatorState:
        """What waits; ready when anything does."""
        inlet = self.inlet
        buffer = inlet.buffer
        cursor, tail = buffer.cursors[inlet.reader], buffer.tail
        if cursor >= tail:
            return self._idle
        amount = float(tail - cursor) if buffer.mass is None else buffer.amount(cursor, tail)
        oldest = buffer.view[cursor - buffer.first]
        size = amount * inlet.tuple_bytes
        return new_state((self.id, amount, size, oldest, True, False, None))

    def begin(self, max_tuples: int | None, slice_seconds: float | None) -> float:
        """Take up to so much work; returns its length in seconds."""
        buffer = self.inlet.buffer
        cursor = buffer.cursors[self.inlet.reader]
        count = buffer.tail - cursor
        if count <= 0:
            raise StateError(f"operator {self.id} has nothing to take; choose a ready one")
        if max_tuples is not None and max_tuples < count:
            count = max_tuples
        if self.costs is None and buffer.mass is None:
            seconds = self.step_cost + self._begin_alike(count, slice_seconds)
        else:
            seconds = self.step_cost + self._begin_each(cursor, count, slice_seconds)
        self.tally.seconds += seconds
        return seconds

    def _begin_alike(self, count: int, slice_seconds: float | None) -> float:
        cost, done = self.mean_cost, self.done_seconds
        self._ends, self._offset = None, self.step_cost - done
        seconds = count * cost - done
        if slice_seconds is not None and seconds > slice_seconds * SLACK:
            full = int((slice_seconds * SLACK + done) / cost)
            if self.preemptive:
                self._count, self.done_seconds = full, slice_seconds + done - full * cost
                return slice_seconds
            count = max(1, full)
        self._count, self.done_seconds = count, 0.0
        return count * cost - done

    def _begin_each(self, cursor: int, count: int, slice_seconds: float | None) -> float:
        ends = self._work(cursor, count, slice_seconds) - self.done_seconds
        self._ends, self._offset = ends, self.step_cost
        whole = cut(ends, slice_seconds, self.done_seconds, self.preemptive)
        self._count, self.done_seconds = whole.tuples, whole.done_seconds
        return whole.seconds

    def _work(self, cursor: int, count: int, slice_seconds: float | None) -> FloatArray:
        """Cumulated cost of the first `count` tuples, or of enough of them to fill the slice."""
        if slice_seconds is None or self.mean_cost <= 0:
            return np.cumsum(self._costs_of(cursor, count))
        look = min(count, 16 + int(2 * (slice_seconds + self.done_seconds) / self.mean_cost))
        ends: FloatArray = np.cumsum(self._costs_of(cursor, look))
        if look < count and ends[-1] - self.done_seconds <= slice_seconds * SLACK:
            ends = np.cumsum(self._costs_of(cursor, count))
        return ends

    def _costs_of(self, cursor: int, count: int) -> FloatArray:
        mass = self.inlet.buffer.masses(cursor, cursor + count)
        if self.costs is None:
            return np.full(count, self.mean_cost) if mass is None else mass * self.mean_cost
        each = self.costs.between(self.served, self.served + count) + self.overhead
        return each if mass is None else mass * each

    def took_one(self) -> bool:
        return self._count == 1 and self._ends is None

    def _made_of_one(self) -> int:
        selectivity = self.mean_selectivity
        if not self.rounds:
            return round(self.yields.one(self.served))
        if selectivity == 1:
            return 1
        made = int(selectivity)
        return made + (self.yields.one(self.served) < selectivity - made)

    def finish(self) -> tuple[Sequence[Release], Sequence[Yield]]:
        """Move on in the input; yields what the completed tuples produced."""
        count = self._count
        if count == 0:
            return (), ()
        buffer = self.inlet.buffer
        cursor = buffer.cursors[self.inlet.reader]
        arrival = self.last_arrivals = buffer.arrivals(cursor, cursor + count)
        if self._ends is None:
            ends = np.arange(1.0, count + 1) * self.mean_cost
        else:
            ends = self._ends[:count]
        made = self._yield(arrival, buffer.masses(cursor, cursor + count), ends + self._offset)
        self.served += count
        release = self.inlet.release(count)
        self.tally.taken += release.taken
        self.tally.made += made.amount
        return (release,), (made,) if len(made.arrival) else ()

    def _yield(self, arrival: FloatArray, mass: FloatArray | None, ends: FloatArray) -> Yield:
        selectivity = self.mean_selectivity
        if mass is not None:
            count = len(arrival) if selectivity > 0 else 0
            return Yield(self.id, arrival[:count], mass[:count] * selectivity, ends[:count])
        if self.rounds and selectivity == 1:
            return Yield(self.id, arrival, None, ends)
        if self.rounds and selectivity < 1:
            keep = self.yields.between(self.served, self.served + len(arrival)) < selectivity
            return Yield(self.id, arrival[keep], None, ends[keep])
        counts = self._outputs(len(arrival))
        return Yield(self.id, np.repeat(arrival, counts), None, np.repeat(ends, counts))

    def _outputs(self, count: int) -> IntArray:
        drawn = self.yields.between(self.served, self.served + count)
        if self.rounds:
            # Below the fraction one more, so that a selectivity under one keeps the small draws.
            whole = math.floor(self.mean_selectivity)
            return whole + (drawn < self.mean_selectivity - whole).astype(np.int64)
        return np.rint(drawn).astype(np.int64)

    def reveal(self) -> WaitingTuples | None:
        """The cost and the outputs of each waiting tuple."""
        buffer = self.inlet.buffer
        cursor = buffer.cursors[self.inlet.reader]
        count = buffer.tail - cursor
        if count <= 0:
            return WaitingTuples(np.empty(0), np.empty(0))
        costs = self._costs_of(cursor, count).copy()
        costs[0] -= self.done_seconds
        mass = buffer.masses(cursor, cursor + count)
        made = self._outputs(count) if mass is None else mass * self.mean_selectivity
        return WaitingTuples(costs, made.astype(np.float64))


def _draws(value: float | Distribution, key: tuple[int, ...]) -> Draws | None:
    return None if isinstance(value, int | float) else Draws(value, key)
