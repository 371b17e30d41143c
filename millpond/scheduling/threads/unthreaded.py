"""Mode free beside partitions of users: what is in none of them is done by one strategy.

It has as many threads as there are processors, and queues where the runtime has them.
"""

from collections.abc import Mapping

from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.threads.configuration import Configuration, Partition
from millpond.scheduling.threads.three_levels import ThreeLevels

OTHERS = "~others"
"""The name of the partition of what is in no other; no user's has such a name."""


class Unthreaded(ThreeLevels):
    """One partition with any number of threads, for whatever is in none that a user has made."""

    def __init__(self, strategy: str, settings: Mapping[str, object]) -> None:
        self._strategy, self._settings = strategy, settings
        super().__init__(self.beside_partitions)

    def beside_partitions(self, plan: PlanSnapshot) -> Configuration:
        """The configuration of one partition, whose steps begin as soon as a processor is free."""
        everything = frozenset(plan.by_id)
        others = Partition(everything, self._strategy, 1.0, self._settings, None, OTHERS)
        return Configuration((others,), None)
