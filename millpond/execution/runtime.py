"""The runtime of an engine: operators over data, as many steps at once as there are processors.

The loop prepares and commits steps of units (`units.py`), under one lock; threads execute them,
without it. Whoever else holds the lock (a push, a DROP) waits for a commit at most, never for a
step.
"""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from millpond.background import BackgroundThreads
from millpond.cql.needed_functions import functions_in
from millpond.errors import StateError, StoreError
from millpond.execution.batches import batch_rows
from millpond.execution.converging import Converging
from millpond.execution.cutting import Cutting
from millpond.execution.driver import DriverExecutor
from millpond.execution.executor import Executors, FarExecutor
from millpond.execution.failures import in_words, named_if_ended
from millpond.execution.operators import start
from millpond.execution.operators.running import OperatorStep, RunningOperator
from millpond.execution.picture import Picture
from millpond.execution.statistics import Statistics, Tally
from millpond.execution.steps import EXECUTORS, Outcome
from millpond.execution.surroundings import Limits, Surroundings
from millpond.execution.units import Unit, Units, UnitStep
from millpond.identities import name_of, number_of, owner_of
from millpond.interruption import WholeLock
from millpond.kernels.aggregate import last_keys_in
from millpond.kernels.living import Living
from millpond.planning.convergence import Merge, settle_again
from millpond.planning.parts import Cut
from millpond.planning.physical import Graph, OutputOperator
from millpond.planning.placement import OpenUnits, QueuePlacement
from millpond.scheduling.decisions import Decision, PlaceQueues, RunOperator
from millpond.scheduling.snapshot import Observation, PlanSnapshot
from millpond.scheduling.threads.virtual_operators import virtual_operators, without_cycles
from millpond.storage.allocators import hold_back
from millpond.storage.backlog import Backlog
from millpond.storage.members import Members
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction, Queue
from millpond.storage.state_cache import StateCache
from millpond.storage.store import Store

MOST_PROCESSORS = 64
"""More steps than this never run at once."""

MOST_REPETITIONS = 3
"""A step during which Spark dies so often fails."""

STATE_BYTES = 2**29
"""How much state the driver holds in memory unless it is told; the rest it reads again when a step
needs it."""

WORK_BYTES = 96
"""What a step has in memory beside each row it reads: its hash, its places in several orders."""

LEAST_STEP_ROWS = 1_000
"""A step may read so many rows, however large they are."""

AT_ONCE_SECONDS = 0.02
"""A step expected to be over by then is done by the loop itself: a thread would cost as much."""

AT_ONCE = "at once"
"""The tag of such a step, which starts no jobs."""

CANCEL_SECONDS = 2.0
"""So long whoever interrupts the loop waits for steps that were cancelled: a function of the user
may sleep. One that ends later is thrown away then."""

QUICK_SECONDS = 0.25
"""What takes the executors less is done in one job with others that read the same pages: most of it
is the job itself. What takes longer holds nobody up."""

STATISTICS_SECONDS, TELLING_SHARE = 1.0, 0.005
"""How often strategies are told the measured costs and selectivities: but seldom enough for them to
take no more than such a part of the time to learn it."""


class Listener(Protocol):
    """The part that is told what steps brought; all calls but the last come with the lock held."""

    def put_out(self, query: str, page: Page | None, until: int) -> None:
        """A query has put out a page, or nothing; it is complete up to a time."""
        ...

    def to_commit(self, identity: str, step: OperatorStep) -> None:
        """A step could be published; what that needs is read before anything has happened."""
        ...

    def committed(self, identity: str, step: OperatorStep) -> None:
        """A step is about to be published."""
        ...

    def skipped(self, identity: str, until: int) -> None:
        """An operator has passed a time in which nothing happened."""
        ...

    def purged(self, identity: str, cursor: int, state: Any) -> None:
        """An operator that has come to a time is about to forget what it keeps for queries that
        are gone."""
        ...

    def compacted(self, queue: str, change: Compaction) -> None:
        """Pages of a queue are about to be replaced by one."""
        ...

    def failed(self, identity: str, step: OperatorStep, error: Exception) -> None:
        """A step could not be done; ``error`` names the place and the thing."""
        ...

    def cut(self, cut: Cut) -> None:
        """A part of an operator is about to be one itself, or to be a part again."""
        ...

    def merged(self, merge: Merge) -> None:
        """The readers of one queue read another one now."""
        ...

    def lost_spark(self) -> None:
        """Spark has died; the next step asks for another one."""
        ...

    def after_commit(self) -> None:
        """Steps were committed; the lock is not held."""
        ...


class EngineRuntime:
    """Runs a graph of operators over real data, as a strategy decides."""

    def __init__(
        self,
        graph: Graph,
        queues: dict[str, Queue],
        store: Store,
        listener: Listener,
        limits: Limits,
        lock: WholeLock,
        far: FarExecutor,
        groups: Mapping[str, Members],
    ) -> None:
        self.queues = queues
        self.limits = limits
        self.picture = Picture(graph, queues)
        self.backlog = Backlog()
        """What waits in the queues."""
        self.tally = Tally()
        """All steps of this run."""
        self.cutting = Cutting(graph, queues, store, self.picture, self.backlog)
        """The parts of operators that are operators themselves."""
        self.converging = Converging(graph, queues, self.picture)
        """Operators of late-comers that can become one with others."""
        self._graph = graph
        self._store = store
        self._listener = listener
        self._executors = Executors(DriverExecutor(limits, far), far)
        self._threads = BackgroundThreads(MOST_PROCESSORS, "millpond-step")
        self._states = StateCache(STATE_BYTES)
        self._around = Surroundings(queues, store, limits, self._states, far, groups)
        self._lock = lock
        self._changed_now = lock.condition()
        self._placement = QueuePlacement()
        self._open_units = OpenUnits()
        self._quick: set[str] = set()
        """The operators that the executors were seen to do quickly: a job does several."""
        self._is_regrouped = True
        """Whether the units that are wanted are those of the present graph and placement."""
        self._under_way: dict[str, deque[UnitStep]] = {}
        """The steps of each unit, by its name."""
        self._orphans: list[UnitStep] = []
        """Steps nobody wants any more that are still executed."""
        self._finished: deque[UnitStep] = deque()
        self._is_woken = False
        self._version = 0
        self._changed: set[str] = set()
        self._held: set[str] = set()
        """Those that were shown while they were to begin nothing: what held them may be over."""
        self._purges: dict[str, tuple[Living, tuple[bool, ...]]] = {}
        """The operators that are to free what they keep for queries that are gone."""
        self._shown: set[str] = set()
        """The units of the plan that the strategy has seen."""
        self._shown_version = 0
        self._trouble: StoreError | None = None
        """Why the store could not be written, until somebody was told."""
        self._told = time.monotonic()
        self._telling_since: float | None = None
        self._telling_seconds = 0.0
        """How long it took the strategy to learn the plan, and what it was made of."""

    @property
    def running(self) -> dict[str, RunningOperator]:
        """The running operators."""
        return self.picture.running

    @property
    def units(self) -> Units:
        """The virtual operators, of one operator or of several."""
        return self.picture.units

    @property
    def statistics(self) -> dict[str, Statistics]:
        """What was measured of each operator."""
        return self.picture.statistics

    # -- the graph -------------------------------------------------------------------------

    def start(
        self, identities: Iterable[str], since: dict[int, dict[str, int]], cursor: int
    ) -> None:
        """Starts operators that are new in the graph, those that others read first.

        ``since`` tells for each epoch after which times its operators read the streams.
        """
        for identity in identities:
            operator = self._graph.operators[identity]
            after = since.get(self._graph.epochs[identity], {})
            running = start(identity, operator, replace(self._around, since=after), cursor)
            self.running[identity] = running
            self.units.add(running)
            self.queues[identity] = Queue(
                identity, running.output_schema, self._store, operator.is_stream
            )
            self.statistics[identity] = Statistics()
            self._changed.add(identity)
            self._count_backlog(running.inputs)
        self._graph_changed()
        self.wake()

    def renew(self, identities: Iterable[str]) -> None:
        """Gives up the steps of operators that are under way: what they are to do has changed."""
        for unit in {self.units.of[each] for each in identities if each in self.running}:
            self._forget(unit)
            self._changed |= unit.identities
        self.wake()

    def _graph_changed(self) -> None:
        self._version += 1
        self._is_regrouped = False

    def stop(self, identities: list[str]) -> None:
        """Stops operators and frees what they held; steps of theirs under way are for nothing.

        What others in the same units were about to do is there to be done again.
        """
        for unit in {self.units.of[identity] for identity in identities}:
            self._forget(unit)
        read: set[str] = set()
        for identity in identities:
            running = self.running.pop(identity)
            read |= {queue.name for queue, _ in (*running.subscriptions, *running.past)}
            self.units.remove(identity)
            running.close()
            self.queues.pop(identity).close()
            self.backlog.forget(identity)
            del self.statistics[identity]
            self._quick.discard(identity)
            self._changed.discard(identity)
        self.cutting.forget()
        for name in read & self.queues.keys():
            self.queues[name].free()
            self.backlog.count(self.queues[name])
        self.units.to_change |= read & self.running.keys()
        self._graph_changed()

    def free(self) -> None:
        """Lets the pages go that no operator will read, and queues of before with all of theirs."""
        for queue in self.queues.values():
            queue.free()
        for identity in list(self.running):
            self.cutting.let_go(identity)
        self._count_backlog(self.queues)

    def _count_backlog(self, queues: Iterable[str]) -> None:
        for name in queues:
            self.backlog.count(self.queues[name])

    def state_bytes(self) -> int:
        """How large the states of all operators are."""
        states = (running.state for running in self.running.values())
        return sum(state.bytes for state in states if state is not None)

    def hold_states(self, limit_bytes: int) -> None:
        """Has the driver remember so much of it, beside the store."""
        self._states.limit_bytes = limit_bytes
        hold_back(limit_bytes)

    @property
    def cached_bytes(self) -> int:
        """How much of the states the driver remembers."""
        return self._states.bytes

    def purge(self, output: str, living: Living) -> None:
        """Has the operators of a group free what they keep for queries of it that are gone.

        Each does when it is not at work.
        """
        for identity, inputs in self._graph.of_group(output).items():
            if self.running[identity].state is not None:
                self._purges[identity] = living, inputs
        self._purge()

    def _purge(self) -> None:
        for identity, purge in list(self._purges.items()):
            running = self.running.get(identity)
            if running is not None and self._is_at_work(self.units.of[identity]):
                continue
            if running is not None and running.state is not None:
                try:
                    version = running.purged(*purge)
                except StoreError:  # it can wait until the store can be written again
                    continue
                reference = running.state.reference(version)
                if reference != running.state.present():
                    self._listener.purged(identity, running.cursor, reference)
                    running.state.take(version)
            del self._purges[identity]

    def set_weight(self, query: str, weight: float) -> None:
        """Tells strategies how much a query matters."""
        self.picture.weights[query] = weight
        self._version += 1

    def retaining(self, queue: str) -> list[str]:
        """The queries that read pages of a queue again after they have passed them."""
        found: dict[str, None] = {}
        for identity in self._graph.readers(queue):
            running = self.running[identity]
            mine = [r for q, r in (*running.subscriptions, *running.past) if q.name == queue]
            if any(reader.comes_back for reader in mine):
                found |= dict.fromkeys(self.picture.queries(identity))
        return list(found)

    # -- what strategies see ---------------------------------------------------------------

    @property
    def plan_version(self) -> int:
        """Grows with every change of the graph, and now and then with what was measured."""
        return self._version

    def plan(self) -> PlanSnapshot:
        """The virtual operators with their measured averages."""
        self._telling_since = time.monotonic()
        with self._lock:
            self._regroup()
            self._shown = {unit.identity for unit in self.units}
            self._shown_version = self._version
            return self.picture.plan(self._version)

    def observe(self, complete: bool) -> Observation:
        """The units whose queues changed."""
        with self._lock:
            self._changed |= self._held & self.running.keys()
            self._regroup()
            self._pass_heartbeats()
            self._converge()
            changed = self.running.keys() if complete else self._changed
            units = {self.units.of[each] for each in changed}
            shown = sorted(
                (unit for unit in units if unit.identity in self._shown),
                key=lambda unit: number_of(unit.identity),
            )
            held = {unit for unit in shown if self._is_held(unit)}
            states = self.picture.states(shown, self._under_way, held)
            seen = {each for unit in shown for each in unit.identities}
            self._changed -= seen  # the others came after the plan was last shown
            self._held = {each for unit in held for each in unit.identities}
            now = time.monotonic() - self.picture.began
        self._listener.after_commit()
        return Observation(now, states, float(self.backlog.bytes))

    # -- where queues are ------------------------------------------------------------------

    @property
    def placement(self) -> QueuePlacement:
        """Where queues are to be."""
        return self._placement

    @placement.setter
    def placement(self, placement: QueuePlacement) -> None:
        with self._lock:
            concerned = self._placement.differing(placement) & self.running.keys()
            if bool(placement.chosen) != bool(self._placement.chosen):
                concerned |= self.running.keys()  # shapes are one or apart, new ones too
            self.units.to_change |= concerned
            self._placement = placement
            self._is_regrouped = False
            self.wake()

    def groups(self, among: Collection[str] | None = None) -> list[tuple[str, ...]]:
        """The operators that are to be virtual operators, upstream first in each.

        Or those ``among`` some that no other reads or is read by, with the shapes beside them.
        """
        plan = self.picture.shape(self.running if among is None else among)
        edges = self._placement.queues(self._graph, among)
        queues = frozenset((number_of(one), number_of(other)) for one, other in edges)
        found = virtual_operators(plan, without_cycles(plan, queues)).values()
        named = [tuple(map(name_of, sorted(group))) for group in found]
        open_units = self._open_units_beside(among)
        return self._placement.beside(self._graph, named, open_units, self._quick.__contains__)

    def _open_units_beside(self, among: Collection[str] | None) -> OpenUnits:
        """The units of shapes that those ``among`` some may be put to."""
        if among is None:
            return OpenUnits()
        wants, regrouped = self.units.wants, set(among)
        self._open_units.is_there = lambda unit: wants(unit) and regrouped.isdisjoint(unit)
        return self._open_units

    def move_queues(self) -> None:
        """Puts queues where they are wanted, as far as nobody concerned is at work."""
        with self._lock:
            self._regroup()

    def _regroup(self) -> None:
        """Has the units be as the placement says, once those concerned are not at work."""
        self._purge()
        if not self._is_regrouped:
            self.cutting.want(self._placement.by_hand)
        while (cut := self.cutting.due(self._is_at_work)) is not None:
            self._listener.cut(cut)
            self.cut(cut)
        if not self._is_regrouped:
            self._is_regrouped = True
            groups = self.groups(self._near(self.units.to_change))
            self.units.want(tuple(self.running[each] for each in group) for group in groups)
        if self.units.change(self._is_at_work):
            self._version += 1
            self._changed |= self.running.keys()

    def _near(self, identities: Iterable[str]) -> set[str]:
        """Operators with all that they read, that reads them and that is or is to be a unit with
        them, however far from them."""
        found = set(identities)
        waiting = list(found)
        while waiting:
            each = waiting.pop()
            read = (name for name in self.running[each].inputs if name in self.running)
            near = {*self._graph.readers(each), *read, *self.units.near(each)} - found
            found |= near
            waiting += near
        return found

    def cut(self, cut: Cut) -> None:
        """Cuts a part off an operator, or fuses it again; nobody concerned is at work."""
        self.cutting.do(cut)
        self._changed &= self.running.keys()
        self._quick &= self.running.keys()
        self._changed |= {each for each in self.running if owner_of(each) == owner_of(cut.part)}
        for queue in self.queues.values():
            self.backlog.count(queue)
        self._graph_changed()

    # -- operators that become one ---------------------------------------------------------

    def _converge(self) -> None:
        """Has operators that hold the same be one, as far as nobody concerned is at work."""
        waiting = self.converging.waiting & self.running.keys()
        self._changed |= waiting
        gone: list[str] | None = None
        while gone != []:  # those that read what has become one may be the same now
            gone = []
            for merge in self.converging.due(set(self._changed), self._is_at_work):
                gone += self._merge(merge)
                self._listener.merged(merge)
            if gone:
                self._stop_merged(gone)
        if waiting:
            self._pass_heartbeats()

    def merge(self, merge: Merge) -> None:
        """Has the readers of one queue read another one; the operator that wrote it goes."""
        self._stop_merged(self._merge(merge))

    def _merge(self, merge: Merge) -> list[str]:
        """The same without an end of whoever wrote it: what is to be stopped, a queue at least."""
        readers = self._graph.redirect(merge.queue, merge.into)
        for each in readers:
            settle_again(self._graph, each, merge.at)
            self.running[each].redefine(self._graph.operators[each])
            self.units.take_apart(each)
            self._count_backlog(self.running[each].inputs)
        self._changed |= {merge.into} & self.running.keys() | set(readers)
        if merge.queue in self._graph.operators:
            return self._graph.remove(merge.queue)
        return [merge.queue]

    def _stop_merged(self, names: list[str]) -> None:
        self.stop([name for name in names if name in self.running])

    def _is_at_work(self, unit: Unit) -> bool:
        return unit.identity in self._under_way or self._is_orphaned(unit)

    def _is_held(self, unit: Unit) -> bool:
        is_to_change = self.units.is_held(unit) or self.cutting.holds(unit)
        return is_to_change or self._is_orphaned(unit)

    def _is_orphaned(self, unit: Unit) -> bool:
        """Whether a step that nobody wants any more is still executed with some of its members."""
        return any(unit.identities & step.unit.identities for step in self._orphans)

    # -- what strategies ask ---------------------------------------------------------------

    def has_free_processor(self) -> bool:
        """Whether fewer steps are under way than there are processors."""
        if self._telling_since is not None:
            self._telling_seconds = time.monotonic() - self._telling_since
            self._telling_since = None
        return sum(map(len, self._under_way.values())) < self.limits.processors

    def perform(self, decision: Decision) -> None:
        """Prepares one step of one unit, and has it executed; or moves queues."""
        if not isinstance(decision, RunOperator):
            self._place(decision)
            return
        with self._lock:
            identity = name_of(decision.operator)
            unit = self.units.of.get(identity)
            if unit is None or unit.identity != identity:
                return  # dropped or joined with others since it was observed
            self._changed |= unit.identities
            is_busy = unit.keeps_state and identity in self._under_way
            if is_busy or unit.horizon <= unit.claimed or self._is_held(unit):
                return  # no longer as it was observed
            step = unit.prepare(unit.limited(self._batch(decision, unit)))
            step.thread, step.weight = decision.thread, decision.weight
            for member in unit.members:
                measured = self.statistics[member.identity]
                measured.input_bytes = self._row_bytes(member, unit) or measured.input_bytes
            self._under_way.setdefault(identity, deque()).append(step)
            if step.seconds_here(self.statistics) > AT_ONCE_SECONDS:
                self.picture.turns.interrupted()
                self._submit(step)
                return
            step.tag = AT_ONCE
        self._execute_at_once(step)

    def _row_bytes(self, member: RunningOperator, unit: Unit) -> float:
        """The size of the rows a member reads: what is in its queues, or others hand on to it."""
        made = [self.statistics[each] for each in member.inputs if each in unit.identities]
        sizes = [each.output_bytes for each in made if each.tally.rows_out]
        return member.row_bytes or (sum(sizes) / len(sizes) if sizes else 0.0)

    def _batch(self, decision: RunOperator, unit: Unit) -> int:
        """About how many rows a step is to read at most: for Spark a tuple is a batch."""
        most = min(self.limits.step_rows, self._fitting(unit))
        waiting = unit.waiting(unit.horizon)
        known = unit.experience(min(waiting, most)).beside(self.picture.turns.seconds)
        return batch_rows(decision, known, waiting, most)

    def _fitting(self, unit: Unit) -> int:
        """How many rows a step may read for them, and what it makes of them, to take no more than
        its share of memory."""
        size = max(member.row_bytes for member in unit.members) + WORK_BYTES
        size += sum(self.statistics[member.identity].made_bytes for member in unit.members)
        return max(LEAST_STEP_ROWS, int(self.limits.step_bytes / size))

    def _place(self, decision: PlaceQueues) -> None:
        with self._lock:
            queues = frozenset(
                (name_of(one), name_of(other))
                for one, other in decision.edges
                if isinstance(one, int)
            )
            self.placement = self._placement.choose(self._graph, queues)

    def _execute_at_once(self, step: UnitStep) -> None:
        """Executes a step in the loop's thread; what fails is repeated where Spark may be asked."""
        try:
            step.execute_at_once(self._executors)
        except Exception:  # noqa: BLE001 (said when it fails again)
            with self._lock:
                step.discard()
                self._submit(step)
            return
        except BaseException as interruption:
            with self._lock:
                step.error = interruption
            raise
        with self._lock:
            step.is_executed = True
            self._finished.append(step)
            self._commit_finished()
            self.picture.turns.over(step.seconds)
        self._raise_trouble()

    def _submit(self, step: UnitStep) -> None:
        tag = step.tag = self._executors.far.new_tag()
        self._threads.submit(lambda: self._execute(step, tag))

    def _execute(self, step: UnitStep, tag: str) -> None:
        error, lost, far = None, None, self._executors.far
        with far.working(tag, step.thread, step.weight):
            try:
                step.execute(self._executors)
            except BaseException as raised:  # noqa: BLE001 (whatever it is, it is the step's)
                error, lost = raised, far.lost
        with self._lock:
            step.error, step.lost, step.is_executed = error, lost, True
            self._finished.append(step)
            self._changed_now.notify_all()

    def wait(self) -> bool:
        """Waits until a step has finished or something else changed; False if nothing can."""
        with self._lock:
            self.picture.turns.interrupted()
            if self._shown_version != self._version:
                return True  # there are others than the strategy has decided on
            while not self._finished and not self._is_woken:
                if not self._under_way and not self._orphans:
                    return False
                self._changed_now.wait()
            self._is_woken = False
            self._commit_finished()
        self._listener.after_commit()
        self._raise_trouble()
        return True

    def wake(self) -> None:
        """Wakes the thread that waits for steps: something has changed."""
        if self._under_way:
            self._is_woken = True
            self._changed_now.notify_all()

    # -- commit ----------------------------------------------------------------------------

    def _commit_finished(self) -> None:
        while self._finished:
            step = self._finished.popleft()
            identity = step.unit.identity
            if step in self._under_way.get(identity, ()):
                self._commit_ready(identity)
            else:  # its operator was dropped or failed meanwhile
                step.throw_away()
                if step in self._orphans:
                    self._orphans.remove(step)
                    self._changed |= step.unit.identities & self.running.keys()

    def _commit_ready(self, identity: str) -> None:
        """Commits the finished steps of a unit, in order of time."""
        steps = self._under_way.get(identity, deque())
        while steps and steps[0].is_finished:
            step = steps[0]
            if step.lost is not None and step.repetitions < MOST_REPETITIONS:
                self._repeat(step)
                return
            self._changed |= step.unit.identities
            steps.popleft()
            if not self._committed(step):
                return
        if not steps:
            self._under_way.pop(identity, None)

    def _committed(self, step: UnitStep) -> bool:
        """Publishes what the members of a unit have done; whether all of them have done it."""
        error = step.error
        trouble = error if isinstance(error, StoreError) else self._cannot_publish(step)
        if step.is_outdated or trouble is not None:
            step.unclaim()
            step.throw_away()
        if trouble is not None:
            self._trouble = self._store.moves_on(trouble)
            self._forget(step.unit)  # what came after it must not be published before it
            return False
        if step.is_outdated:
            return True
        step.give_up_unless_whole()
        step.is_over = True
        for each in step.steps:
            if each.outcome is not None:
                self._commit(each)
        failed = [each for each in step.steps if each.error is not None]
        if not failed:
            return True
        self._forget(step.unit)
        for each in step.steps:
            if each.outcome is None:
                each.running.unclaim(each)
                each.unpin()
        for each in failed:
            self._fail(each)
        return False

    def _cannot_publish(self, step: UnitStep) -> StoreError | None:
        """Why what was put out cannot be read, where that is needed to publish it."""
        try:
            for each in step.steps:
                if each.outcome is not None and each.error is None:
                    self._listener.to_commit(each.running.identity, each)
        except StoreError as error:
            return error
        return None

    def _raise_trouble(self) -> None:
        """Says why a step could not be written, or read: it is there to be done again, as its
        queries have done nothing wrong."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble

    def _commit(self, step: OperatorStep) -> None:
        running, outcome = step.running, step.outcome
        identity = running.identity
        if outcome is None:
            raise StateError("internal: a step without an outcome is committed")
        if step.is_idle:
            self._skip(running, step.reached)
            running.commit(step)
            return
        queue = self.queues[identity]
        self._listener.committed(identity, step)
        if isinstance(running.operator, OutputOperator):
            self._listener.put_out(running.operator.query, step.published, step.reached)
        elif step.published is not None:
            queue.add(step.published)
        queue.passed(outcome.rows - (step.published.rows if step.published is not None else 0))
        running.commit(step)
        queue.advance(step.reached)
        if outcome.output is not None and outcome.output is not step.published:
            outcome.output.free()
        self.statistics[identity].record(step.rows, outcome)
        self._notice_if_quick(identity, outcome)
        self.tally.record(step.rows, self.statistics[identity].input_bytes, outcome)
        now = time.monotonic()
        if now - self._told > max(STATISTICS_SECONDS, self._telling_seconds / TELLING_SHARE):
            self._told = now
            self._version += 1
        self._touch(identity)

    def _notice_if_quick(self, identity: str, outcome: Outcome) -> None:
        """An operator that the executors do quickly, but for the first time, may join others."""
        steps = self.statistics[identity].tally.executor_steps
        is_far = outcome.place == EXECUTORS and steps > 1
        if is_far and outcome.seconds < QUICK_SECONDS and identity not in self._quick:
            self._quick.add(identity)
            self.units.to_change.add(identity)
            self._is_regrouped = False

    def _repeat(self, step: UnitStep) -> None:
        """Spark has died: it is started again, and the step executed again."""
        if self._executors.far.forget(step.lost):
            self._listener.lost_spark()
        step.discard()
        step.repetitions += 1
        self._submit(step)

    def _fail(self, step: OperatorStep) -> None:
        """Says that an operator could not do its step, and why."""
        identity = step.running.identity
        if identity in self.running:  # else it has gone with one that failed before it
            called = functions_in(step.running.operator)
            error = named_if_ended(step.error, called)
            said = in_words(error, lambda: self.picture.place_of(identity))
            self._listener.failed(identity, step, said)
        if identity in self.running:  # it goes on for others of its group
            step.running.forgive(last_keys_in(step.error))
            self._changed.add(identity)
            self.wake()

    def _forget(self, unit: Unit) -> None:
        """Gives up the steps of a unit; those that still run are cancelled and thrown away."""
        for step in self._under_way.pop(unit.identity, ()):
            step.unclaim()
            if step.is_finished:
                step.throw_away()
            else:
                self._orphans.append(step)
                self._executors.far.cancel(step.tag)

    def _touch(self, identity: str) -> None:
        past = {queue.name for queue, _ in self.running[identity].past}
        for name in (*self.running[identity].inputs, *past):
            queue = self.queues[name]
            self._compact(queue)
            queue.free()
        self._count_backlog([*self.running[identity].inputs, *past, identity])
        if past:
            self.cutting.let_go(identity)
        self._changed |= {identity, *self._graph.readers(identity)}

    def _compact(self, queue: Queue) -> None:
        """Has fewer pages hold a queue's content; where the store fails that can wait."""
        compaction = None
        try:
            compaction = queue.compaction()
            if compaction is not None:
                self._listener.compacted(queue.name, compaction)
        except StoreError:
            if compaction is not None and compaction.page is not None:
                compaction.page.free()
            return
        if compaction is not None:
            queue.compact(compaction)

    def arrived(self, queue: str) -> None:
        """Notes that a base queue has new rows or a new heartbeat."""
        self.backlog.count(self.queues[queue])
        self._changed |= set(self._graph.readers(queue)) & self.running.keys()

    # -- quiet inputs ----------------------------------------------------------------------

    def _pass_heartbeats(self) -> None:
        """Moves operators that have nothing to do, so that no reader waits for a quiet input.

        Only what changed is looked at, inputs before their readers: those have higher numbers.
        """
        waiting = list({number_of(self.units.of[each].identity) for each in self._changed})
        heapq.heapify(waiting)
        while waiting:
            unit = self.units.of[name_of(heapq.heappop(waiting))]
            until = unit.horizon
            if until > unit.cursor and not self._is_at_work(unit) and not unit.has_work(until):
                for member in unit.members:
                    if member.cursor < until:
                        self._skip(member, until)
                for reader in self._readers(unit):
                    heapq.heappush(waiting, number_of(reader.identity))

    def _readers(self, unit: Unit) -> set[Unit]:
        """The units that read what a unit's members put out."""
        readers = (each for member in unit.members for each in self._graph.readers(member.identity))
        return {self.units.of[each] for each in readers} - {unit}

    def _skip(self, running: RunningOperator, until: int) -> None:
        identity = running.identity
        self._listener.skipped(identity, until)
        running.skip(until)
        if isinstance(running.operator, OutputOperator):
            self._listener.put_out(running.operator.query, None, until)
        self.queues[identity].advance(until)
        self._touch(identity)

    # -- after a restart -------------------------------------------------------------------

    def replay(self, identity: str, until: int, page: Page | None, state: Any) -> None:
        """Publishes a step of an earlier run again, or a time in which nothing happened."""
        running, queue = self.running[identity], self.queues[identity]
        if isinstance(running.operator, OutputOperator):
            self._listener.put_out(running.operator.query, page, until)
        elif page is not None:
            queue.add(page)
        if state is not None and running.state is not None:
            running.state.restore(state)
        running.skip(until)
        queue.advance(until)
        for name in (*running.inputs, *(queue.name for queue, _ in running.past)):
            self.queues[name].free()
        self._count_backlog([*running.inputs, identity])
        self.cutting.let_go(identity)
        self._changed |= {identity, *self._graph.readers(identity)}

    # -- end -------------------------------------------------------------------------------

    def cancel(self, until: float | None = None) -> list[UnitStep]:
        """Throws away every step under way; what they were about to do is there to be done.

        Those that are still executed at a moment of the clock go when they end.
        """
        until = time.monotonic() + CANCEL_SECONDS if until is None else until
        self._executors.far.cancel()
        with self._lock:
            steps = [step for each in self._under_way.values() for step in each]
            for step in steps:
                if step.tag in (None, AT_ONCE) and not step.is_finished:
                    step.error = KeyboardInterrupt()  # the loop was interrupted before it began
            for unit in {step.unit for step in steps}:
                self._forget(unit)
                self._changed |= unit.identities
            self._changed_now.wait_for(  # who is interrupted here leaves them to the next turn
                lambda: all(step.is_finished for step in self._orphans),
                max(0.0, until - time.monotonic()),
            )
            for step in self._orphans:
                if step.is_finished:
                    step.throw_away()
            self._orphans = [step for step in self._orphans if not step.is_finished]
            self._finished.clear()
            return list(self._orphans)

    def close(self, until: float) -> list[str]:
        """Ends the work; pages and states stay in the store. Whose steps go on after a moment."""
        left = self.cancel(until)
        self._threads.close(until)
        with self._lock:
            members = (each for step in left for each in step.unit.identities)
            queries = {query for each in members for query in self.picture.queries(each)}
            for running in self.running.values():
                self._executors.far.let_go(running)
            self.running.clear()
            self._changed.clear()
            self._version += 1
            return sorted(queries)
