"""The threads that execute one partition like a graph-threaded scheduler: level 2 of HMTS."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Self

from millpond.scheduling.decisions import Decision
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import (
    InputSnapshot,
    Observation,
    OperatorSnapshot,
    OperatorState,
    PlanSnapshot,
)
from millpond.scheduling.threads.configuration import Partition


class PartitionThread:
    """One partition at work: its own strategy sees nothing but the partition's operators.

    What its operators read from other partitions looks like a stream to that strategy, and what
    they write for them like output.
    """

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.strategy = make(partition.strategy, **partition.settings)
        self._ready: set[int] = set()
        self._running: set[int] = set()
        self._news: dict[int, OperatorState] = {}

    def renewed(self, partition: Partition) -> Self:
        """The same with what its partition is now; its strategy goes on."""
        self.partition = partition
        return self

    @property
    def is_running(self) -> bool:
        """Whether one of its operators runs now."""
        return bool(self._running)

    @property
    def may_begin(self) -> bool:
        """Whether one of its operators is ready, and a thread is free to run it."""
        threads = self.partition.threads
        return bool(self._ready) and (threads is None or len(self._running) < threads)

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Learn the operators of the partition anew; states of all of them follow."""
        self._ready.clear()
        self._running.clear()
        self._news.clear()
        self.strategy.plan_changed(plan)

    def note(self, state: OperatorState) -> None:
        """Learn a new state; the strategy hears of it before it decides."""
        operator = state.operator
        self._news[operator] = state
        (self._ready.add if state.ready else self._ready.discard)(operator)
        (self._running.add if state.running else self._running.discard)(operator)

    def decide(self, now_seconds: float, queue_bytes: float) -> Decision | None:
        """What the partition's strategy would do now."""
        news, self._news = list(self._news.values()), {}
        self.strategy.observe(Observation(now_seconds, news, queue_bytes))
        return self.strategy.decide()


def plan_of(plan: PlanSnapshot, operators: Iterable[int]) -> PlanSnapshot:
    """The plan of some operators only, the others cut away."""
    inside = dict.fromkeys(operators)
    if len(inside) == len(plan.operators):
        return plan
    return PlanSnapshot(
        tuple(_cut_out(plan.by_id[each], inside) for each in inside), plan.structure
    )


def _cut_out(operator: OperatorSnapshot, inside: Collection[int]) -> OperatorSnapshot:
    readers = tuple(each for each in operator.downstream if each in inside)
    return replace(
        operator,
        inputs=tuple(_entry(each, inside) for each in operator.inputs),
        downstream=readers,
        delivers=operator.delivers or len(readers) < len(operator.downstream),
    )


def _entry(each: InputSnapshot, inside: Collection[int]) -> InputSnapshot:
    if isinstance(each.source, str) or each.source in inside:
        return each
    return replace(each, source=f"operator {each.source}")
