"""Threshold (Path Capacity paper, section 3.4).

Path Capacity while memory is ample (normal mode), Simplified Segment while it is short (saving
mode). With M the `memory_bytes`, M_c the queue memory now, M̄ its mean over time and α = M̄ / M,
formula (3.3) gives T_max = min((1 + α) / 2 · M, β M), where saving begins, and
T_min = min(M̄, β T_max), where it ends. Memory is looked at only at the end of an interval, which
shrinks in proportion to what is left of M.
"""

from typing import NamedTuple

from millpond.errors import StrategyError
from millpond.scheduling.decisions import Decision
from millpond.scheduling.snapshot import Observation, PlanSnapshot
from millpond.scheduling.strategies.path_capacity import PathCapacity
from millpond.scheduling.strategies.simplified_segment import SimplifiedSegment

MEBIBYTE = 2**20


class Thresholds(NamedTuple):
    """Saving mode begins at `upper_bytes` (T_max) and ends at `lower_bytes` (T_min)."""

    upper_bytes: float
    lower_bytes: float


def thresholds(memory_bytes: float, mean_bytes: float, beta: float) -> Thresholds:
    """Formula (3.3).

    >>> thresholds(100.0, 20.0, 0.9)
    Thresholds(upper_bytes=60.0, lower_bytes=20.0)
    >>> thresholds(100.0, 90.0, 0.9)
    Thresholds(upper_bytes=90.0, lower_bytes=81.0)
    """
    alpha = mean_bytes / memory_bytes
    upper = min((1 + alpha) / 2 * memory_bytes, beta * memory_bytes)
    return Thresholds(upper, min(mean_bytes, beta * upper))


def beyond_memory(queue_bytes: float, memory_bytes: float) -> str:
    """That all has been done to save memory, and it is full.

    >>> beyond_memory(95e6, 100e6)
    'it saves memory, and queues have 95% of what it was given'
    """
    return f"it saves memory, and queues have {queue_bytes / memory_bytes:.0%} of what it was given"


class Threshold:
    """Minimises latency while there is memory, and memory when there is little left.

    It says that it cannot keep up when queues have β of the memory although it saves, until saving
    ends.
    """

    def __init__(
        self,
        memory_bytes: float = 64 * MEBIBYTE,
        beta: float = 0.9,
        gamma: float = 0.75,
        interval_seconds: float = 1.0,
        shortest_interval_seconds: float = 0.01,
        max_tuples: int | None = None,
        slice_seconds: float | None = None,
    ) -> None:
        if not memory_bytes > 0:
            raise StrategyError(f"memory_bytes is {memory_bytes}; give more than 0")
        if not 0.5 < beta < 1:
            raise StrategyError(f"beta is {beta}; give a number above 0.5 and below 1")
        if not 0 <= shortest_interval_seconds <= interval_seconds:
            raise StrategyError(
                f"shortest_interval_seconds is {shortest_interval_seconds}; give a number from 0 "
                f"to interval_seconds, which is {interval_seconds}"
            )
        self.memory_bytes, self.beta = memory_bytes, beta
        self.interval_seconds = interval_seconds
        self.shortest_interval_seconds = shortest_interval_seconds
        self.normal = PathCapacity(max_tuples, slice_seconds)
        self.saving = SimplifiedSegment(gamma, max_tuples, slice_seconds)
        self.is_saving = False
        self.falls_behind = ""
        """Why saving is not enough; empty while it is."""
        self.mean_bytes = 0.0
        self._watched_seconds = 0.0
        self._last_look_seconds: float | None = None
        self._next_look_seconds = 0.0

    @property
    def present(self) -> PathCapacity | SimplifiedSegment:
        """The strategy of the present mode."""
        return self.saving if self.is_saving else self.normal

    def priority(self, operator: int) -> float:
        """The operator's priority in the present mode."""
        return self.present.priority(operator)

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Tell both."""
        self.normal.plan_changed(plan)
        self.saving.plan_changed(plan)

    def observe(self, observation: Observation) -> None:
        """Tell both, and look at the memory when an interval is over."""
        self.normal.observe(observation)
        self.saving.observe(observation)
        if observation.now_seconds >= self._next_look_seconds:
            self._look(observation.now_seconds, observation.queue_bytes)

    def decide(self) -> Decision | None:
        """Ask the strategy of the present mode."""
        return self.present.decide()

    def carry_on(self) -> Decision | None:
        """The next step of a round under way in the present mode."""
        return self.present.carry_on()

    def begin(self, operator: int) -> Decision:
        """Begin a round at a ready operator in the present mode."""
        return self.present.begin(operator)

    def _look(self, now_seconds: float, queue_bytes: float) -> None:
        self._average(now_seconds, queue_bytes)
        bounds = thresholds(self.memory_bytes, self.mean_bytes, self.beta)
        if queue_bytes >= bounds.upper_bytes:
            self.is_saving = True
        elif queue_bytes <= bounds.lower_bytes:
            self.is_saving, self.falls_behind = False, ""
        if self.is_saving and queue_bytes >= self.beta * self.memory_bytes:
            self.falls_behind = beyond_memory(queue_bytes, self.memory_bytes)
        share_left = max(0.0, 1 - queue_bytes / self.memory_bytes)
        interval = max(self.shortest_interval_seconds, self.interval_seconds * share_left)
        self._next_look_seconds = now_seconds + interval

    def _average(self, now_seconds: float, queue_bytes: float) -> None:
        """Weigh each look by the time since the last one."""
        if self._last_look_seconds is not None:
            passed = now_seconds - self._last_look_seconds
            self._watched_seconds += passed
            if self._watched_seconds > 0:
                gap = queue_bytes - self.mean_bytes
                self.mean_bytes += gap * passed / self._watched_seconds
        self._last_look_seconds = now_seconds
