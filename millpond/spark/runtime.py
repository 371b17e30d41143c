"""The Runtime on Spark: operators over DataFrames, as many steps at once as there are processors.

The loop prepares and commits steps, under one lock; threads execute them, without it. Whoever else
holds the lock (a push, a DROP) waits for a commit at most, never for a step.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from millpond.decisions import Decision, RunOperator
from millpond.errors import InputError, MillpondError, StateError
from millpond.planning.physical import Graph, OutputOperator
from millpond.snapshot import Observation, PlanSnapshot
from millpond.spark.batches import batch_rows
from millpond.spark.failures import in_words
from millpond.spark.frames import Frames
from millpond.spark.internals import is_alive
from millpond.spark.operators import start
from millpond.spark.operators.running import RunningOperator
from millpond.spark.picture import Picture, number
from millpond.spark.processors import Processors, was_cancelled
from millpond.spark.session import for_steps
from millpond.spark.statistics import Statistics, Tally
from millpond.spark.steps import Step
from millpond.spark.surroundings import Limits, Surroundings
from millpond.storage.backlog import Backlog
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction, Queue
from millpond.storage.state_cache import StateCache
from millpond.storage.store import Store

MOST_REPETITIONS = 3
"""A step during which Spark dies so often fails."""

STATE_BYTES = 2**30
"""How much state the driver holds in memory; the rest it reads again when a step needs it."""

AT_ONCE_SECONDS = 0.02
"""A step expected to be over by then is done by the loop itself: a thread would cost as much."""

AT_ONCE = "at once"
"""The tag of such a step, which starts no jobs."""

STATISTICS_SECONDS = 1.0
"""How often strategies are told the measured costs and selectivities."""


class Listener(Protocol):
    """Who is told what steps brought; every call but the last comes with the lock held."""

    def put_out(self, query: str, page: Page | None, until: int) -> None:
        """A query has put out a page, or nothing; it is complete up to a time."""
        ...

    def committed(self, identity: str, step: Step) -> None:
        """A step is about to be published."""
        ...

    def skipped(self, identity: str, until: int) -> None:
        """An operator has passed a time in which nothing happened."""
        ...

    def compacted(self, queue: str, change: Compaction) -> None:
        """Pages of a queue are about to be replaced by one."""
        ...

    def failed(self, identity: str, step: Step, error: Exception) -> None:
        """A step could not be done; ``error`` names the place and the thing."""
        ...

    def lost_spark(self) -> None:
        """Spark has died; the next step asks for another one."""
        ...

    def after_commit(self) -> None:
        """Steps were committed; the lock is not held."""
        ...


class SparkRuntime:
    """Runs a graph of operators on one Spark session, as a strategy decides."""

    def __init__(
        self,
        start_spark: Callable[[], SparkSession],
        graph: Graph,
        queues: dict[str, Queue],
        store: Store,
        listener: Listener,
        limits: Limits,
        lock: threading.RLock,
        spark_is_there: Callable[[], bool] = lambda: True,
    ) -> None:
        self.queues = queues
        self.limits = limits
        self.picture = Picture(graph)
        self.backlog = Backlog()
        """What waits in the queues."""
        self.tally = Tally()
        """All steps of this run."""
        self._graph = graph
        self._store = store
        self._listener = listener
        self._processors = Processors()
        self._frames = Frames(
            lambda: for_steps(start_spark()), store, self._processors.mark, spark_is_there
        )
        self._states = StateCache(STATE_BYTES)
        self._lock = lock
        self._changed_now = threading.Condition(lock)
        self._under_way: dict[str, deque[Step]] = {}
        self._finished: deque[tuple[str, Step]] = deque()
        self._is_woken = False
        self._version = 0
        self._changed: set[str] = set()
        self._shown: set[str] = set()
        """The operators of the plan that the strategy has seen."""
        self._told = time.monotonic()

    @property
    def running(self) -> dict[str, RunningOperator]:
        """The running operators."""
        return self.picture.running

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
            around = Surroundings(self.queues, self._frames, after, self.limits, self._states)
            running = start(identity, operator, around, cursor)
            self.running[identity] = running
            self.queues[identity] = Queue(
                identity, running.output_schema, self._store, operator.is_stream
            )
            self.statistics[identity] = Statistics()
            self._changed.add(identity)
            self._count_backlog(running.inputs)
        self._version += 1
        self.wake()

    def stop(self, identities: list[str]) -> None:
        """Stops operators and frees what they held; steps of theirs under way are for nothing."""
        for identity in identities:
            running = self.running.pop(identity)
            self._forget(identity)
            running.close()
            self.queues.pop(identity).close()
            self.backlog.forget(identity)
            del self.statistics[identity]
            self._changed.discard(identity)
        for queue in self.queues.values():
            queue.free()
            self.backlog.count(queue)
        self._version += 1

    def _count_backlog(self, queues: Iterable[str]) -> None:
        for name in queues:
            self.backlog.count(self.queues[name])

    def set_weight(self, query: str, weight: float) -> None:
        """Tells strategies how much a query matters."""
        self.picture.weights[query] = weight
        self._version += 1

    def retaining(self, queue: str) -> list[str]:
        """The queries that read pages of a queue again after they have passed them."""
        found: dict[str, None] = {}
        for identity in self._graph.readers(queue):
            mine = [r for q, r in self.running[identity].subscriptions if q.name == queue]
            if any(reader.comes_back for reader in mine):
                found |= dict.fromkeys(self.picture.queries(identity))
        return list(found)

    # -- what strategies see ---------------------------------------------------------------

    @property
    def plan_version(self) -> int:
        """Grows with every change of the graph, and now and then with what was measured."""
        return self._version

    def plan(self) -> PlanSnapshot:
        """The running operators with their measured averages."""
        with self._lock:
            self._shown = set(self.running)
            return self.picture.plan(self._version)

    def observe(self, complete: bool) -> Observation:
        """The operators whose queues changed."""
        with self._lock:
            self._pass_heartbeats()
            wanted = self.running.keys() if complete else self._changed
            shown = sorted(wanted & self._shown, key=number)
            states = self.picture.states(shown, self._under_way)
            self._changed -= self._shown  # the others came after the plan was last shown
            now = time.monotonic() - self.picture.began
        self._listener.after_commit()
        return Observation(now, states, float(self.backlog.bytes))

    # -- what strategies ask ---------------------------------------------------------------

    def has_free_processor(self) -> bool:
        """Whether fewer steps are under way than there are processors."""
        return sum(map(len, self._under_way.values())) < self.limits.processors

    def perform(self, decision: Decision) -> None:
        """Prepares one step of one operator, and has it executed."""
        if not isinstance(decision, RunOperator):
            raise StateError("queues on Spark stand behind stateful operators and cannot be moved")
        with self._lock:
            identity = f"op{decision.operator}"
            running = self.running.get(identity)
            if running is None:
                return  # dropped since it was observed
            self._changed.add(identity)
            is_busy = running.keeps_state and identity in self._under_way
            if is_busy or running.horizon <= running.claimed:
                return  # no longer as it was observed
            step = running.prepare(running.limited(running.horizon, self._batch(decision, running)))
            measured = self.statistics[identity]
            measured.input_bytes = running.row_bytes or measured.input_bytes
            self._under_way.setdefault(identity, deque()).append(step)
            if not running.is_over_within(AT_ONCE_SECONDS, step):
                self._submit(identity, step)
                return
            step.tag = AT_ONCE
        self._execute_at_once(identity, step)

    def _batch(self, decision: RunOperator, running: RunningOperator) -> int:
        """About how many rows a step is to read at most: for Spark a tuple is a batch."""
        waiting = min(running.waiting(running.claimed, running.horizon), self.limits.step_rows)
        return batch_rows(decision, running.line(waiting), self.limits.step_rows)

    def _execute_at_once(self, identity: str, step: Step) -> None:
        """Executes a step in the loop's thread; what fails is repeated where Spark may be asked."""
        try:
            outcome = step.running.execute(step)
        except Exception:  # noqa: BLE001 (said when it fails again)
            with self._lock:
                self._submit(identity, step)
            return
        except BaseException as interruption:
            with self._lock:
                step.error = interruption
            raise
        with self._lock:
            step.outcome = outcome
            self._finished.append((identity, step))
            self._commit_finished()

    def _submit(self, identity: str, step: Step) -> None:
        step.tag = self._processors.submit(lambda: self._execute(identity, step))

    def _execute(self, identity: str, step: Step) -> None:
        outcome, error, lost = None, None, None
        try:
            outcome = step.running.execute(step)
        except BaseException as raised:  # noqa: BLE001 (whatever it is, it is the step's failure)
            error, session = raised, self._processors.used
            lost = session if session is not None and not is_alive(session) else None
            if lost is None and not was_cancelled(error):
                step.offenders = self._offenders(step, error)
        with self._lock:
            step.outcome, step.error, step.lost = outcome, error, lost
            self._finished.append((identity, step))
            self._changed_now.notify_all()

    @staticmethod
    def _offenders(step: Step, error: BaseException) -> tuple[str, ...]:
        if not isinstance(error, InputError | PySparkException):
            return ()
        try:
            return step.running.offenders(step)
        except (MillpondError, PySparkException, Py4JError, OSError):
            return ()  # the failure itself is what matters

    def wait(self) -> bool:
        """Waits until a step has finished or something else changed; False if nothing can."""
        with self._lock:
            while not self._finished and not self._is_woken:
                if not self._under_way:
                    return False
                self._changed_now.wait()
            self._is_woken = False
            self._commit_finished()
        self._listener.after_commit()
        return True

    def wake(self) -> None:
        """Something has changed that whoever waits for steps is to see."""
        if self._under_way:
            self._is_woken = True
            self._changed_now.notify_all()

    # -- commit ----------------------------------------------------------------------------

    def _commit_finished(self) -> None:
        while self._finished:
            identity, step = self._finished.popleft()
            if step in self._under_way.get(identity, ()):
                self._commit_ready(identity)
            elif not step.is_over:
                step.running.abandon(step)  # its operator was dropped or failed meanwhile

    def _commit_ready(self, identity: str) -> None:
        """Commits the finished steps of an operator, in order of time."""
        steps = self._under_way.get(identity, deque())
        while steps and steps[0].is_finished:
            step = steps[0]
            if step.lost is not None and step.repetitions < MOST_REPETITIONS:
                self._repeat(identity, step)
                return
            steps.popleft()
            if step.error is not None:
                self._fail(identity, step)
                return
            self._commit(identity, step)
        if not steps:
            self._under_way.pop(identity, None)
        self._changed.add(identity)

    def _commit(self, identity: str, step: Step) -> None:
        running, queue, outcome = step.running, self.queues[identity], step.outcome
        if outcome is None:
            raise StateError("internal: a step without an outcome is committed")
        self._listener.committed(identity, step)
        if isinstance(running.operator, OutputOperator):
            self._listener.put_out(running.operator.query, outcome.output, step.reached)
        elif outcome.output is not None:
            queue.add(outcome.output)
        running.commit(step)
        queue.advance(step.reached)
        self.statistics[identity].record(step.rows, outcome)
        self.tally.record(step.rows, outcome)
        now = time.monotonic()
        if now - self._told > STATISTICS_SECONDS:
            self._told = now
            self._version += 1
        self._touch(identity)

    def _repeat(self, identity: str, step: Step) -> None:
        """Spark has died: it is started again, and the step executed again."""
        if self._frames.started is step.lost:
            self._frames.forget_session()
            self._listener.lost_spark()
        step.error = step.lost = None
        step.repetitions += 1
        self._submit(identity, step)

    def _fail(self, identity: str, step: Step) -> None:
        """Gives up what an operator has under way, and says so."""
        self._forget(identity)
        step.running.abandon(step)
        said = in_words(step.error, lambda: self.picture.place_of(identity))
        self._listener.failed(identity, step, said)

    def _forget(self, identity: str) -> None:
        """Gives up the steps of an operator; those that still run are cancelled and thrown away."""
        for step in self._under_way.pop(identity, ()):
            if step.is_finished:
                step.running.abandon(step)
            else:
                self._processors.cancel(self._frames.started, step.tag)

    def _touch(self, identity: str) -> None:
        for name in self.running[identity].inputs:
            queue = self.queues[name]
            compaction = queue.compaction()
            if compaction is not None:
                self._listener.compacted(name, compaction)
                queue.compact(compaction)
            queue.free()
        self._count_backlog([*self.running[identity].inputs, identity])
        self._changed |= {identity, *self._graph.readers(identity)}

    def arrived(self, queue: str) -> None:
        """Notes that a base queue has new rows or a new heartbeat."""
        self.backlog.count(self.queues[queue])
        self._changed |= set(self._graph.readers(queue)) & self.running.keys()

    # -- quiet inputs ----------------------------------------------------------------------

    def _pass_heartbeats(self) -> None:
        """Moves operators that have nothing to do, so that no reader waits for a quiet input.

        Only what changed is looked at, inputs before their readers: those have higher numbers.
        """
        waiting = list(map(number, self._changed))
        heapq.heapify(waiting)
        while waiting:
            identity = f"op{heapq.heappop(waiting)}"
            running = self.running[identity]
            until = running.horizon
            if (
                until > running.cursor
                and identity not in self._under_way
                and not running.has_work(until)
            ):
                self._skip(identity, running, until)
                for reader in map(number, self._graph.readers(identity)):
                    heapq.heappush(waiting, reader)

    def _skip(self, identity: str, running: RunningOperator, until: int) -> None:
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
        for name in running.inputs:
            self.queues[name].free()
        self._count_backlog([*running.inputs, identity])
        self._changed |= {identity, *self._graph.readers(identity)}

    # -- end -------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Throws away every step under way; what they were about to do is there to be done."""
        self._processors.cancel(self._frames.started)
        with self._lock:
            steps = [step for each in self._under_way.values() for step in each]
            for step in steps:
                if step.tag in (None, AT_ONCE) and not step.is_finished:
                    step.error = KeyboardInterrupt()  # the loop was interrupted before it began
            while not all(step.is_finished for step in steps):
                self._changed_now.wait()
            for identity in list(self._under_way):
                self._forget(identity)
                self._changed.add(identity)
            self._finished.clear()

    def close(self) -> None:
        """Ends the work; pages and states stay in the store."""
        self.cancel()
        self._processors.close()
        with self._lock:
            for running in self.running.values():
                running.plans.close()
            self.running.clear()
            self._changed.clear()
            self._version += 1
