"""Operators at work, whatever their kind: begun, a step knows its length; finished, it yields.

In the discrete model a tuple yields whole tuples; in the fluid one its mass shrinks (or grows) by
the selectivity, as in the Chain paper's theory. Work on a tuple may be cut by the end of a time
slice; the tuple keeps its size until its work is complete.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from millpond.scheduling.snapshot import FloatArray, OperatorState, WaitingTuples
from millpond.simulator.inlets import Inlet, Release
from millpond.simulator.plan import SimulatedOperator

IntArray: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
SLACK = 1 + 1e-9
"""How much longer than its slice work may be, so that rounding never costs a time unit."""
new_state: Callable[[tuple[Any, ...]], OperatorState] = partial(tuple.__new__, OperatorState)
"""From all seven values: more than twice as fast as calling the class, and millions are made."""


class Yield(NamedTuple):
    """Tuples one operator put out in a step; `ends` are their times since the step began."""

    producer: int
    arrival: FloatArray
    mass: FloatArray | None
    ends: FloatArray

    @property
    def amount(self) -> float:
        """How many tuples, by mass."""
        return float(len(self.arrival)) if self.mass is None else float(self.mass.sum())


@dataclass(slots=True)
class Tally:
    """What an operator did since somebody last looked."""

    seconds: float = 0.0
    taken: float = 0.0
    made: float = 0.0


class Cut(NamedTuple):
    """How far a step comes: whole tuples, seconds, and seconds spent on the tuple behind them."""

    tuples: int
    seconds: float
    done_seconds: float


def cut(
    ends: FloatArray, slice_seconds: float | None, done_seconds: float, preemptive: bool
) -> Cut:
    """Cut work that would end tuple by tuple at `ends`, of which `done_seconds` were done before.

    >>> cut(np.array([1.0, 2.0, 3.0]), 2.5, 0.0, preemptive=True)
    Cut(tuples=2, seconds=2.5, done_seconds=0.5)
    >>> cut(np.array([1.0, 2.0, 3.0]), 2.5, 0.0, preemptive=False)
    Cut(tuples=2, seconds=2.0, done_seconds=0.0)
    """
    count = len(ends)
    if slice_seconds is not None and ends[-1] > slice_seconds * SLACK:
        full = int(np.searchsorted(ends, slice_seconds * SLACK, side="right"))
        if preemptive:
            before = float(ends[full - 1]) if full else -done_seconds
            return Cut(full, slice_seconds, max(0.0, slice_seconds - before))
        count = max(1, full)
    return Cut(count, float(ends[count - 1]), 0.0)


class Step(Protocol):
    """Something at work that can be scheduled: looked at, begun, finished."""

    def state(self) -> OperatorState:
        """What waits, and whether a step would make progress."""

    def begin(self, max_tuples: int | None, slice_seconds: float | None) -> float:
        """Take up to so much work; returns its length in seconds."""

    def finish(self) -> tuple[Sequence[Release], Sequence[Yield]]:
        """End the step that was begun."""

    def reveal(self) -> WaitingTuples | None:
        """What each waiting tuple will cost and yield, where that can be foretold."""


class MemberStep(Step):
    """The step of one elementary operator, which may be part of a virtual one."""

    mean_cost: float
    """The mean seconds for a tuple."""
    mean_selectivity: float
    """The mean outputs for a tuple."""

    def __init__(
        self, operator: SimulatedOperator, inlets: Sequence[Inlet], preemptive: bool
    ) -> None:
        self.id, self.inlets, self.preemptive = operator.id, inlets, preemptive
        self.inlet = inlets[0]
        """The input of the one tuple taken."""
        self.step_cost = operator.step_cost_seconds
        self.tally = Tally()
        self.in_flight_since = math.inf
        self.last_arrivals: FloatArray = np.empty(0)
        self.served = 0
        self.done_seconds = 0.0
        self._count = 0

    def set_overhead(self, seconds: float) -> None:
        """Charge so much for queues with every tuple."""
        raise NotImplementedError

    def took_one(self) -> bool:
        """Whether the step that was begun is over one whole tuple, so that `finish_one` will do."""
        raise NotImplementedError

    def finish_one(self) -> tuple[float, int]:
        """End a step over one tuple; returns its arrival and how many tuples it yields."""
        arrival, made = self.inlet.take_one(), self._made_of_one()
        self.served += 1
        self.tally.taken += 1
        self.tally.made += made
        return arrival, made

    def _made_of_one(self) -> int:
        """How many tuples the next one yields."""
        raise NotImplementedError
