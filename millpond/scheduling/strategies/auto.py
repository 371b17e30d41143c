"""Auto: within a memory budget as fast as possible, and within a latency goal as lean as possible.

Beyond the papers. A chart may weigh both objectives of the Unified paper at once: what is left of a
tuple is (1 - λ) times the outputs it still owes plus λ times the bytes it still takes, each in
units of the plan's mean. The steepest descent on that chart is the best index for that weighing:
with λ = 0 tuples are carried through, with λ = 1 Auto is Chain. Auto climbs a ladder of a few λ as
memory nears the budget, and the sooner the faster it rises. How early it starts it learns: it keeps
as much memory in reserve as the worst burst still needed once it had started to save.
"""

import math

from millpond.errors import StrategyError
from millpond.scheduling.decisions import Decision, Service
from millpond.scheduling.ladder import Ladder
from millpond.scheduling.ready_queue import ReadyQueue
from millpond.scheduling.snapshot import Observation, PlanSnapshot
from millpond.scheduling.strategies.threshold import beyond_memory

MEBIBYTE = 2**20
FIRST_RESERVE = 0.8
"""The share of the budget kept in reserve before anything was learnt."""
LEAST_RESERVE, MOST_RESERVE = 0.05, 0.95
RELAXING = 0.9
"""What remains of a reserve after a burst, unless the worst burst needed more."""
FORGETTING = 0.997
"""What remains of the worst burst's need after one that needed less."""
CAUTION = 1.3
"""How much more is kept in reserve than the worst burst needed."""
RELIEF = 0.92
"""How far below a rung's mark memory must fall before Auto steps down from it."""


class Auto:
    """Moves between latency and memory as the budget and the goal demand.

    Without a goal Auto is as fast as the budget allows. With one, it is as lean as the goal allows:
    it saves memory even while there is plenty, fully as long as no waiting tuple is half that old,
    not at all once one is older than the goal. While memory rises, its lead over its mean of about
    the last `trend_seconds` counts twice.

    It says that it cannot keep up once the memory is full although it saves all it can, and once
    something waits for longer than the goal although nothing is saved.
    """

    def __init__(
        self,
        memory_bytes: float = 64 * MEBIBYTE,
        latency_goal_seconds: float | None = None,
        trend_seconds: float = 1.0,
        max_tuples: int | None = None,
        slice_seconds: float | None = None,
    ) -> None:
        if not memory_bytes > 0:
            raise StrategyError(f"memory_bytes is {memory_bytes}; give more than 0")
        if latency_goal_seconds is not None and not latency_goal_seconds > 0:
            raise StrategyError(
                f"latency_goal_seconds is {latency_goal_seconds}; give more than 0, or none"
            )
        if not trend_seconds > 0:
            raise StrategyError(f"trend_seconds is {trend_seconds}; give more than 0")
        self.memory_bytes = memory_bytes
        self.latency_goal_seconds = latency_goal_seconds
        self.trend_seconds = trend_seconds
        self.service = Service(max_tuples, slice_seconds)
        self.reserve_bytes = FIRST_RESERVE * memory_bytes
        self._ladder = Ladder()
        self._ages = ReadyQueue()
        self._pressed = 0
        self._spare = 0
        self._entry_bytes = self._top_bytes = self._worst_need_bytes = 0.0
        self._mean_bytes = self._looked_seconds = 0.0
        self._short_of_memory = self._late = ""

    @property
    def falls_behind(self) -> str:
        """Why neither goal can be met, or one; empty while both are."""
        return ", and ".join(filter(None, (self._short_of_memory, self._late)))

    @property
    def rung(self) -> int:
        """The rung of the ladder in use: zero for latency, the last for memory."""
        return max(self._pressed, self._spare)

    def priority(self, operator: int) -> float:
        """The present priority of one operator."""
        return self._ladder.priority(self.rung, operator)

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Draw the charts of every rung anew."""
        self._ladder.plan_changed(plan)
        self._ages.clear()

    def observe(self, observation: Observation) -> None:
        """Note what waits, and climb up or down."""
        self._ladder.observe(observation.changed, self.rung)
        self._watch_memory(observation.now_seconds, observation.queue_bytes)
        if self.latency_goal_seconds is not None:
            self._watch_ages(observation, self.latency_goal_seconds)

    def decide(self) -> Decision | None:
        """Serve the best ready operator of the present rung."""
        best = self._ladder.best(self.rung)
        return None if best is None else self.service.run(best)

    def _watch_memory(self, now_seconds: float, queue_bytes: float) -> None:
        foreseen = queue_bytes + self._lead(now_seconds, queue_bytes)
        if self._pressed == 0 and foreseen >= self._mark(1):
            self._entry_bytes = self._top_bytes = queue_bytes
        self._top_bytes = max(self._top_bytes, queue_bytes)
        before = self._pressed
        while self._pressed < self._ladder.last and foreseen >= self._mark(self._pressed + 1):
            self._pressed += 1
        while self._pressed and foreseen < RELIEF * self._mark(self._pressed):
            self._pressed -= 1
        if before and not self._pressed:
            self._learn()
        if self._pressed < self._ladder.last:
            self._short_of_memory = ""
        elif queue_bytes >= self.memory_bytes:
            self._short_of_memory = beyond_memory(queue_bytes, self.memory_bytes)

    def _lead(self, now_seconds: float, queue_bytes: float) -> float:
        """How far memory is above its mean of late, which fades exponentially."""
        passed = now_seconds - self._looked_seconds
        self._looked_seconds = now_seconds
        fresh = 1 - math.exp(-passed / self.trend_seconds)
        self._mean_bytes += fresh * (queue_bytes - self._mean_bytes)
        return max(0.0, queue_bytes - self._mean_bytes)

    def _mark(self, rung: int) -> float:
        """The memory from which a rung is used: the reserve divided evenly."""
        return self.memory_bytes - self.reserve_bytes * (1 - (rung - 1) / self._ladder.last)

    def _learn(self) -> None:
        """Keep in reserve what the worst burst so far took after saving began."""
        need = self._top_bytes - self._entry_bytes
        self._worst_need_bytes = max(need, FORGETTING * self._worst_need_bytes)
        reserve = max(CAUTION * self._worst_need_bytes, RELAXING * self.reserve_bytes)
        low, high = LEAST_RESERVE * self.memory_bytes, MOST_RESERVE * self.memory_bytes
        self.reserve_bytes = min(high, max(low, reserve))

    def _watch_ages(self, observation: Observation, goal_seconds: float) -> None:
        for state in observation.changed:
            if state.ready:
                self._ages.put(state.operator, (state.oldest_arrival_seconds,))
            else:
                self._ages.discard(state.operator)
        oldest = self._ages.best()
        born = self._ages.key(oldest) if oldest is not None else None
        age = observation.now_seconds - born[0] if born is not None else 0.0
        if age > goal_seconds and not self._pressed:  # it is as fast as it can be, and late
            self._late = f"what waits is {age:.2g} s old, {goal_seconds:g} s are the goal"
        elif age <= goal_seconds / 2:
            self._late = ""
        slack = min(1.0, max(0.0, 2 * (1 - age / goal_seconds)))
        self._spare = round(slack * self._ladder.last)
