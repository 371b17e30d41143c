"""The façade: one engine with its catalog, inputs, running queries and results.

Everything here wires; nothing here decides. Spark starts with the first step, so that checking and
explaining need no Java. Every method may be called from any thread and from callbacks: whatever
changes the engine holds its lock, and nobody holds it while a step is executed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.arguments import as_session, as_text, as_ticks, shown_value
from millpond.catalog import Catalog, QueryEntry, warned
from millpond.cql.check.punctuations import read_pattern
from millpond.cql.text.parameters import with_parameters
from millpond.cql.text.split import split_statements
from millpond.delivery.deliveries import Deliveries, no_bad_rows, nothing_left_out
from millpond.delivery.latency import Latencies
from millpond.delivery.results import Callback
from millpond.durability.checkpoint import checkpoint
from millpond.durability.commits import Commits
from millpond.durability.recovery import recover
from millpond.entities import Entities
from millpond.entities.catalogued import change_memory
from millpond.entities.controlled import Controlled
from millpond.entities.whole import entities
from millpond.errors import CqlWarning, InvariantError, Position, StateError, StoreError
from millpond.facade.feeding import feed
from millpond.facade.function_registry import FunctionGiven, register, register_all
from millpond.facade.operation import Operation
from millpond.facade.result_stream import ResultStream
from millpond.facade.room import Room
from millpond.facade.shedding import Watch
from millpond.facade.source_pages import read_page
from millpond.facade.statements import Statements
from millpond.failures import Failure
from millpond.functions.aggregate import Aggregate
from millpond.insight.display import Plan, Query, shown
from millpond.insight.measured_plan import measured_plan
from millpond.insight.quality import Quality, quality_of
from millpond.insight.query_plans import STAGES, plan_text
from millpond.insight.validation.whole import complaints
from millpond.intake.arrivals import Arrivals, Intake
from millpond.intake.budget import Budget, cached_bytes, state_bytes
from millpond.intake.inputs import Inputs, Report
from millpond.intake.promises import advance, end, promise_on_demand
from millpond.intake.punctuations import POLICIES
from millpond.intake.pushing import push, push_changes
from millpond.intake.reading import Allowance, ReadLimits
from millpond.interruption import WholeLock, uninterrupted
from millpond.planning.graph import Graph
from millpond.scheduling.runtime import SchedulingLoop
from millpond.scheduling.strategy import Strategy
from millpond.scheduling.strategy_text import DIRECT
from millpond.scheduling.threads.unthreaded import Unthreaded
from millpond.schema import Type
from millpond.settings import AUTO, DISK, OFF, Settings
from millpond.sharing.ground import Ground
from millpond.sharing.queries import Queries
from millpond.spark.lazy import LazySpark
from millpond.storage.journal import Journal
from millpond.storage.objects.objects import is_address
from millpond.storage.queues import Queue
from millpond.storage.statement_memory import StatementMemory
from millpond.storage.store import Store
from millpond.storage.transitions import Transition
from millpond.tracing.following import Following
from millpond.tracing.telling import check_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millpond.execution.runtime import EngineRuntime


CLOSE_SECONDS = 10.0
"""So long ``close`` waits for what is at work."""

logger = logging.getLogger("millpond")


class Engine:
    """Register continuous queries, feed streams and relations, read exact results.

    >>> with Engine() as engine:                                              # doctest: +SKIP
    ...     _ = engine.execute("CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;"
    ...                        "CREATE QUERY big AS SELECT a FROM S WHERE a > 1;")
    ...     engine.push("S", [{"t": 1, "a": 1}, {"t": 2, "a": 5}])
    ...     engine.finish()
    ...     engine.results("big").to_pylist()
    [{'ts': 2, 'weight': 1, 'a': 5}]
    """

    def __init__(
        self,
        settings: Settings | dict[str, Any] | None = None,
        spark: SparkSession | None = None,
        directory: Path | str | None = None,
        keep_results: bool = True,
        store: Path | str | None = None,
        functions: Iterable[FunctionGiven] = (),
    ) -> None:
        if isinstance(settings, dict):
            settings = Settings().with_options(settings)
        settings = settings or Settings()
        if store is not None:
            settings = settings.with_option("store", str(store))
        check_packages(settings)
        catalog = Catalog(settings.tick_microseconds, time_zone=settings.time_zone)
        catalog.function_processes.are_wanted = settings.functions == "process"
        register_all(catalog, functions)
        self.ground = Ground(
            WholeLock(),
            settings,
            catalog,
            LazySpark(as_session(spark)),
            Path(directory or "."),
            Budget(settings.budget_bytes),
        )
        self.catalog, self.lock = self.ground.catalog, self.ground.lock
        self._following: Following | None = None
        self._followed: list[Following] = []  # which others have come after, and tell what is left
        self._make_parts(keep_results)
        self._open_store(settings.store)
        self._follow(settings)
        self.operation = Operation(
            self.lock,
            self._turn,
            self._would_idle,
            self.arrivals,
            lambda: self.deliveries.is_all_written,
        )
        self._loop: SchedulingLoop | None = None
        self.queries.partitioning.strategy()
        self._recover()

    def _make_parts(self, keeps_results: bool) -> None:
        """Makes what there is anew when nothing is there yet, or nothing any more."""
        ground = self.ground
        ground.deliveries = Deliveries(self.lock, lambda: ground.spark, self._wake)
        self.queries = Queries(ground, keeps_results)
        self._commits = Commits(self.queries, self._tidy, self._wake_loop)
        self._commits.follower = self._following
        self.queries.listener = self._commits
        self.statements = self.queries.statements = Statements(self.queries, self, self.show)
        self._room = Room(self.queries, lambda: self.operation)
        self.queries.partitioning.present = lambda: self.present_strategy
        self._watch = Watch(self.queries)

    def _open_store(self, location: str) -> None:
        settings = self.settings
        parent = None
        if settings.working_directory != AUTO and is_address(location):
            parent = Path(settings.working_directory).expanduser().absolute()
        store = Store(location, parent, forces=settings.durability == DISK)
        try:
            journal = Journal(store)
        except BaseException:
            store.close()
            raise
        self._use_store(store, journal)

    def _use_store(self, store: Store, journal: Journal) -> None:
        ground = self.ground
        ground.store, ground.journal, ground.memory = store, journal, StatementMemory()
        ground.given = ground.settings
        ground.deliveries.use(store, journal)
        ground.inputs = Inputs(
            self.catalog,
            store,
            journal,
            self._arrived,
            ground.deliveries.keeper,
            ground.deliveries,
        )
        ground.inputs.settings = lambda: ground.settings
        ground.inputs.stopping = self.queries.relying.stopped_by
        ground.inputs.contradicted = self.queries.closings.stopped_by
        ground.inputs.missed_by = self.queries.relying.missed_by
        ground.inputs.done = self._come
        self.arrivals = Arrivals(
            ground.inputs,
            self.graph,
            self.lock,
            lambda reading: read_page(ground, reading, self.expect_spark),
            self._wake,
            self._room.is_there,
        )
        ground.deliveries.stop_reading = self.arrivals.stop
        self._keep_to_budget()

    def _recover(self) -> None:
        """Goes on where an earlier run with this store has ended."""
        if not self.journal.is_durable:
            return
        try:
            recover(self.queries)
            self.shorten_log()
            self.validate_if_set()
        except BaseException:
            self.journal.abandon()
            self.close()
            raise

    def move_to(self, location: str) -> None:
        """Has everything in another store; there is nothing yet, also if it cannot be opened."""
        store, journal = self.store, self.journal
        before, catalog = (self.settings, self.queries.keeps_results), self.catalog
        tick, zone = catalog.tick_microseconds, catalog.time_zone
        self._open_store(location)
        self.operation.arrivals = self.arrivals
        try:
            if self.journal.is_durable:
                recover(self.queries)
                self.shorten_log()
        except BaseException:
            self._leave_store()
            catalog.tick_microseconds, catalog.time_zone = tick, zone
            self.ground.settings, keeps = before
            self._begin_anew(store, journal, keeps)
            raise
        journal.close()
        store.close()

    def _leave_store(self) -> None:
        """Lets go of a store that could not be opened, as it is."""
        if self.queries.started is not None:
            self.queries.started.close(time.monotonic() + CLOSE_SECONDS)
        self.journal.abandon()
        self.arrivals.close()
        self.deliveries.close()
        self.store.close()

    def _begin_anew(self, store: Store, journal: Journal, keeps_results: bool) -> None:
        """There is nothing again, as before a store was opened."""
        for key in self.catalog.entries:
            self.ground.claims.release(key)
        self.catalog.entries.clear()
        self._make_parts(keeps_results)
        self._use_store(store, journal)
        self.operation.arrivals = self.arrivals

    # -- what it stands on, which may be another one later ---------------------------------

    @property
    def settings(self) -> Settings:
        """The settings as they were given; ``settings_now`` has the present tick."""
        return self.ground.settings

    @property
    def settings_now(self) -> Settings:
        """The settings with the tick that SET may have changed."""
        return self.ground.settings_now

    @property
    def store(self) -> Store:
        """Where pages and states lie."""
        return self.ground.store

    @property
    def journal(self) -> Journal:
        """What goes into the log of the store."""
        return self.ground.journal

    @property
    def memory(self) -> StatementMemory:
        """The statements that were executed."""
        return self.ground.memory

    @property
    def inputs(self) -> Inputs:
        """All streams and relations."""
        return self.ground.inputs

    @property
    def deliveries(self) -> Deliveries:
        """What queries have put out."""
        return self.ground.deliveries

    # -- statements ------------------------------------------------------------------------

    def execute(
        self,
        script: str,
        name: str = "<script>",
        parameters: Mapping[str, Any] | None = None,
    ) -> list[Any]:
        """Runs the statements of a script; the answers of SHOW and EXPLAIN, in order, and of DROP
        CONSTRAINT where rows that it has freed are missing for a while.

        ``parameters`` are the values of ``:name`` in it.
        """
        script = with_parameters(as_text(script, "a script"), parameters or {})
        answers = [self.statements.execute(*each) for each in split_statements(script)]
        self._carry_through()
        return [answer for answer in answers if answer is not None]

    def warnings(self) -> list[CqlWarning]:
        """What views and queries say and is hardly meant, with the place and the way out."""
        with self.lock:
            return [each for entry in warned(self.catalog) for each in entry.warnings]

    def execute_anew(self, text: str) -> Any:
        """Executes one statement, whether or not an earlier run with this store has."""
        return self.statements.execute(as_text(text, "a statement"), Position(1, 1), is_anew=True)

    def drop(self, name: str) -> None:
        """Drops a query, view, stream or relation that nobody uses."""
        self.statements.drop(as_text(name, "a name"))

    def restart(self, name: str) -> None:
        """Runs a query that has failed again, from now on."""
        self.statements.restart(name)

    def failures(self) -> list[Failure]:
        """The queries that have failed, each with its reason."""
        with self.lock:
            return list(self.queries.failures)

    def use(self, settings: Settings) -> None:
        """Goes on with other settings."""
        before, self.ground.settings = self.settings, settings
        if (before.traces, before.trace_share) != (settings.traces, settings.trace_share):
            self._follow(settings)
        self.catalog.function_processes.are_wanted = settings.functions == "process"
        self._keep_to_budget()
        self.journal.forces = settings.durability == DISK
        self.queries.use(settings)

    def _follow(self, settings: Settings) -> None:
        """Has some arrivals be followed to where they are delivered, or none any more."""
        before, self._following = self._following, None
        if settings.traces != OFF:
            self._following = Following(settings)
        self._commits.follower = self._following
        if before is not None:
            before.end()
            self._followed = [each for each in (*self._followed, before) if not each.is_over]

    def traced(self, headers: Mapping[str, str]) -> AbstractContextManager[object]:
        """What is pushed inside belongs to the trace that the headers of a request name, if any."""
        return nullcontext() if self._following is None else self._following.within(headers)

    def use_strategy(self, strategy: Strategy) -> None:
        """Has another strategy decide from now on."""
        if self._loop is not None:
            self._loop.strategy = strategy
        if self.has_runtime:
            self.runtime.placement = self.runtime.placement.undecided()

    def use_partitions(self) -> None:
        """Has the partitions be as they are declared."""
        self.queries.partitioning.tell()
        if self._loop is not None:
            strategy = self.queries.partitioning.strategy()
            if isinstance(strategy, Unthreaded) != isinstance(self._loop.strategy, Unthreaded):
                self.use_strategy(strategy)

    def _keep_to_budget(self) -> None:
        limit = self.ground.budget.limit_bytes = self.settings.budget_bytes
        self.store.cached_bytes = cached_bytes(limit)
        if self.has_runtime:
            self.runtime.hold_states(state_bytes(limit))
            buckets = self.runtime.limits.buckets
            self.store.worker_state_bytes = state_bytes(limit, buckets)

    # -- functions of the user -------------------------------------------------------------

    def register_function(
        self,
        name: str,
        function: Callable[..., Any] | Aggregate,
        parameters: Sequence[Type | str],
        result: Type | str,
    ) -> None:
        """Makes a function of Arrow arrays one of CQL; it must be deterministic, row by row.

        It gets an array for each parameter, NULLs included, and gives one of the same length. An
        ``Aggregate`` becomes an aggregate function, whose parts get the values of one row.
        """
        with self.lock:
            self.ground.check_open()
            before = dict(self.catalog.functions)
            replaces = register(self.catalog, name, function, parameters, result)
            try:
                if replaces and self.journal.is_durable:
                    self.compact_log()  # so that it speaks of the other one no more
            except BaseException:
                self.catalog.functions.clear()
                self.catalog.functions.update(before)
                raise

    # -- input -----------------------------------------------------------------------------

    def push(self, name: str, rows: Any, key: str | None = None) -> int:
        """Adds tuples to a stream, or rows to a relation at the current time; says how many tuples
        came too late, which are put aside.

        ``rows`` are dicts or tuples in schema order, an Arrow table, a data frame of pandas or
        polars, or whatever else hands itself over as an Arrow stream. A
        ``key`` is remembered: what is pushed to it again with the same one is passed over.
        """
        self._room.wait_for(as_text(name, "a name"))
        with self.lock:
            self.ground.check_open()
            if key is not None and not self.inputs.is_new(name, key):
                return 0
            before = self.inputs.late_count(name)
            with self.inputs.ahead() as coming:
                push(self.inputs, name, rows, coming)
                if key is not None:
                    self.inputs.remember(name, key, coming)
            self._watch.look()  # a step may be under way, which takes long
            late = self.inputs.late_count(name) - before
        self._carry_through()
        return late

    async def feed(self, name: str, rows: AsyncIterable[Any] | asyncio.Queue[Any]) -> int:
        """Pushes what an asynchronous iterable or a queue has, as it comes, until its end (of a
        queue None); says how many tuples came too late."""
        return await feed(self, name, rows)

    def push_changes(self, name: str, changes: Iterable[tuple[Any, str, Any]]) -> None:
        """Adds ``(ts, '+' or '-', row)`` to a relation; ts None means the beginning."""
        self._room.wait_for(as_text(name, "a name"))
        with self.lock:
            self.ground.check_open()
            with self.inputs.ahead() as coming:
                push_changes(self.inputs, name, changes, coming)
        self._carry_through()

    def advance(self, name: str, timestamp: Any) -> None:
        """A heartbeat: promises that nothing at or before the time will follow."""
        with self.lock:
            self.ground.check_open()
            with self.inputs.ahead() as coming:
                advance(self.inputs, as_text(name, "a name"), timestamp, coming)
        self._carry_through()

    def punctuate(
        self,
        stream: str,
        where: str,
        parameters: Mapping[str, Any] | None = None,
        on_violation: str = "stop",
    ) -> None:
        """A punctuation: promises that no tuple that comes later matches ``where``, such as
        ``order_id <= 7 AND region IN ('a', 'b')``.

        A tuple that does is put aside; ``on_violation``: those that rely on it ``stop``, or it is
        only a matter of ``count``.
        """
        where = with_parameters(as_text(where, "a pattern"), parameters or {})
        if on_violation not in POLICIES:
            told = shown_value(on_violation)
            raise StateError(f"on_violation is {' or '.join(POLICIES)}, not {told}")
        with self.lock:
            self.ground.check_open()
            entry = self.ground.stream_entry(stream)
            pattern = read_pattern(where, entry)
            with self.inputs.ahead() as coming:
                self.inputs.punctuate(entry.name, pattern, on_violation, coming)

    def late(self, stream: str, last_rows: int | None = None) -> pa.Table:
        """The tuples of a stream that came too late, as they came: all that are kept, or so many.

        No more is read for the last rows than they are.
        """
        with self.lock:
            return self.inputs.late(as_text(stream, "a name"), last_rows)

    def bad_rows(self, stream: str, last_rows: int | None = None) -> pa.Table:
        """What the source of a stream with ON BAD ROW SKIP or INTO could not read: when it came,
        its offset, the reason and the raw row.

        All that is kept, or so many of the last rows.
        """
        log = self.deliveries.bad_rows(self.ground.stream_entry(stream).name)
        if log is None:
            return no_bad_rows()
        if last_rows is None:
            return self.results(log.entry.name)
        return self.deliveries.last_results(log.entry.name, last_rows)

    def bad_row_count(self, stream: str) -> int:
        """How many rows of a stream's source could not be read and were put aside so far."""
        log = self.deliveries.bad_rows(self.ground.stream_entry(stream).name)
        return 0 if log is None else log.rows

    def violating(self, stream: str, last_rows: int | None = None) -> pa.Table:
        """The tuples of a stream that broke a constraint, as they came: all that are kept, or so
        many; the last columns, ``violates`` and ``missed_by``, name the constraint and the queries
        that went on without the tuple."""
        with self.lock:
            return self.inputs.violating(as_text(stream, "a name"), last_rows)

    def _come(self, transition: Transition) -> None:
        if self._following is not None:
            self._following.comes(transition)
        self.queries.apply([transition])

    def _arrived(self, queue: Queue) -> None:
        runtime = self.queries.started
        if self._misses_executors(queue.last_page_rows):
            self.expect_spark()
        if runtime is not None:
            runtime.arrived(queue.name)
        self.arrivals.has_news = True
        self._wake()

    def _misses_executors(self, rows: int) -> bool:
        """Whether Spark is worth its start, now that a page of so many rows has come."""
        most, runtime = self.settings.driver_rows, self.queries.started
        if not most or self.settings.place_by == "rows":
            return rows > most
        return runtime is not None and runtime.misses_executors

    def _wake_loop(self) -> None:
        self.operation.wake()

    def _wake(self) -> None:
        """Something has come: the loop is to look at it."""
        self._wake_loop()
        if self.queries.started is not None:
            self.queries.started.wake()

    def expect_spark(self) -> None:
        """Starts Spark in the background: steps are to come that need it."""
        if self.queries.outputs:
            self.ground.lazy_spark.start_ahead(self.settings, self.store)
            if self.queries.started is not None:
                self.queries.started.expect_executors()

    # -- running ---------------------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started now if it was not yet."""
        return self.ground.spark

    @property
    def graph(self) -> Graph:
        """The operators of all queries."""
        return self.queries.graph

    @property
    def has_runtime(self) -> bool:
        """Whether operators run already, or were taken up from a store."""
        return self.queries.has_runtime

    @property
    def runtime(self) -> EngineRuntime:
        """The running operators."""
        return self.queries.runtime

    def run_until_idle(self) -> None:
        """Works until every query is as far as its inputs allow."""
        self.ground.check_open()
        self.operation.run_until_idle()
        self._raise_failures()

    def run_sources(
        self,
        report: Report | None = None,
        seconds: float | None = None,
        rows: int | None = None,
    ) -> None:
        """Reads the sources of running queries, always the one that is furthest behind, and works.

        It ends with the sources, or after so many ``seconds`` or ``rows`` of each source; a later
        call reads on. While the engine works in the background, that is where it is done; with a
        limit sources are not read there any more until ``run_sources`` is called without one.
        """
        self.ground.check_open()
        limits = ReadLimits(seconds, rows)
        intake = self._intake(report, limits)
        self.operation.run(lambda: self.operation.work(intake), reads_on=limits == ReadLimits())
        self._raise_failures()

    def finish(
        self,
        report: Report | None = None,
        seconds: float | None = None,
        rows: int | None = None,
    ) -> None:
        """Reads sources as ``run_sources`` does, ends all that is read, and works to the end."""
        self.ground.check_open()
        intake = self._intake(report, ReadLimits(seconds, rows))
        self.operation.run(lambda: self._finish(intake))
        self._raise_failures()

    def start(self) -> None:
        """Works in the background from now on, as pushes come and sources deliver."""
        self.ground.check_open()
        self.operation.start()

    def stop(self, drain: bool = True) -> None:
        """Ends the work in the background; ``drain``: only once all that has come is done."""
        self.operation.stop(drain)

    def _finish(self, intake: Intake) -> None:
        self.operation.work(intake)
        with self.lock:
            if self.ground.is_closed:
                return
            end(self.inputs, self.graph)
        self.operation.work(Intake())

    def _intake(self, report: Report | None, limits: ReadLimits) -> Intake:
        """What a run takes; one that goes on with an earlier one counts the rows of both."""
        taken, self.inputs.taken_before = self.inputs.taken_before, {}
        return Intake(Allowance(limits, taken), report)

    def _turn(self, intake: Intake, is_idle: bool) -> bool:
        """Takes what has come, and has the loop take a turn; whether there was anything to do."""
        with self.lock:
            has_news = self.arrivals.deliver(intake, is_idle)
            if self.ground.is_closed:
                return False
            wants_room = self._room.is_wanted()
            if not wants_room:
                self._prepare_turn(intake, has_news or is_idle)
        if wants_room:
            self._room.make()
            with self.lock:
                if self.ground.is_closed:
                    return False
                self._prepare_turn(intake, has_news or is_idle)
        if self.deliveries.has_more:  # bad rows; results are handed on after each commit
            self.deliveries.hand_on(self.queries.fail)
        if not self.queries.outputs:
            return has_news
        loop = self._loop = self._loop or SchedulingLoop(
            self.runtime, self.queries.partitioning.strategy()
        )
        with uninterrupted:
            try:
                return uninterrupted.call(loop.turn) or has_news
            except BaseException as error:
                self._loop = None  # its strategy may have learnt half: another one is told all
                self.catalog.function_processes.interrupt()
                self.runtime.cancel()
                if self.ground.is_closed and isinstance(error, LookupError):
                    return False  # another thread has closed it, and its operators are gone
                raise

    def _carry_through(self) -> None:
        """In the mode that has no scheduler: this thread works on what it has brought."""
        if self.settings.mode == DIRECT:
            self.operation.carry_through()

    def _prepare_turn(self, intake: Intake, promises: bool) -> None:
        if promises:
            self._promise(intake)
        self._watch.look()
        self.journal.flush()

    def _promise(self, intake: Intake) -> bool:
        """Has quiet inputs and the clock promise what is asked of them; whether any did."""
        if not self.queries.outputs or not intake.promises:
            return False
        self.arrivals.has_news = False
        promise_on_demand(self.inputs, self.settings)
        has_moved, self.arrivals.has_news = self.arrivals.has_news, False
        return has_moved

    def _would_idle(self, intake: Intake) -> bool:
        """Whether a turn that knows that nothing is left to do would find nothing either."""
        with self.lock:
            if self.ground.is_closed or self.arrivals.has_news or not self.arrivals.is_over(intake):
                return False
            return not self._promise(intake)

    def _raise_failures(self) -> None:
        if self.queries.failures.are_told:
            return
        with self.lock:
            self.queries.failures.raise_untold()

    def compact_log(self) -> None:
        """Has the log of the store begin anew, with all there is."""
        with self.lock:
            self.runtime.free()
            self.journal.flush()
            if self.journal.is_durable:
                self.journal.begin_anew(checkpoint(self.queries))

    def shorten_log(self) -> None:
        """Does so if the log is long; if there is no room for another one, the old one goes on."""
        if not self.journal.is_long:
            return
        try:
            self.compact_log()
        except StoreError as error:
            logger.warning("the log of the store cannot begin anew: %s", error)
            self.journal.goes_on()

    def _tidy(self) -> None:
        """Looks after the log, and whether all parts agree, after a commit."""
        self.shorten_log()
        self.validate_if_set()

    # -- results ---------------------------------------------------------------------------

    def results(self, query: str, form: str = "arrow") -> Any:
        """What a query has put out so far: ``arrow``, ``pandas``, ``spark`` or ``rows``.

        Columns are ts (in ticks; NULL at the beginning), weight, and the query's own.
        """
        return self.deliveries.results(query, form)

    def left_out(self, query: str, last_rows: int | None = None) -> pa.Table:
        """What a query with ON ERROR SKIP has left out: when, how often, why and which row.

        All that is kept, or so many of the last rows; no more is read for those than they are.
        """
        entry = self.query_entry(query)
        aside = self.deliveries.aside(entry.name)
        if aside is None:
            return nothing_left_out()
        if last_rows is None:
            return self.results(aside.entry.name)
        return self.deliveries.last_results(aside.entry.name, last_rows)

    def subscribe(self, query: str, callback: Callback) -> None:
        """Calls back with every table of new results, complete instants in order of time."""
        if not callable(callback):
            raise StateError(f"subscribe needs a function of one table, not {callback!r}")
        with self.lock:
            self.ground.check_open()
            self.deliveries.of(query).subscribe(callback)

    @property
    def is_closed(self) -> bool:
        """Whether the engine is closed."""
        return self.ground.is_closed

    def unsubscribe(self, query: str, callback: Callback) -> None:
        """Calls a subscriber no more; what was being handed to it may still come."""
        with self.lock:
            self.deliveries.of(query).unsubscribe(callback)

    def stream(self, query: str, most_tables: int = 64) -> ResultStream:
        """The tables of new results as an asynchronous iterator: ``async for table in …``.

        The engine works in the background (``start()``). Who reads slowly holds it back once so
        many tables wait; the end comes with ``close()`` of the iterator or of the engine.
        """
        return ResultStream(self, query, most_tables)

    def format_time(self, query: str, ts: int | None) -> int | str | None:
        """A result's time as people read it."""
        return self.deliveries.of(query).format_time(as_ticks(ts, "a time"))

    def result_count(self, query: str) -> int:
        """How many elements a query has put out so far, kept or not."""
        return self.deliveries.of(query).rows

    def left_out_count(self, query: str) -> int:
        """How many elements ON ERROR SKIP has left out so far, each counted when it came."""
        return self.deliveries.left_out_count(query)

    def latency(self, query: str) -> Latencies:
        """How long the results of a query took, from the arrival of their tuples."""
        return self.deliveries.latency(query)

    def quality(self, query: str) -> Quality:
        """How good the answers of a query are: how much is kept, and how wide the bounds are."""
        with self.lock:
            return quality_of(self.queries, self.ground.query_entry(query))

    def change_memory(self, query: str, bytes_: int) -> None:
        """Has the window of a query that tolerates it take so many bytes at most: what comes while
        it takes more stays for the shortest window only."""
        change_memory(self.controlled, query, bytes_)

    def query_entry(self, name: str) -> QueryEntry:
        """The catalog entry of a query."""
        return self.ground.query_entry(name)

    def query(self, name: str) -> Query:
        """A handle on a query, for notebooks."""
        return Query(self, self.query_entry(name).name)

    # -- looking inside --------------------------------------------------------------------

    def explain(self, name: str, stage: str = "physical") -> Plan:
        """The plan of a registered query."""
        entry = self.query_entry(name)
        if as_text(stage, "a stage") not in STAGES:
            raise StateError(f'no stage "{stage}" of a plan; known: {", ".join(STAGES)}')
        with self.lock:
            return Plan(entry.name, stage, plan_text(self.queries, entry, stage))

    def held(self) -> AbstractContextManager[object]:
        """Has nothing change while one looks at several things."""
        return self.lock

    @property
    def controlled(self) -> Controlled:
        """What control tables show and change."""
        return Controlled(self.queries, self.execute_anew, lambda: self.present_strategy)

    def entities(self) -> Entities:
        """Everything that runs, each with its control table."""
        return entities(self.controlled)

    @property
    def present_strategy(self) -> Strategy | None:
        """The strategy in charge, once there is work."""
        return None if self._loop is None else self._loop.strategy

    def statistics(self) -> dict[str, Any]:
        """The running plan as it was measured, as plain data, for `millpond simulate`."""
        with self.lock:
            return measured_plan(self.queries)

    def show(self, kind: str) -> pa.Table:
        """What SHOW answers."""
        with self.lock:
            return shown(self.queries, as_text(kind, "what to show").lower())

    def validate(self) -> None:
        """Checks that all parts of the engine agree; an ``InvariantError`` lists where not."""
        with self.lock:
            self.ground.check_open()
            found = complaints(self.queries, self._room.is_being_made)
        if found:
            raise InvariantError(found)

    def validate_if_set(self) -> None:
        """Does so if the setting ``validate`` says it."""
        if self.settings.validate != "on":
            return
        with self.lock:
            if self.settings.validate == "on" and not self.ground.is_closed:
                self.validate()

    def _repr_html_(self) -> str:
        frame = self.show("all").to_pandas()
        return f"<b>Millpond engine</b>{frame.to_html(index=False)}"

    # -- end -------------------------------------------------------------------------------

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Frees everything; Spark stays up for other engines of the process.

        What is at work (a function, a callback, a sink) is waited for so many seconds at most; a
        warning names what is not over by then.
        """
        with self.lock:
            if self.ground.is_closed:
                return
            self.ground.is_closed = True
            self.arrivals.close()
            self.inputs.close()
        until = time.monotonic() + seconds
        try:
            left = self._end(until)
        finally:  # also when it is interrupted: then nothing is waited for
            with uninterrupted:
                self._let_go()
        for each in (*self._followed, self._following):
            if each is not None:
                each.close(until - time.monotonic())
        self.inputs.wait_until_forgotten(until)
        if left:
            logger.warning("closed after %g seconds while still at work: %s", seconds, left)

    def _end(self, until: float) -> str:
        """Ends the work, waiting until a moment; who is still at it."""
        left: list[str] = []
        try:
            if not self.operation.stop(False, max(0.0, until - time.monotonic())):
                left.append("the loop")
        finally:
            self.catalog.function_processes.close()
            if self.queries.started is not None:
                left += [f"a step of query {each}" for each in self.queries.started.close(until)]
        left += self.deliveries.end(until)
        return ", ".join(left)

    def _let_go(self) -> None:
        """Closes everything, also if something cannot be; files are written before the log is.

        What steps have noted and the log cannot take is there to be done again.
        """
        with self.lock, ExitStack() as all_of_it:
            all_of_it.callback(self.store.close)
            all_of_it.callback(self.journal.close)
            all_of_it.callback(self.deliveries.close)
            self.journal.try_to_flush()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
