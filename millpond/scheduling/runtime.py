"""The Runtime protocol and the loop, written once: observe, decide, perform.

The simulator (virtual clock) and Spark (real data) are the two runtimes; any strategy drives
either.
"""

from typing import Protocol

from millpond.scheduling.decisions import Decision
from millpond.scheduling.snapshot import Observation, PlanSnapshot
from millpond.scheduling.strategy import Strategy, Successor


class Runtime(Protocol):
    """Something that runs a plan step by step as it is told."""

    @property
    def plan_version(self) -> int:
        """A number that grows whenever `plan` would answer differently."""

    def plan(self) -> PlanSnapshot:
        """The plan with its present statistics."""

    def observe(self, complete: bool) -> Observation:
        """The operators that changed since the last call, or all of them when `complete`."""

    def has_free_processor(self) -> bool:
        """Whether a decision could start now."""

    def perform(self, decision: Decision) -> None:
        """Start (with one processor: do) what was decided."""

    def wait(self) -> bool:
        """Let time pass until something changes; False when nothing ever will."""


class SchedulingLoop:
    """Drives one runtime by one strategy at a time; the strategy may be exchanged between turns."""

    def __init__(self, runtime: Runtime, strategy: Strategy) -> None:
        self.runtime = runtime
        self.strategy = strategy
        """The strategy in charge; another thread may put another one there."""
        self._known: tuple[Strategy, int] | None = None

    def turn(self) -> bool:
        """Observe, decide and perform once; False when nothing is left to do, ever."""
        runtime, strategy = self.runtime, self.strategy
        self._observe(strategy)
        decision = strategy.decide() if runtime.has_free_processor() else None
        if decision is None:
            return runtime.wait()
        runtime.perform(decision)
        return True

    def run(self) -> None:
        """Take turns until nothing is left to do."""
        while self.turn():
            pass

    def _observe(self, strategy: Strategy) -> None:
        now = strategy, self.runtime.plan_version
        complete = now != self._known
        if complete:
            before = None if self._known is None else self._known[0]
            if before is not None and before is not strategy and isinstance(strategy, Successor):
                strategy.succeed(before)
            self._known = now
            strategy.plan_changed(self.runtime.plan())
        strategy.observe(self.runtime.observe(complete))
