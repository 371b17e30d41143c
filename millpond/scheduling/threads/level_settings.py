"""The settings that GTS, OTS, direct interoperability and HMTS have in common."""

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from millpond.errors import StrategyError
from millpond.scheduling.decisions import Service
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import OperatorSnapshot, PlanSnapshot
from millpond.scheduling.strategy import Strategy, simulator_only
from millpond.scheduling.threads.configuration import Partition, check_turn
from millpond.scheduling.threads.three_levels import ThreeLevels


@dataclass(frozen=True)
class LevelSettings:
    """The strategy of each partition and its limits; how many threads, for how long at a turn."""

    strategy: str = "fifo"
    max_tuples: int | None = None
    slice_seconds: float | None = None
    threads: int | None = None
    turn_seconds: float | None = None

    def __post_init__(self) -> None:
        Service(self.max_tuples, self.slice_seconds)
        if self.threads is not None and self.threads < 1:
            raise StrategyError(f"threads is {self.threads}; give at least 1, or none")
        check_turn(self.turn_seconds)
        if isinstance(self._made(), ThreeLevels):
            raise StrategyError(
                f'strategy "{self.strategy}" has threads of its own; name one for a single thread'
            )

    @property
    def simulator_only(self) -> str | None:
        """Why the partitions' strategy cannot drive Spark; None if it can."""
        return simulator_only(self._made())

    def _made(self) -> Strategy:
        return make(self.strategy, **self.of_strategy)

    @property
    def of_strategy(self) -> Mapping[str, object]:
        """What the partitions' strategy is made with."""
        limits = {"max_tuples": self.max_tuples, "slice_seconds": self.slice_seconds}
        return {name: value for name, value in limits.items() if value is not None}

    def partition(self, plan: PlanSnapshot, operators: Iterable[int]) -> Partition:
        """These operators as one partition; its priority is the mean weight of what it serves."""
        inside = frozenset(operators)
        priority = fmean(plan.by_id[each].weight for each in inside) if inside else 1.0
        return Partition(inside, self.strategy, priority, self.of_strategy)

    def partitions(
        self, plan: PlanSnapshot, units: Iterable[Iterable[int]]
    ) -> tuple[Partition, ...]:
        """A thread for each unit, or, where there are too many, units shared out by their load."""
        groups = [frozenset(unit) for unit in units]
        if self.threads is not None and len(groups) > self.threads:
            groups = _shared_out(plan, groups, self.threads)
        return tuple(self.partition(plan, group) for group in groups)


def load(operator: OperatorSnapshot) -> float:
    """The share of one processor that an operator needs to keep pace."""
    return operator.cost_seconds * operator.tuples_per_second


def _shared_out(
    plan: PlanSnapshot, units: list[frozenset[int]], threads: int
) -> list[frozenset[int]]:
    """The heaviest unit first, each to the thread with the least to do."""
    loads = {unit: sum(load(plan.by_id[each]) for each in unit) for unit in units}
    shares: list[set[int]] = [set() for _ in range(threads)]
    sums = [(0.0, thread) for thread in range(threads)]
    for unit in sorted(units, key=lambda each: (-loads[each], min(each))):
        total, thread = heapq.heappop(sums)
        shares[thread] |= unit
        heapq.heappush(sums, (total + loads[unit], thread))
    return [frozenset(share) for share in shares if share]
