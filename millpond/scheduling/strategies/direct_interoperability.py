"""Direct interoperability (HMTS paper, section 2.4): an operator calls its successors.

No queue is left but those behind the streams; all that hangs together is one virtual operator,
which runs depth first in one thread and stalls as a whole when one of its members is expensive.
"""

from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.threads.configuration import Configuration
from millpond.scheduling.threads.level_settings import LevelSettings
from millpond.scheduling.threads.three_levels import ThreeLevels
from millpond.scheduling.threads.virtual_operators import virtual_operators


class DirectInteroperability(ThreeLevels):
    """One virtual operator and one thread for all operators that hang together."""

    def __init__(
        self,
        threads: int | None = None,
        turn_seconds: float | None = 0.1,
        max_tuples: int | None = None,
    ) -> None:
        self.level = LevelSettings(
            max_tuples=max_tuples, threads=threads, turn_seconds=turn_seconds
        )
        super().__init__(self.directly_connected)

    def directly_connected(self, plan: PlanSnapshot) -> Configuration:
        """The configuration without queues between operators."""
        units = virtual_operators(plan, ()).values()
        return Configuration(
            self.level.partitions(plan, units), frozenset(), self.level.turn_seconds
        )
