"""The second cure for starvation (Path Capacity paper, section 4.2), around any strategy.

An operator's priority is Ĉ = C f with f = τ Q: C the inner strategy's priority, τ the age of the
oldest tuple that waits there, Q the tuples that wait. Both are left without norm, for a common
divisor changes no order. Ages are brought up to date every `period_seconds`, and those of an
operator whenever its queue changes.
"""

import math
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

from millpond.errors import StrategyError
from millpond.scheduling.decisions import Decision, Service
from millpond.scheduling.ready_queue import Key, ReadyQueue
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import Observation, OperatorState, PlanSnapshot
from millpond.scheduling.strategy import Strategy, falls_behind, simulator_only

OUT_OF_RANGE = 1000.0
"""A priority that is infinite counts so many times the highest finite one, and one that is not
above zero so many times less than the lowest that is: only then can waiting raise it."""


@runtime_checkable
class Prioritised(Protocol):
    """A strategy that has a priority for each operator."""

    def priority(self, operator: int) -> float:
        """The present priority of one operator."""


@runtime_checkable
class InRounds(Protocol):
    """A strategy that carries tuples on over several operators before it decides anew."""

    def begin(self, operator: int) -> Decision:
        """Begin a round at a ready operator."""

    def carry_on(self) -> Decision | None:
        """The next step of a round under way, or None."""


class DynamicPriority:
    """Raises the inner strategy's priorities with the age and the length of queues.

    `inner` is a strategy or the name of one, made with `inner_settings`. One that has no priorities
    is asked for none: then age and length alone decide.
    """

    def __init__(
        self,
        inner: str | Strategy = "path-capacity",
        period_seconds: float = 1.0,
        **inner_settings: object,
    ) -> None:
        if not period_seconds > 0:
            raise StrategyError(f"period_seconds is {period_seconds}; give more than 0")
        self.inner = make(inner, **inner_settings) if isinstance(inner, str) else inner
        self.simulator_only = simulator_only(self.inner)
        self.period_seconds = period_seconds
        self._rounds = self.inner if isinstance(self.inner, InRounds) else None
        service = getattr(self.inner, "service", None)
        self.service = service if isinstance(service, Service) else Service()
        self._waiting: dict[int, OperatorState] = {}
        self._capacity: dict[int, float] = {}
        self._ready = ReadyQueue()
        self._now_seconds = 0.0
        self._next_seconds = 0.0

    @property
    def falls_behind(self) -> str:
        """Why the inner strategy cannot keep up."""
        return falls_behind(self.inner)

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Let the inner strategy work its priorities out."""
        self.inner.plan_changed(plan)
        self._capacity = self._capacities(each.id for each in plan.operators)
        self._waiting.clear()
        self._ready.clear()

    def observe(self, observation: Observation) -> None:
        """Give the operators that changed, and every period all others, their new priorities."""
        self.inner.observe(observation)
        self._now_seconds = observation.now_seconds
        for state in observation.changed:
            if state.ready:
                self._waiting[state.operator] = state
                self._ready.put(state.operator, self._key(state))
            else:
                self._waiting.pop(state.operator, None)
                self._ready.discard(state.operator)
        if self._now_seconds >= self._next_seconds:
            self._bring_up_to_date()

    def decide(self) -> Decision | None:
        """Carry a round of the inner strategy on, or serve the highest priority."""
        rounds = self._rounds
        step = None if rounds is None else rounds.carry_on()
        if step is not None:
            return step
        best = self._ready.best()
        if best is None:
            return None
        return self.service.run(best) if rounds is None else rounds.begin(best)

    def priority(self, operator: int) -> float:
        """Ĉ of one operator now."""
        state = self._waiting.get(operator)
        return 0.0 if state is None else self._raised(state)

    def _bring_up_to_date(self) -> None:
        self._next_seconds = self._now_seconds + self.period_seconds
        self._capacity = self._capacities(self._capacity)
        for operator, state in self._waiting.items():
            self._ready.put(operator, self._key(state))

    def _capacities(self, operators: Iterable[int]) -> dict[int, float]:
        inner = self.inner
        if not isinstance(inner, Prioritised):
            return dict.fromkeys(operators, 1.0)
        static = {operator: inner.priority(operator) for operator in operators}
        usual = [value for value in static.values() if 0 < value < math.inf] or [1.0]
        lowest, highest = min(usual) / OUT_OF_RANGE, max(usual) * OUT_OF_RANGE
        return {operator: min(max(value, lowest), highest) for operator, value in static.items()}

    def _raised(self, state: OperatorState) -> float:
        age = max(0.0, self._now_seconds - state.oldest_arrival_seconds)
        return self._capacity[state.operator] * age * state.queued_tuples

    def _key(self, state: OperatorState) -> Key:
        static = self._capacity[state.operator]
        return -self._raised(state), -static, state.oldest_arrival_seconds
