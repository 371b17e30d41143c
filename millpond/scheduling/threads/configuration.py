"""Configurations of the three-level scheme (HMTS paper, section 4.2.2), as plain data.

Level 1: operators, and virtual operators where no queue is between them. Level 2: partitions, each
executed by one thread with a strategy of its own. Level 3: priorities among the threads, and the
length of a thread's turn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from millpond.errors import StrategyError
from millpond.scheduling.charts.chain_borders import chain_borders
from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.threads.virtual_operators import Placement, operator_edges, without_cycles


@dataclass(frozen=True)
class Partition:
    """Operators that threads execute by one strategy, and the share of time they may claim.

    The paper has one thread for each; without a number there are as many as processors. One that a
    user has made has a name, and stays what it is whatever operators come and go.
    """

    operators: frozenset[int]
    strategy: str = "fifo"
    priority: float = 1.0
    settings: Mapping[str, object] = field(default_factory=dict)
    threads: int | None = 1
    name: str = ""

    def __post_init__(self) -> None:
        if not self.operators:
            raise StrategyError("a partition has no operators; give it some or leave it out")
        check_priority(self.priority)

    @property
    def identity(self) -> tuple[object, ...]:
        """What stays the same as long as its strategy need not begin anew."""
        settings = tuple(sorted(self.settings.items()))
        return self.name or self.operators, self.strategy, settings


@dataclass(frozen=True)
class Configuration:
    """Partitions, the queues between operators, and the longest turn of a thread.

    Queues between partitions need not be listed; without any, the runtime has them where it likes.
    Without `turn_seconds` a thread keeps its processor for what its own strategy decides.
    """

    partitions: tuple[Partition, ...]
    queues: Placement | None
    turn_seconds: float | None = None

    def __post_init__(self) -> None:
        check_turn(self.turn_seconds)

    @property
    def partition_of(self) -> Mapping[int, int]:
        """The place of each operator's partition."""
        places = enumerate(self.partitions)
        return {operator: place for place, each in places for operator in each.operators}

    def completed(self, plan: PlanSnapshot) -> Configuration:
        """Check that each operator of the plan has one partition, and add the queues that must be.

        Those are the ones between partitions and, where a partition runs Chain, the ones between
        two chains, because Chain gives them different priorities.
        """
        _check_cover(self.partitions, plan)
        if self.queues is None:
            return self
        unknown = self.queues - operator_edges(plan)
        if unknown:
            raise StrategyError(f"no edge {min(unknown)} between operators to put a queue on")
        queues = self.queues | self._between_partitions(plan)
        queues |= self._between_chains(plan, queues)
        return replace(self, queues=without_cycles(plan, queues))

    def beside_named(self, plan: PlanSnapshot) -> Configuration:
        """The same beside the partitions that users have made, which have their operators alone."""
        named = tuple(_named(plan))
        taken = frozenset().union(*(each.operators for each in named))
        left = ((each, each.operators - taken) for each in self.partitions)
        rest = (replace(each, operators=operators) for each, operators in left if operators)
        return replace(self, partitions=(*named, *rest)) if named else self

    def _between_partitions(self, plan: PlanSnapshot) -> Placement:
        place = self.partition_of
        return frozenset(edge for edge in operator_edges(plan) if place[edge[0]] != place[edge[1]])

    def _between_chains(self, plan: PlanSnapshot, queues: Placement) -> Placement:
        by_chain = [each.operators for each in self.partitions if each.strategy == "chain"]
        if not by_chain or not operator_edges(plan) - queues:
            return frozenset()
        chained = frozenset().union(*by_chain)
        return frozenset(edge for edge in chain_borders(plan) if edge[1] in chained)


def _named(plan: PlanSnapshot) -> Iterator[Partition]:
    """The partitions that users have made and that have operators."""
    members: dict[str, set[int]] = {}
    for each in plan.operators:
        members.setdefault(each.partition, set()).add(each.id)
    for made in plan.partitions:
        if made.name in members:
            yield Partition(
                frozenset(members[made.name]),
                made.strategy,
                made.priority,
                made.settings,
                made.threads,
                made.name,
            )


def check_priority(priority: float) -> None:
    """Refuse a priority that is no positive number."""
    if not (priority > 0 and math.isfinite(priority)):
        raise StrategyError(f"priority is {priority}; give a number above 0")


def check_turn(turn_seconds: float | None) -> None:
    """Refuse a turn of no length."""
    if turn_seconds is not None and not turn_seconds > 0:
        raise StrategyError(f"turn_seconds is {turn_seconds}; give more than 0, or none")


def _check_cover(partitions: tuple[Partition, ...], plan: PlanSnapshot) -> None:
    if not plan.operators:
        raise StrategyError("the plan is empty; register a query first")
    listed = Counter(operator for each in partitions for operator in each.operators)
    twice = {operator for operator, count in listed.items() if count > 1}
    if twice:
        raise StrategyError(f"operator {min(twice)} is in two partitions; leave it in one")
    missing = set(plan.by_id) - set(listed)
    if missing:
        raise StrategyError(f"operator {min(missing)} is in no partition; add it to one")
    surplus = set(listed) - set(plan.by_id)
    if surplus:
        raise StrategyError(f"the plan has no operator {min(surplus)}; known: {sorted(plan.by_id)}")
