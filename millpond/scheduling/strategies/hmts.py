"""Hybrid multi-threaded scheduling (HMTS paper, sections 4.2 and 5).

Queues are placed so that no virtual operator stalls; each virtual operator, or as many together as
`threads` allows, is a partition with a thread and a strategy of its own; the thread scheduler
divides the processors by priority: the mean weight of the queries a partition works for.

The paper wants the fewest virtual operators of which none stalls, and leaves it open how they
follow changing rates (section 5.1.3). Here a queue is put in as soon as one stalls, and taken out
again when fewer virtual operators would do with some slack, and would have for a while: so load
that goes up and down a little moves nothing.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from millpond.errors import StrategyError
from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.threads.configuration import Configuration
from millpond.scheduling.threads.level_settings import LevelSettings
from millpond.scheduling.threads.place_queues import place_queues
from millpond.scheduling.threads.rival_placements import (
    place_queues_by_chains,
    place_queues_by_segments,
)
from millpond.scheduling.threads.three_levels import ThreeLevels
from millpond.scheduling.threads.virtual_operators import (
    Placement,
    capacity,
    operator_edges,
    virtual_operators,
    without_cycles,
)

Place: TypeAlias = Callable[[PlanSnapshot, float], Placement]
"""A placement for a plan, with some slack."""

PLACEMENTS: Mapping[str, Place] = {
    "stall-avoiding": place_queues,
    "chains": lambda plan, slack: place_queues_by_chains(plan),
    "segments": lambda plan, slack: place_queues_by_segments(plan),
}

CALM_LOOKS = 3
"""So often in a row fewer queues must have been enough before some are taken out."""


class Hmts(ThreeLevels):
    """Virtual operators that keep pace, in a thread each.

    New statistics move queues only when a virtual operator has begun to stall, when fewer of them
    have long been enough, or when operators came or went: moving them interrupts everything that
    runs.
    """

    def __init__(
        self,
        strategy: str = "fifo",
        placement: str = "stall-avoiding",
        threads: int | None = None,
        turn_seconds: float | None = 0.1,
        max_tuples: int | None = None,
        slice_seconds: float | None = None,
        slack: float = 0.25,
    ) -> None:
        if not 0 <= slack < 1:
            raise StrategyError(f"slack is {slack}; give a number from 0 to below 1")
        if placement not in PLACEMENTS:
            known = ", ".join(PLACEMENTS)
            raise StrategyError(f'placement is "{placement}"; choose one of: {known}')
        self.level = LevelSettings(strategy, max_tuples, slice_seconds, threads, turn_seconds)
        self._place, self._slack = PLACEMENTS[placement], slack
        self._calm_looks = 0
        self._edges: Placement = frozenset()
        self._queues: Placement | None = None
        super().__init__(self.hybrid)
        self.simulator_only = self.level.simulator_only

    def hybrid(self, plan: PlanSnapshot) -> Configuration:
        """The configuration for the present statistics, the last one again if it still serves."""
        queues = self._queues = self._placed(plan)
        units = virtual_operators(plan, queues).values()
        return Configuration(self.level.partitions(plan, units), queues, self.level.turn_seconds)

    def _placed(self, plan: PlanSnapshot) -> Placement:
        """Where queues are to be by the present statistics: where they are, if that serves."""
        edges, before = operator_edges(plan), self._edges
        self._edges = edges
        if self._queues is None or edges != before or stalls(plan, self._queues):
            self._calm_looks = 0
            return without_cycles(plan, self._place(plan, 0.0))
        fewer = without_cycles(plan, self._place(plan, self._slack))
        is_calm = _count(plan, fewer) < _count(plan, self._queues) and not stalls(plan, fewer)
        self._calm_looks = self._calm_looks + 1 if is_calm else 0
        if self._calm_looks < CALM_LOOKS:
            return self._queues
        self._calm_looks = 0
        return fewer


def _count(plan: PlanSnapshot, queues: Placement) -> int:
    """How many virtual operators a placement makes."""
    return len(virtual_operators(plan, queues))


def stalls(plan: PlanSnapshot, queues: Placement) -> bool:
    """Whether a virtual operator of several members cannot keep pace with its input."""
    groups = virtual_operators(plan, queues).values()
    shared = (members for members in groups if len(members) > 1)
    return any(capacity(plan.by_id[each] for each in members) < 0 for members in shared)
