"""The three-level scheme of the HMTS paper (section 4.2.2), of which GTS, OTS, direct
interoperability and HMTS are configurations.

Level 1 is asked of the runtime as a placement of queues; level 2 is a `PartitionThread` for each
partition; level 3 is the `ThreadScheduler`. A decision costs O(log n): only threads whose operators
changed are touched. `reconfigure` changes from one configuration to another while data flows; so
does giving the loop another strategy of this family.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from millpond.scheduling.decisions import Decision, PlaceQueues, RunOperator
from millpond.scheduling.snapshot import Observation, OperatorState, PlanSnapshot, Producer
from millpond.scheduling.threads.configuration import Configuration
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
        self._plan: PlanSnapshot | None = None
        self._configuration: Configuration | None = None
        self._threads: Sequence[PartitionThread] = ()
        self._scheduler = ThreadScheduler(())
        self._thread_of: Mapping[int, int] = {}
        self._states: dict[int, OperatorState] = {}
        self._running: set[int] = set()
        self._started_seconds: dict[int, float] = {}
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

    def set_priority(self, thread: int, priority: float) -> None:
        """Change the share of processor time of one thread."""
        self._scheduler.set_priority(thread, priority)

    def reconfigure(self, configure: Configure) -> None:
        """Go over to another configuration, from the next decision on."""
        self._configure = configure
        if self._plan is not None:
            states = list(self._states.values())
            self.plan_changed(self._plan)
            self.observe(Observation(self._now_seconds, states, self._queue_bytes))

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Divide the plan; threads whose partition stays keep their place in time."""
        self._plan = plan
        before = self._configuration
        now = self._configuration = self._configured(elementary(plan))
        if before is None or now.partitions != before.partitions:
            self._threads = [PartitionThread(each) for each in now.partitions]
            self._scheduler = ThreadScheduler([each.priority for each in now.partitions])
            self._started_seconds.clear()
        self._hand_out(plan)
        self._states.clear()
        self._running.clear()
        self._unseen = None
        self._want_queues(plan, now)

    def observe(self, observation: Observation) -> None:
        """Pass the news on to the threads they concern."""
        self._now_seconds, self._queue_bytes = observation.now_seconds, observation.queue_bytes
        touched: dict[int, None] = {}
        if self._unseen is not None:
            touched[self._thread_of[self._unseen]] = None
            self._unseen = None
        for state in observation.changed:
            self._states[state.operator] = state
            (self._running.add if state.running else self._running.discard)(state.operator)
            thread = self._thread_of[state.operator]
            self._threads[thread].note(state)
            touched[thread] = None
        for thread in touched:
            self._charge(thread)

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
        return self._configure(plan).completed(plan)

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
        self._started_seconds[thread] = self._now_seconds
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

    def _charge(self, thread: int) -> None:
        """Charge a thread whose turn has ended, and let it wait for the next one if it has work."""
        mine, scheduler = self._threads[thread], self._scheduler
        if mine.is_running:
            self._started_seconds.setdefault(thread, self._now_seconds)
            scheduler.start(thread)
            return
        started = self._started_seconds.pop(thread, None)
        if started is not None:
            scheduler.charge(thread, self._now_seconds - started)
        if not mine.has_work:
            scheduler.suspend(thread)
        elif started is not None:
            scheduler.resume(thread)
        else:
            scheduler.wake(thread)

    def _hand_out(self, plan: PlanSnapshot) -> None:
        """Tell each thread its part of the plan; a virtual operator goes by its first member."""
        place = self.configuration.partition_of
        self._thread_of = {each.id: place[each.id] for each in plan.operators}
        parts: list[list[int]] = [[] for _ in self._threads]
        for operator, thread in self._thread_of.items():
            parts[thread].append(operator)
        for thread, operators in enumerate(parts):
            self._threads[thread].plan_changed(plan_of(plan, operators))
            self._scheduler.suspend(thread)

    def _want_queues(self, plan: PlanSnapshot, configuration: Configuration) -> None:
        """Ask for another placement once; a runtime may carry it out later, or in part."""
        edges = configuration.queues | stream_edges(elementary(plan))
        if is_placed(plan, configuration.queues):
            self._wanted = self._asked = None
        elif edges != self._asked:
            self._wanted = PlaceQueues(edges)
