"""The runtime of an engine: operators over data, as many steps at once as there are processors.

The loop prepares and commits steps of units (`units.py`), under one lock; threads execute them,
without it (`under_way.py`). Whoever else holds the lock (a push, a DROP) waits for a commit at
most, never for a step.
"""

import time
from collections.abc import Collection, Iterable, Mapping

from millpond.execution.cutting import Cutting
from millpond.execution.executor import Executors
from millpond.execution.graph_changes import GraphChanges
from millpond.execution.listener import Listener
from millpond.execution.partitions import Partitions
from millpond.execution.picture import Picture
from millpond.execution.preparing import Preparing
from millpond.execution.publishing import Publishing
from millpond.execution.regrouping import Regrouping
from millpond.execution.running_operators import RunningOperators
from millpond.execution.surroundings import Surroundings
from millpond.execution.telling import Telling
from millpond.execution.under_way import AT_ONCE, UnderWay
from millpond.execution.unit_steps import UnitStep
from millpond.identities import OperatorId, QueueId
from millpond.interruption import WholeLock
from millpond.planning.graph import Graph
from millpond.planning.placement import QueuePlacement
from millpond.scheduling.decisions import Decision, PlaceQueues, RunOperator
from millpond.scheduling.snapshot import Observation, PartitionSnapshot, PlanSnapshot
from millpond.storage.allocators import hold_back

AT_ONCE_SECONDS = 0.02
"""A step expected to be over by then is done by the loop itself: a thread would cost as much."""

CANCEL_SECONDS = 2.0
"""So long whoever interrupts the loop waits for steps that were cancelled: a function of the user
may sleep. One that ends later is thrown away then."""


class EngineRuntime:
    """Runs a graph of operators, as a strategy decides."""

    def __init__(
        self,
        graph: Graph,
        around: Surroundings,
        executors: Executors,
        listener: Listener,
        lock: WholeLock,
    ) -> None:
        self.limits, self.states, self.queues = around.limits, around.states, around.queues
        self.operators = RunningOperators(graph, around)
        self.running, self.units = self.operators.running, self.operators.units
        self.statistics, self.backlog = self.operators.statistics, self.operators.backlog
        self.picture = Picture(self.operators)
        self.telling = Telling()
        self.under_way = UnderWay(executors, lock)
        self.cutting = Cutting(self.operators)
        """The parts of operators that are operators themselves."""
        self.regrouping = Regrouping(self.operators, self.picture, self.under_way, self.telling)
        changes = GraphChanges(
            self.operators, listener, self.under_way, self.telling, self.cutting, self.regrouping
        )
        self.start, self.stop, self.renew = changes.start, changes.stop, changes.renew
        self.cut, self.merge, self.purge = changes.cut, changes.merge, changes.purge
        publishing = Publishing(
            self.operators,
            self.picture,
            listener,
            self.under_way,
            self.telling,
            self.cutting,
            self.regrouping,
        )
        self.replay, self.tally = publishing.replay, publishing.tally
        self._changes = changes
        self._publishing = publishing
        self._preparing = Preparing(self.operators, self.picture, self.under_way, self.cutting)
        self._executors = executors
        self._missed = around.missed
        self._listener = listener
        self._lock = lock

    # -- where steps run ---------------------------------------------------------------------

    @property
    def misses_executors(self) -> bool:
        """Whether steps would by now have been quicker had Spark been started for them."""
        return self._missed.is_worth_a_start

    def expect_executors(self) -> None:
        """Has the executors ready for steps to come."""
        self._executors.far.expect()

    # -- what it holds ---------------------------------------------------------------------

    def free(self) -> None:
        """Lets the pages go that no operator will read, and queues of before with all of theirs."""
        for queue in self.queues.values():
            queue.free()
        for identity in list(self.running):
            self.cutting.let_go(identity)
        self.operators.count(self.queues)

    def state_bytes(self) -> int:
        """How large the states of all operators are."""
        states = (running.state for running in self.running.values())
        return sum(state.bytes for state in states if state is not None)

    def hold_states(self, limit_bytes: int) -> None:
        """Has the driver remember so much of it, beside the store."""
        self.states.limit_bytes = limit_bytes
        hold_back(limit_bytes)

    @property
    def cached_bytes(self) -> int:
        """How much of the states the driver remembers."""
        return self.states.bytes

    def set_weight(self, query: str, weight: float) -> None:
        """Tells strategies how much a query matters."""
        self.picture.weights[query] = weight
        self.telling.version += 1

    def retaining(self, queue: QueueId) -> list[str]:
        """The queries that read pages of a queue again after they have passed them."""
        found: dict[str, None] = {}
        for running in self.operators.readers(queue):
            mine = [r for q, r in (*running.subscriptions, *running.past) if q.name == queue]
            if any(reader.comes_back for reader in mine):
                found |= dict.fromkeys(self.picture.queries(running.identity))
        return list(found)

    def arrived(self, queue: QueueId) -> None:
        """Notes that a base queue has new rows or a new heartbeat."""
        self.backlog.count(self.queues[queue])
        readers = set(self.operators.graph.readers(queue))
        self.telling.changed |= readers & self.running.keys()

    # -- what strategies see ---------------------------------------------------------------

    @property
    def plan_version(self) -> int:
        """Grows with every change of the graph, and now and then with what was measured."""
        return self.telling.version

    def plan(self) -> PlanSnapshot:
        """The virtual operators with their measured averages."""
        self.telling.begins()
        with self._lock:
            self._regroup()
            self.telling.shows(self.units)
            return self.picture.plan(self.telling.version)

    def observe(self, complete: bool) -> Observation:
        """The units whose queues changed."""
        telling = self.telling
        with self._lock:
            telling.changed |= telling.held & self.running.keys()
            self._regroup()
            self._publishing.pass_heartbeats()
            if self._changes.converge():
                self._publishing.pass_heartbeats()
            changed = self.running.keys() if complete else telling.changed
            units = {self.units.of[each] for each in changed}
            shown = sorted(filter(telling.is_shown, units), key=lambda unit: unit.identity.number)
            held = set(filter(self._preparing.is_held, shown))
            states = self.picture.states(shown, self.under_way.steps, held)
            seen = {each for unit in shown for each in unit.identities}
            telling.changed -= seen  # the others came after the plan was last shown
            telling.held = {each for unit in held for each in unit.identities}
            now = time.monotonic() - self.picture.began
        self._listener.after_commit()
        return Observation(now, states, float(self.backlog.bytes))

    # -- where queues are ------------------------------------------------------------------

    @property
    def placement(self) -> QueuePlacement:
        """Where queues are to be."""
        return self.regrouping.placement

    @placement.setter
    def placement(self, placement: QueuePlacement) -> None:
        with self._lock:
            self.regrouping.placement = placement

    @property
    def partitions(self) -> Partitions:
        """The partitions that users have made, and which operators are in them."""
        if self.regrouping.is_due:
            self.operators.partitions.assign()
        return self.operators.partitions

    def use_partitions(
        self, declared: Iterable[PartitionSnapshot], by_hand: Mapping[OperatorId, str]
    ) -> None:
        """Has these partitions, with the operators that were put in them by hand."""
        with self._lock:
            self.partitions.declared, self.partitions.by_hand = tuple(declared), by_hand
            self.regrouping.partitions_changed()

    def groups(self, among: Collection[OperatorId] | None = None) -> list[tuple[OperatorId, ...]]:
        """The operators that are to be virtual operators, upstream first in each.

        Or those ``among`` some that no other reads or is read by, with the shapes beside them.
        """
        return self.regrouping.groups(among)

    def move_queues(self) -> None:
        """Puts queues where they are wanted, as far as nobody concerned is at work."""
        with self._lock:
            self._regroup()

    def _regroup(self) -> None:
        self._changes.purge_what_rests()
        self._changes.cut_what_is_wanted()
        self.regrouping.regroup()

    def _place(self, decision: PlaceQueues) -> None:
        with self._lock:
            queues = frozenset(
                (OperatorId.numbered(one), OperatorId.numbered(other))
                for one, other in decision.edges
                if isinstance(one, int)
            )
            self.placement = self.placement.choose(self.operators.graph, queues)

    # -- what strategies ask ---------------------------------------------------------------

    def has_free_processor(self) -> bool:
        """Whether fewer steps are under way than there are processors."""
        self.telling.is_over()
        return self.under_way.count < self.limits.processors

    def perform(self, decision: Decision) -> None:
        """Prepares one step of one unit, and has it executed; or moves queues."""
        if not isinstance(decision, RunOperator):
            self._place(decision)
            return
        with self._lock:
            unit = self._preparing.unit_for(decision)
            if unit is None:
                return
            self.telling.changed |= unit.identities
            step = self._preparing.step(unit, decision)
            if step is None:
                return
            if not self._is_for_this_thread(step):
                self.picture.turns.interrupted()
                self.under_way.submit(step)
                return
            step.tag = AT_ONCE
        self._execute_at_once(step)

    def _is_for_this_thread(self, step: UnitStep) -> bool:
        if self.limits.at_once:
            return step.is_here
        return step.seconds_here(self.statistics) <= AT_ONCE_SECONDS

    def _execute_at_once(self, step: UnitStep) -> None:
        """Executes and commits a step in the loop's thread."""
        if not self.under_way.execute_at_once(step):
            return
        with self._lock:
            step.is_executed = True
            self.under_way.finished.append(step)
            self._publishing.commit_finished()
            self.picture.turns.over(step.seconds)
        self._publishing.raise_trouble()

    def wait(self) -> bool:
        """Waits until a step has finished or something else changed; False if nothing can."""
        with self._lock:
            self.picture.turns.interrupted()
            if self.telling.is_outdated:
                return True  # there are others than the strategy has decided on
            if not self.under_way.wait():
                return False
            self._publishing.commit_finished()
        self._listener.after_commit()
        self._publishing.raise_trouble()
        return True

    def wake(self) -> None:
        """Wakes the thread that waits for steps: something has changed."""
        self.under_way.wake()

    # -- end -------------------------------------------------------------------------------

    def cancel(self, until: float | None = None) -> list[UnitStep]:
        """Throws away every step under way; what they were about to do is there to be done.

        Those that are still executed at a moment of the clock go when they end.
        """
        until = time.monotonic() + CANCEL_SECONDS if until is None else until
        self.under_way.cancel_jobs()
        with self._lock:
            for unit in self.under_way.forget_all():
                self.telling.changed |= unit.identities
            return self.under_way.wait_for_orphans(until)

    def close(self, until: float) -> list[str]:
        """Ends the work; pages and states stay in the store. Whose steps go on after a moment."""
        left = self.cancel(until)
        self.under_way.close(until)
        with self._lock:
            members = (each for step in left for each in step.unit.identities)
            queries = {query for each in members for query in self.picture.queries(each)}
            for running in self.running.values():
                self._executors.far.let_go(running)
            self._executors.far.close()
            self.running.clear()
            self.telling.changed.clear()
            self.telling.version += 1
            return sorted(queries)
