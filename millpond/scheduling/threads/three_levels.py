"""The three-level scheme of the HMTS paper (section 4.2.2), of which GTS, OTS, direct
interoperability and HMTS are configurations.

Level 1 is asked of the runtime as a placement of queues; level 2 is a `PartitionThread` for each
partition; level 3 is the `ThreadScheduler`. A decision costs O(log n): only threads whose operators
changed are touched.

Partitions that users have made come with the plan, and with them their strategies, threads and
priorities: whatever of these changes, or which operators belong to them, is another plan, and takes
effect with the next decision. Partitions that stay keep their strategy and their place in time.
So they do when the loop gets another strategy of this family while data flows (`succeed`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from millpond.scheduling.decisions import Decision, PlaceQueues, RunOperator
from millpond.scheduling.snapshot import Observation, PlanSnapshot, Producer
from millpond.scheduling.strategy import Strategy, falls_behind
from millpond.scheduling.threads.configuration import Configuration, Partition
from millpond.scheduling.threads.partition_thread import PartitionThread, plan_of
from millpond.scheduling.threads.thread_scheduler import ThreadScheduler
from millpond.scheduling.threads.virtual_operators import elementary, is_placed, stream_edges

Configure: TypeAlias = Callable[[PlanSnapshot], Configuration]
"""What makes a configuration for a plan of elementary operators."""


class ThreeLevels:
    """Runs a plan as its configuration says.

    It waits for running operators before it changes where queues are, and otherwise never lets a
    processor idle while a thread has work.
    """

    simulator_only: str | None = None

    def __init__(self, configure: Configure) -> None:
        self._configure = configure
        self._configuration: Configuration | None = None
        self._threads: Sequence[PartitionThread] = ()
        self._scheduler = ThreadScheduler(())
        self._thread_of: Mapping[int, int] = {}
        self._running: set[int] = set()
        self._started_seconds: dict[int, float] = {}
        """When operators that run began."""
        self._unseen: int | None = None
        self._asked: frozenset[tuple[Producer, int]] | None = None
        self._wanted: PlaceQueues | None = None
        self._now_seconds = 0.0
        self._queue_bytes = 0.0

    @property
    def configuration(self) -> Configuration:
        """The configuration in force, with the queues that had to be added."""
        if self._configuration is None:
            return Configuration((), frozenset())
        return self._configuration

    @property
    def falls_behind(self) -> str:
        """Which partitions' strategies cannot keep up, and why."""
        named = zip(self._threads, self.threads_behind, strict=False)
        found = (f"{_told(each.partition)}: {reason}" for each, reason in named if reason)
        return "; ".join(found)

    @property
    def threads_behind(self) -> list[str]:
        """For each partition why its strategy cannot keep up; empty if it can."""
        return [falls_behind(each.strategy) for each in self._threads]

    def succeed(self, other: Strategy) -> None:
        """Go on with the threads of another one: partitions that stay keep their strategy and
        their place in time."""
        if isinstance(other, ThreeLevels):
            self._threads, self._scheduler = other._threads, other._scheduler
            self._started_seconds = other._started_seconds

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Divide the plan anew."""
        now = self._configuration = self._configured(elementary(plan))
        self._assign_threads(now.partitions)
        self._hand_out(plan)
        self._running.clear()
        self._unseen = None
        self._want_queues(plan, now)

    def observe(self, observation: Observation) -> None:
        """Pass the news on to the threads they concern."""
        self._now_seconds, self._queue_bytes = observation.now_seconds, observation.queue_bytes
        seen = {} if self._unseen is None else {self._unseen: None}
        self._unseen = None
        for state in observation.changed:
            operator = state.operator
            seen[operator] = None
            (self._running.add if state.running else self._running.discard)(operator)
            self._threads[self._thread_of[operator]].note(state)
        charged = {self._thread_of[each] for each in seen if self._is_charged(each)}
        for thread in dict.fromkeys(self._thread_of[each] for each in seen):
            self._line_up(thread, thread in charged)

    def decide(self) -> Decision | None:
        """The next step of the thread whose turn it is, or a new placement of queues."""
        if self._wanted is not None:
            if self._running:
                return None
            wanted, self._wanted = self._wanted, None
            self._asked = wanted.edges
            return wanted
        return self._next_step()

    def _configured(self, plan: PlanSnapshot) -> Configuration:
        """An empty plan has no threads yet; its first query brings them."""
        if not plan.operators:
            return Configuration((), frozenset())
        return self._configure(plan).beside_named(plan).completed(plan)

    def _assign_threads(self, partitions: Sequence[Partition]) -> None:
        """Have a thread for each partition, the one it had before if it is the same still."""
        threads = {each.partition.identity: place for place, each in enumerate(self._threads)}
        before = [threads.get(each.identity) for each in partitions]
        self._threads = [
            PartitionThread(each) if was is None else self._threads[was].renewed(each)
            for each, was in zip(partitions, before, strict=True)
        ]
        priorities = [each.priority for each in partitions]
        self._scheduler = self._scheduler.succeeded(priorities, before)

    def _next_step(self) -> RunOperator | None:
        declined: list[int] = []
        step: RunOperator | None = None
        while step is None and (thread := self._scheduler.next()) is not None:
            step = self._step_of(thread)
            if step is None:
                self._scheduler.suspend(thread)
                declined.append(thread)
        for thread in declined:
            self._scheduler.resume(thread)
        return step

    def _step_of(self, thread: int) -> RunOperator | None:
        decision = self._threads[thread].decide(self._now_seconds, self._queue_bytes)
        if not isinstance(decision, RunOperator):
            return None
        self._scheduler.start(thread)
        self._started_seconds.setdefault(decision.operator, self._now_seconds)
        self._unseen = decision.operator
        operator, max_tuples, slice_seconds, _, _, breakeven_tuples = decision
        weight = self._scheduler.priority(thread)
        turn = self._turn(slice_seconds)
        return RunOperator(operator, max_tuples, turn, thread, weight, breakeven_tuples)

    def _turn(self, slice_seconds: float | None) -> float | None:
        turn = self.configuration.turn_seconds
        if turn is None or len(self._threads) == 1:
            return slice_seconds
        return turn if slice_seconds is None else min(turn, slice_seconds)

    def _is_charged(self, operator: int) -> bool:
        """Charge the thread of an operator whose turn has ended; whether it had one."""
        if operator in self._running:
            self._started_seconds.setdefault(operator, self._now_seconds)
            return False
        started = self._started_seconds.pop(operator, None)
        if started is None:
            return False
        self._scheduler.charge(self._thread_of[operator], self._now_seconds - started)
        return True

    def _line_up(self, thread: int, is_charged: bool) -> None:
        """Let a thread wait for its next turn, if it may begin something."""
        mine, scheduler = self._threads[thread], self._scheduler
        if not mine.may_begin:
            scheduler.suspend(thread)
        elif is_charged or mine.is_running:
            scheduler.resume(thread)
        else:
            scheduler.wake(thread)

    def _hand_out(self, plan: PlanSnapshot) -> None:
        """Tell each thread its part of the plan; a virtual operator goes by its first member."""
        place = self.configuration.partition_of
        self._thread_of = {each.id: place[each.id] for each in plan.operators}
        for gone in self._started_seconds.keys() - self._thread_of.keys():
            del self._started_seconds[gone]
        parts: list[list[int]] = [[] for _ in self._threads]
        for operator, thread in self._thread_of.items():
            parts[thread].append(operator)
        for thread, operators in enumerate(parts):
            self._threads[thread].plan_changed(plan_of(plan, operators))

    def _want_queues(self, plan: PlanSnapshot, configuration: Configuration) -> None:
        """Ask for another placement once; a runtime may carry it out later, or in part."""
        queues = configuration.queues
        if queues is None or is_placed(plan, queues):
            self._wanted = self._asked = None
            return
        edges = queues | stream_edges(elementary(plan))
        if edges != self._asked:
            self._wanted = PlaceQueues(edges)


def _told(partition: Partition) -> str:
    """A partition as people know it: by its name, or by how much is in it."""
    count = len(partition.operators)
    return partition.name.strip("~") or f"a thread of {count} operator{'s'[: count - 1]}"
