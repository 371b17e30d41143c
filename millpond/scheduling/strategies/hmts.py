"""Hybrid multi-threaded scheduling (HMTS paper, sections 4.2 and 5).

Queues are placed so that no virtual operator stalls; each virtual operator, or as many together as
`threads` allows, is a partition with a thread and a strategy of its own; the thread scheduler
divides the processors by priority: the mean weight of the queries a partition works for.
"""

from collections.abc import Callable, Mapping

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

PLACEMENTS: Mapping[str, Callable[[PlanSnapshot], Placement]] = {
    "stall-avoiding": place_queues,
    "chains": place_queues_by_chains,
    "segments": place_queues_by_segments,
}


class Hmts(ThreeLevels):
    """Virtual operators that keep pace, in a thread each.

    New statistics move queues only when a virtual operator has begun to stall or operators came or
    went: moving them interrupts everything that runs.
    """

    def __init__(
        self,
        strategy: str = "fifo",
        placement: str = "stall-avoiding",
        threads: int | None = None,
        turn_seconds: float | None = 0.1,
        max_tuples: int | None = None,
        slice_seconds: float | None = None,
    ) -> None:
        if placement not in PLACEMENTS:
            known = ", ".join(PLACEMENTS)
            raise StrategyError(f'placement is "{placement}"; choose one of: {known}')
        self.level = LevelSettings(strategy, max_tuples, slice_seconds, threads, turn_seconds)
        self._place = PLACEMENTS[placement]
        self._edges: Placement = frozenset()
        self._queues: Placement | None = None
        super().__init__(self.hybrid)
        self.simulator_only = self.level.simulator_only

    def hybrid(self, plan: PlanSnapshot) -> Configuration:
        """The configuration for the present statistics, the last one again if it still serves."""
        edges = operator_edges(plan)
        if self._queues is None or edges != self._edges or stalls(plan, self._queues):
            self._edges = edges
            self._queues = without_cycles(plan, self._place(plan))
        units = virtual_operators(plan, self._queues).values()
        return Configuration(
            self.level.partitions(plan, units), self._queues, self.level.turn_seconds
        )


def stalls(plan: PlanSnapshot, queues: Placement) -> bool:
    """Whether a virtual operator of several members cannot keep pace with its input."""
    groups = virtual_operators(plan, queues).values()
    shared = (members for members in groups if len(members) > 1)
    return any(capacity(plan.by_id[each] for each in members) < 0 for members in shared)
