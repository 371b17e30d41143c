"""What strategies share that schedule a run of operators as one (Path Capacity paper, 3.1).

A round takes tuples in at one operator of a run and carries them up, operator after operator, to
the end of the run: the paper's internal scheduling strategy. Since priorities are static, the
best run with work is the best run of the best ready operator, so a decision costs O(log n)
however many runs share an operator.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from millpond.scheduling.decisions import Decision, RunOperator, Service
from millpond.scheduling.ready_queue import Key, ReadyQueue
from millpond.scheduling.snapshot import Observation, OperatorState, PlanSnapshot

SLACK = 1e-9
"""The share of a slice that counts as nothing, so that rounding never begins or ends a round."""


@dataclass(frozen=True)
class RankedRun:
    """Operators from the leaf up that are scheduled as one; the highest priority goes first.

    `remaining_seconds` is the work one tuple means for the run, from each operator on, and
    `remaining_step_seconds` what the steps of a round take beside it.
    """

    operators: tuple[int, ...]
    priority: float
    remaining_seconds: tuple[float, ...]
    remaining_step_seconds: tuple[float, ...]

    def breakeven_tuples(self, number: int) -> float:
        """So many tuples from an operator on mean as much work as the steps by themselves.

        Where one step is all there is to come, the runtime knows that best.
        """
        work = self.remaining_seconds[number]
        is_last = number == len(self.operators) - 1
        return 0.0 if is_last or work <= 0 else self.remaining_step_seconds[number] / work


class Stop(NamedTuple):
    """An operator of a run."""

    run: RankedRun
    number: int


class Round(NamedTuple):
    """A run at work: where it is and when its slice ends."""

    stop: Stop
    end_seconds: float


class ByRun:
    """Takes the run of the highest priority that has work; ties go to the oldest waiting tuple.

    Exhaustive service takes in all that waits. With `max_tuples` a round takes in so many, with
    `slice_seconds` as many as the run's capacity serves in that time, and a round that lasts
    longer is cut: what is left in its middle competes with the run's priority again.
    """

    def __init__(self, max_tuples: int | None = None, slice_seconds: float | None = None) -> None:
        self.service = Service(max_tuples, slice_seconds)
        self._best: Mapping[int, Stop] = {}
        self._depth: Mapping[int, int] = {}
        self._ready = ReadyQueue()
        self._running: set[int] = set()
        self._rounds: dict[int, Round] = {}
        self._now_seconds = 0.0

    def runs(self, plan: PlanSnapshot) -> Sequence[RankedRun]:
        """The runs of a plan; every operator belongs to one at least."""
        raise NotImplementedError

    def priority(self, operator: int) -> float:
        """The priority of the best run an operator belongs to."""
        return self._best[operator].run.priority

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Form the runs anew; rounds under way end."""
        self._best = _best_stops(self.runs(plan))
        self._depth = plan.depth
        self._ready.clear()
        self._running.clear()
        self._rounds.clear()

    def observe(self, observation: Observation) -> None:
        """Keep the ready operators in order."""
        self._now_seconds = observation.now_seconds
        for state in observation.changed:
            if state.ready:
                self._ready.put(state.operator, self._key(state))
            else:
                self._ready.discard(state.operator)
            if state.running:
                self._running.add(state.operator)
            else:
                self._running.discard(state.operator)

    def decide(self) -> Decision | None:
        """Carry a round on, or begin one with the best run."""
        step = self.carry_on()
        if step is not None:
            return step
        best = self._ready.best()
        return None if best is None else self.begin(best)

    def begin(self, operator: int) -> Decision:
        """Begin a round of the best run of a ready operator, there."""
        stop = self._best[operator]
        seconds = self.service.slice_seconds
        end = math.inf if seconds is None else self._now_seconds + seconds
        self._rounds[operator] = Round(stop, end)
        return RunOperator(
            operator,
            self._tuples_of_a_round(stop),
            seconds,
            breakeven_tuples=stop.run.breakeven_tuples(stop.number),
        )

    def carry_on(self) -> Decision | None:
        """The next step of a round whose last step is done, or None."""
        for operator in [each for each in self._rounds if each not in self._running]:
            step = self._step_up(self._rounds.pop(operator))
            if step is not None:
                return step
        return None

    def _step_up(self, current: Round) -> Decision | None:
        run, number = current.stop.run, current.stop.number + 1
        left = current.end_seconds - self._now_seconds
        if number == len(run.operators) or left <= SLACK * (self.service.slice_seconds or 0.0):
            return None
        operator = run.operators[number]
        if operator not in self._ready:
            return None
        self._rounds[operator] = Round(Stop(run, number), current.end_seconds)
        return RunOperator(operator, None, None if left == math.inf else left)

    def _tuples_of_a_round(self, stop: Stop) -> int | None:
        limit, seconds = self.service.max_tuples, self.service.slice_seconds
        work = stop.run.remaining_seconds[stop.number]
        if seconds is None or work <= 0:
            return limit
        tuples = max(1, int(seconds / work * (1 + SLACK)))
        return tuples if limit is None else min(limit, tuples)

    def _key(self, state: OperatorState) -> Key:
        operator = state.operator
        priority = self._best[operator].run.priority
        return -priority, state.oldest_arrival_seconds, -self._depth[operator]


def _best_stops(runs: Sequence[RankedRun]) -> dict[int, Stop]:
    best: dict[int, Stop] = {}
    for run in runs:
        for number, operator in enumerate(run.operators):
            known = best.get(operator)
            if known is None or run.priority > known.run.priority:
                best[operator] = Stop(run, number)
    return best
