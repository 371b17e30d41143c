"""Partitions of the HMTS paper as they are declared, told to what runs.

A query that names one has its operators there, and others are there because somebody has put them
in it by hand. The strategy for what is in none goes on beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from millpond.catalog import PartitionEntry, QueryEntry
from millpond.errors import StateError
from millpond.identities import BY_NUMBER, OperatorId, QueryName
from millpond.planning.graph import Graph
from millpond.scheduling.snapshot import PartitionSnapshot
from millpond.scheduling.strategy import Strategy, falls_behind
from millpond.scheduling.strategy_text import engine_strategy, partition_snapshot
from millpond.scheduling.threads.configuration import Partition
from millpond.scheduling.threads.three_levels import ThreeLevels
from millpond.sharing.ground import Ground
from millpond.sharing.groups import Groups

if TYPE_CHECKING:
    from millpond.execution.runtime import EngineRuntime


class Thread(NamedTuple):
    """A thread, or those of a partition that a user has made."""

    partition: str
    strategy: str
    priority: float
    operators: tuple[OperatorId, ...]
    falls_behind: str


def _named(partition: Partition, running: set[OperatorId]) -> tuple[OperatorId, ...]:
    operators = map(OperatorId.numbered, sorted(partition.operators))
    return tuple(each for each in operators if each in running)


class Partitioning:
    """Has what runs be divided as the catalog says."""

    def __init__(
        self,
        ground: Ground,
        graph: Graph,
        groups: Groups,
        started: Callable[[], EngineRuntime | None],
    ) -> None:
        self._ground, self._graph, self._groups = ground, graph, groups
        self._started = started
        self.present: Callable[[], Strategy | None] = lambda: None
        """The strategy in charge, once there is work."""

    @property
    def entries(self) -> list[PartitionEntry]:
        """The partitions that are declared."""
        return list(self._ground.catalog.of_kind(PartitionEntry))

    def strategy(self) -> Strategy:
        """A new strategy as the settings say, beside the partitions there are."""
        settings = self._ground.settings
        of = settings.strategy, settings.budget_bytes, settings.mode
        return engine_strategy(*of, bool(self.entries))

    def tell(self) -> None:
        """Has what runs know the partitions of now."""
        runtime, entries = self._started(), self.entries
        if runtime is None:
            return
        runtime.partitions.of_query = self._of_query
        by_hand = {OperatorId(each): entry.name for entry in entries for each in entry.operators}
        runtime.use_partitions(list(map(self._snapshot, entries)), by_hand)

    # -- threads -----------------------------------------------------------------------------

    @property
    def falls_behind(self) -> str:
        """Why the strategy in charge cannot keep up; empty if it can, or does not know."""
        return falls_behind(self.present())

    def threads(self) -> list[Thread]:
        """The threads of the strategy in charge, with what they execute; one if it has none."""
        strategy, runtime = self.present(), self._started()
        running = set() if runtime is None else set(runtime.running)
        if not isinstance(strategy, ThreeLevels) or not strategy.configuration.partitions:
            everything = tuple(sorted(running, key=BY_NUMBER))
            return [Thread("", self._ground.settings.strategy, 1.0, everything, self.falls_behind)]
        partitions, behind = strategy.configuration.partitions, strategy.threads_behind
        return [
            Thread(each.name.strip("~"), each.strategy, each.priority, _named(each, running), why)
            for each, why in zip(partitions, behind, strict=False)
        ]

    # -- who is in them, and how they do -----------------------------------------------------

    def queries(self, name: str) -> list[str]:
        """The queries that say they are in a partition."""
        entries = self._ground.catalog.of_kind(QueryEntry)
        return [each.name for each in entries if each.partition == name]

    def operators(self, name: str) -> list[OperatorId]:
        """The operators that are in a partition now."""
        runtime = self._started()
        if runtime is None:
            return []
        inside = (each for each, partition in runtime.partitions.of.items() if partition == name)
        return sorted((each for each in inside if each in runtime.running), key=BY_NUMBER)

    def waiting_rows(self, name: str) -> int:
        """How many rows wait for the operators of a partition."""
        runtime = self._started()
        running = (
            [] if runtime is None else [runtime.running[each] for each in self.operators(name)]
        )
        return sum(each.waiting(each.claimed, each.horizon) for each in running)

    def under_way(self, name: str) -> int:
        """How many steps of a partition are under way."""
        runtime = self._started()
        if runtime is None:
            return 0
        of, steps = runtime.partitions.of, runtime.under_way.steps.items()
        return sum(len(each) for unit, each in steps if of.get(unit) == name)

    # -- what is refused ---------------------------------------------------------------------

    def refuse(self, operator: str) -> None:
        """Refuses to put an operator in a partition that is not there."""
        found = OperatorId.written(operator)
        if found is None or found not in self._graph.operators:
            known = ", ".join(self._graph.operators) or "none"
            raise StateError(f'no operator "{operator}"; EXPLAIN PHYSICAL names them: {known}')

    def _snapshot(self, entry: PartitionEntry) -> PartitionSnapshot:
        settings = self._ground.settings
        return partition_snapshot(
            PartitionSnapshot(entry.name, entry.strategy, {}, entry.threads, entry.priority),
            settings.strategy,
            settings.budget_bytes,
        )

    def _of_query(self, query: str) -> list[str]:
        """The partitions of a query, or of those of a group."""
        named = (QueryName(each).asked_by for each in self._groups.expanded([query]))
        entries = (self._ground.catalog.get(each) for each in named)
        return [each.partition for each in entries if isinstance(each, QueryEntry)]
