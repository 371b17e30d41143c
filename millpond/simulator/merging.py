"""The step of an operator with several inputs: a window join or a union, served in order of time.

No tuple is taken before all older ones of the other inputs (Chain paper, multi-stream queries), so
the operator is blocked while an older one may still come on an empty input.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from millpond.errors import StateError
from millpond.scheduling.snapshot import FloatArray, OperatorState, WaitingTuples
from millpond.simulator.distributions import Draws, Uniform, mean_of
from millpond.simulator.inlets import Inlet, Release
from millpond.simulator.kept_windows import Batch, KeptWindows
from millpond.simulator.plan import SimulatedOperator
from millpond.simulator.steps import SLACK, MemberStep, Yield, cut, new_state


class MergingStep(MemberStep):
    """The step of a join or union; `bound` tells up to which time the inputs are complete."""

    def __init__(
        self,
        operator: SimulatedOperator,
        inlets: Sequence[Inlet],
        preemptive: bool,
        seed: int,
        bound: Callable[[], float],
    ) -> None:
        super().__init__(operator, inlets, preemptive)
        self.bound, self.window = bound, operator.window
        self._kept = None if self.window is None else KeptWindows(self.window, len(inlets))
        self.bare_cost = np.array([mean_of(each.cost_seconds) for each in operator.inputs])
        self.set_overhead(0.0)
        self.selectivity = np.array([mean_of(each.selectivity) for each in operator.inputs])
        self.mean_selectivity = float(self.selectivity.mean())
        self.uniform = Draws(Uniform(), (seed, operator.id, 1))
        self._batch: Batch | None = None
        self._seconds = 0.0
        self._begun_side: int | None = None
        self.single_side: int | None = None

    def set_overhead(self, seconds: float) -> None:
        self.cost = self.bare_cost + seconds
        self.mean_cost = float(self.cost.mean())

    def state(self) -> OperatorState:
        """What waits; ready when any of it may be taken."""
        amount = size = 0.0
        oldest = math.inf
        for inlet in self.inlets:
            buffer, cursor = inlet.buffer, inlet.buffer.cursors[inlet.reader]
            if cursor < buffer.tail:
                waits = buffer.amount(cursor, buffer.tail)
                amount += waits
                size += waits * inlet.tuple_bytes
                oldest = min(oldest, inlet.oldest())
        ready = amount > 0 and oldest <= self.bound()
        return new_state((self.id, amount, size, oldest, ready, False, None))

    def begin(self, max_tuples: int | None, slice_seconds: float | None) -> float:
        """Take up to so much work; returns its length in seconds."""
        side = self._only_side(max_tuples)
        if side is not None:
            return self._begin_one(side, slice_seconds)
        batch = self._batch = self._merge(max_tuples)
        if len(batch.arrival) == 0:
            raise StateError(f"operator {self.id} has nothing to take yet; choose a ready one")
        ends = batch.ends = np.cumsum(self._costs(batch)) - self.done_seconds
        whole = cut(ends, slice_seconds, self.done_seconds, self.preemptive)
        self._count, self.done_seconds = whole.tuples, whole.done_seconds
        self._begun_side = int(batch.of_side[whole.tuples]) if whole.done_seconds > 0 else None
        return self._spend(whole.seconds)

    def _only_side(self, max_tuples: int | None) -> int | None:
        """The input of the one whole tuple that can be taken, when it is no more than one."""
        if self.window is not None or self.inlets[0].buffer.mass is not None:
            return None
        heads = [inlet.oldest() for inlet in self.inlets]
        oldest = min(heads)
        if oldest > self.bound():
            return None
        side = heads.index(oldest) if self._begun_side is None else self._begun_side
        if max_tuples == 1:
            return side
        heads[side] = self.inlets[side].second_oldest()
        return side if min(heads) > self.bound() else None

    def _begin_one(self, side: int, slice_seconds: float | None) -> float:
        cost = float(self.cost[side])
        seconds = cost - self.done_seconds
        if slice_seconds is not None and seconds > slice_seconds * SLACK and self.preemptive:
            self._count, self._batch, self._begun_side = 0, None, side
            self.done_seconds += slice_seconds
            return self._spend(slice_seconds)
        self.single_side, self._count, self.done_seconds = side, 1, 0.0
        self.inlet = self.inlets[side]
        self._begun_side = None
        return self._spend(seconds)

    def took_one(self) -> bool:
        return self.single_side is not None

    def _made_of_one(self) -> int:
        selectivity = float(self.selectivity[self.single_side or 0])
        self.single_side = None
        return int(selectivity + self.uniform.one(self.served))

    def _spend(self, seconds: float) -> float:
        self._seconds = self.step_cost + seconds
        self.tally.seconds += self._seconds
        return self._seconds

    def _merge(self, max_tuples: int | None) -> Batch:
        bound = self.bound()
        heads = [_until(inlet, bound, max_tuples) for inlet in self.inlets]
        sides = [side for side, (head, _) in enumerate(heads) if len(head)]
        if len(sides) == 1:
            head, mass = heads[sides[0]]
            return Batch(head, np.full(len(head), sides[0]), mass)
        arrival = np.concatenate([head for head, _ in heads])
        of_side = np.repeat(np.arange(len(heads)), [len(head) for head, _ in heads])
        turns = np.concatenate([self._turns(side, head) for side, (head, _) in enumerate(heads)])
        order = np.argsort(turns, kind="stable")[:max_tuples]
        masses = [mass for _, mass in heads if mass is not None]
        mass = np.concatenate(masses)[order] if masses else None
        return Batch(arrival[order], of_side[order], mass)

    def _turns(self, side: int, head: FloatArray) -> FloatArray:
        """What the tuples of one side are merged by: time, but none before those ahead of it.

        A tuple that was begun comes first, also where order does not matter and an older one came.
        """
        turns: FloatArray = np.maximum.accumulate(head)
        if side == self._begun_side and len(turns):
            turns[0] = -math.inf
        return turns

    def _costs(self, batch: Batch) -> FloatArray:
        costs: FloatArray = self.cost[batch.of_side]
        if self._kept is not None:
            window = self._kept.window
            batch.partners = self._kept.partners(batch)
            costs = costs + batch.partners * window.probe_seconds
            if window.match_seconds:
                costs = costs + self._found(batch, len(costs)) * window.match_seconds
        return costs if batch.mass is None else costs * batch.mass

    def finish(self) -> tuple[Sequence[Release], Sequence[Yield]]:
        """Move on in the inputs; yields what the completed tuples produced."""
        if self.single_side is not None:
            return self._finish_single()
        batch, count = self._batch, self._count
        if batch is None or count == 0:
            return (), ()
        arrival, of_side = batch.arrival[:count], batch.of_side[:count]
        self.last_arrivals = arrival
        made = self._yield(batch, count)
        releases = []
        for number, inlet in enumerate(self.inlets):
            taken = arrival[of_side == number]
            if len(taken):
                if self._kept is not None:
                    self._kept.remember(number, taken)
                releases.append(inlet.release(len(taken)))
        self.tally.taken += sum(release.taken for release in releases)
        self.tally.made += made.amount
        self.served += count
        return releases, (made,) if len(made.arrival) else ()

    def _finish_single(self) -> tuple[Sequence[Release], Sequence[Yield]]:
        """The same as `finish_one`, for those that need arrays."""
        inlet, cursors = self.inlet, self.inlet.buffer.cursors
        before = min(cursors)
        arrival, made = self.finish_one()
        release = Release(inlet, 1.0, float(min(cursors) - before))
        self.last_arrivals = np.full(1, arrival)
        output = Yield(self.id, np.full(made, arrival), None, np.full(made, self._seconds))
        return (release,), (output,) if made else ()

    def _yield(self, batch: Batch, count: int) -> Yield:
        arrival, ends = batch.arrival[:count], batch.ends[:count] + self.step_cost
        found = self._found(batch, count)
        if batch.mass is not None:
            return Yield(self.id, arrival, batch.mass[:count] * found, ends)
        counts = found.astype(np.int64)
        return Yield(self.id, np.repeat(arrival, counts), None, np.repeat(ends, counts))

    def _found(self, batch: Batch, count: int) -> FloatArray:
        """What each of the first tuples yields: so many whole ones, but for fluid tuples."""
        mean: FloatArray = self.selectivity[batch.of_side[:count]]
        if self.window is not None and self.window.match_probability > 0:
            mean = batch.partners[:count] * self.window.match_probability
        if batch.mass is not None:
            return mean
        drawn: FloatArray = np.floor(mean + self.uniform.between(self.served, self.served + count))
        return drawn

    def reveal(self) -> WaitingTuples | None:
        """Nothing: what a tuple meets depends on the other inputs."""
        return None


def _until(
    inlet: Inlet, bound_seconds: float, max_tuples: int | None
) -> tuple[FloatArray, FloatArray | None]:
    """Arrival times and masses of the waiting tuples that are not younger than the bound."""
    buffer, cursor = inlet.buffer, inlet.buffer.cursors[inlet.reader]
    stop = buffer.tail if max_tuples is None else min(buffer.tail, cursor + max_tuples)
    ahead = buffer.arrivals(cursor, stop)
    if len(ahead) and ahead[-1] > bound_seconds:
        stop = cursor + int(np.searchsorted(ahead, bound_seconds, side="right"))
    return buffer.arrivals(cursor, stop), buffer.masses(cursor, stop)
