"""Graph-threaded scheduling (HMTS paper, section 4.1.1): one thread executes the whole graph.

All operators are decoupled by queues, one strategy says which runs next, and only one runs at a
time, however many processors there are.
"""

from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.threads.configuration import Configuration
from millpond.scheduling.threads.level_settings import LevelSettings
from millpond.scheduling.threads.three_levels import ThreeLevels
from millpond.scheduling.threads.virtual_operators import operator_edges


class Gts(ThreeLevels):
    """One thread, one strategy (fifo unless named), a queue before every operator."""

    def __init__(
        self,
        strategy: str = "fifo",
        max_tuples: int | None = None,
        slice_seconds: float | None = None,
    ) -> None:
        self.level = LevelSettings(strategy, max_tuples, slice_seconds)
        super().__init__(self.graph_threaded)
        self.simulator_only = self.level.simulator_only

    def graph_threaded(self, plan: PlanSnapshot) -> Configuration:
        """The configuration of one partition with everything in it."""
        everything = self.level.partition(plan, plan.by_id)
        return Configuration((everything,), operator_edges(plan))
