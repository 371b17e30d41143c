"""The protocol every strategy follows, whether built in or from another package."""

from typing import Protocol, runtime_checkable

from millpond.scheduling.decisions import Decision
from millpond.scheduling.snapshot import Observation, PlanSnapshot


@runtime_checkable
class Strategy(Protocol):
    """A scheduling strategy: told what changed, asked what to do next for one free processor."""

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Learn a new structure or new statistics; an observation of every operator follows."""

    def observe(self, observation: Observation) -> None:
        """Learn the new state of the operators that changed."""

    def decide(self) -> Decision | None:
        """What the free processor should do now, or None to let it idle until a change."""


@runtime_checkable
class Successor(Protocol):
    """A strategy that goes on with what the one before it knew."""

    def succeed(self, other: Strategy) -> None:
        """Take over from another strategy; the plan follows."""


def falls_behind(strategy: Strategy | None) -> str:
    """Why a strategy cannot keep up with what comes; empty if it can, or does not know.

    A strategy says so by an attribute `falls_behind`, of memory or time that it was given.
    """
    reason: str = getattr(strategy, "falls_behind", "")
    return reason


def simulator_only(strategy: Strategy) -> str | None:
    """Why a strategy cannot drive Spark and what to take instead; None for those that can.

    A strategy says so by an attribute `simulator_only`; those without one can.
    """
    reason: str | None = getattr(strategy, "simulator_only", None)
    return reason
