"""Operator-threaded scheduling (HMTS paper, section 4.1.2): each operator has a thread of its own.

All operators are decoupled by queues. There is no strategy: as an operating system would, the
thread scheduler gives every thread that has work its turn.
"""

from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.threads.configuration import Configuration
from millpond.scheduling.threads.level_settings import LevelSettings
from millpond.scheduling.threads.three_levels import ThreeLevels
from millpond.scheduling.threads.virtual_operators import operator_edges


class Ots(ThreeLevels):
    """A thread and a queue for every operator."""

    def __init__(self, turn_seconds: float | None = 0.02, max_tuples: int | None = None) -> None:
        self.level = LevelSettings(max_tuples=max_tuples, turn_seconds=turn_seconds)
        super().__init__(self.operator_threaded)

    def operator_threaded(self, plan: PlanSnapshot) -> Configuration:
        """The configuration of one partition for each operator."""
        partitions = self.level.partitions(plan, ([each] for each in plan.upstream_first))
        return Configuration(partitions, operator_edges(plan), self.level.turn_seconds)
