"""The façade: one engine with its catalog, inputs, running queries and results.

Everything here wires; nothing here decides. Spark starts with the first step, so that checking and
explaining need no Java. Every method may be called from any thread and from callbacks: whatever
changes the engine holds its lock, and nobody holds it while a step is executed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.arguments import as_text
from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry, ViewEntry, kind_of
from millpond.connectors import Source, arrow_schema, open_sink, open_source
from millpond.connectors.claims import Claims
from millpond.connectors.python_values import python_rows, to_pandas
from millpond.connectors.sinks import NamedSink, unique_names
from millpond.cql import apply, check_statement, split_statements, syntax_tree
from millpond.cql.algebra import StreamScan
from millpond.cql.expressions import Column, Expression
from millpond.cql.node import Node
from millpond.cql.statements import (
    Action,
    AlterQuery,
    Create,
    Delete,
    Drop,
    Explain,
    Insert,
    SetOption,
    Show,
    Update,
)
from millpond.display import Plan, Query, shown
from millpond.errors import CqlError, MillpondError, Position, StateError
from millpond.failures import Failure, Failures
from millpond.inputs import Inputs, Report, SourceReading
from millpond.intake import RelationIntake
from millpond.operation import Operation
from millpond.planning.guard import guard, left_out
from millpond.planning.optimise import optimise
from millpond.planning.physical import Graph
from millpond.reading import ReadLimits
from millpond.recovery import Replay, StatementMemory, form_of
from millpond.results import Callback, ResultLog, deliver
from millpond.runtime import SchedulingLoop
from millpond.scheduling.strategy import Strategy
from millpond.scheduling.strategy_text import engine_strategy
from millpond.schema import BEGINNING, Type
from millpond.settings import Settings, is_local, local_cores, refuse_late_change
from millpond.storage.journal import Journal
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction, Queue
from millpond.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millpond.spark.runtime import SparkRuntime
    from millpond.spark.steps import Step
    from millpond.spark.surroundings import Limits


ASIDE = "#left_out"
"""What stands behind the name of a query in the name of what it leaves out."""


def _nothing_left_out() -> pa.Table:
    fields = [("ts", pa.int64()), ("weight", pa.int64())]
    return pa.schema([*fields, ("expression", pa.string()), ("row", pa.string())]).empty_table()


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
    ) -> None:
        if isinstance(settings, dict):
            settings = Settings().with_options(settings)
        self.settings = settings or Settings()
        if store is not None:
            self.settings = self.settings.with_option("store", str(store))
        self.catalog = Catalog(tick_microseconds=self.settings.tick_microseconds)
        self._directory = Path(directory or ".")
        self._keep_results = keep_results
        self._session = spark
        self._session_checked: SparkSession | None = None
        self._lock = threading.RLock()
        self._starting = threading.Lock()
        self.claims = Claims()
        """The files that sources read and sinks write."""
        self._open_store()
        self._operation = Operation(self._lock, self._work, self._read_source)
        self._failures = Failures()
        self._logs: dict[str, ResultLog] = {}
        self._news: set[str] = set()
        """The queries that have put out what was not yet handed on."""
        self._outputs: dict[str, str] = {}
        self.graph = Graph()
        self._runtime: SparkRuntime | None = None
        self._loop: SchedulingLoop | None = None
        self._closed = False
        self._strategy()
        self._recover()

    def _open_store(self) -> None:
        self.store = Store(self.settings.store)
        self._journal = Journal(self.store)
        self.memory = StatementMemory()
        self.inputs = Inputs(self.catalog, self.store, self._journal, self._arrived)

    # -- statements ------------------------------------------------------------------------

    def execute(self, script: str, name: str = "<script>") -> list[Any]:
        """Runs the statements of a script; the answers of SHOW and EXPLAIN, in order."""
        answers = []
        script = as_text(script, "a script")
        for text, position in split_statements(script):
            with self._lock:
                self._check_open()
                if self.memory.passes_over(text):
                    continue
                statement = check_statement(text, position, self.catalog)
            try:
                answer = self._act(statement.action, text)
            except CqlError as error:
                raise CqlError(error.message, error.position or position) from None
            except MillpondError as error:
                raise CqlError(str(error), position) from error
            if answer is not None:
                answers.append(answer)
        return answers

    def _act(self, action: Action, text: str) -> Any:
        match action:
            case Show():
                return self.show(action.kind)
            case Explain():
                with self._lock:
                    return self._explain(action, text)
            case Delete():  # this and the next ask Spark, which must not hold the lock up
                self._modify(action.relation, action.predicate, None, text)
            case Update():
                self._modify(action.relation, action.predicate, action.expressions, text)
            case _:
                self._change(action, text)
        return None

    def _change(self, action: Action, text: str) -> None:
        """Does what a statement says, and has it in the log when this returns; or nothing."""
        with self._lock:
            before, known = self._journal.length, set(self.graph.operators)
            is_insert = isinstance(action, Insert)
            note = self._journal.note("statement", text=text, changes_rows=is_insert)
            try:
                self._apply(action)
            except BaseException:
                self._journal.take_back(before)
                raise
            note["form"] = form_of(self.graph, self.graph.operators.keys() - known)
            self._journal.flush()

    def _apply(self, action: Action) -> None:
        match action:
            case Create():
                self._create(action)
            case Drop():
                self._drop(action.name)
            case Insert():
                self._insert(action)
            case AlterQuery():
                self._alter(action)
            case SetOption():
                self._set(action)

    def execute_again(self, text: str) -> None:
        """Executes a statement of an earlier run: its files are opened later, if still needed."""
        self._apply(check_statement(text, Position(1, 1), self.catalog).action)

    def _create(self, action: Create) -> None:
        entry = action.entry
        match entry:
            case StreamEntry():
                source = self._source_of(entry)
                apply(action, self.catalog)
                self.inputs.add_stream(entry, source)
            case RelationEntry():
                source = self._source_of(entry)
                apply(action, self.catalog)
                self._add_relation(entry, source)
            case QueryEntry():
                plan = optimise(entry.plan, entry.on_error)
                sink = None if self._journal.is_replaying else self._sink_of(entry)
                apply(action, self.catalog)
                self._add_query(entry, plan, sink)
            case ViewEntry():
                apply(action, self.catalog)

    def _source_of(self, entry: StreamEntry | RelationEntry) -> Source | None:
        if self._journal.is_replaying:
            return None
        return open_source(entry, self.settings_now, self._directory, self.claims)

    def _sink_of(self, entry: QueryEntry, resume: Any = None) -> NamedSink | None:
        if entry.sink is None:
            return None
        sink = open_sink(entry, self._directory, self.claims, resume)
        if self.store.is_durable and sink.mark() is None:
            raise StateError(
                f"query {entry.name} INTO {entry.sink}: this sink can not go on after a restart, "
                "so a store that lasts is no use to it; leave INTO or the store away"
            )
        return sink

    @property
    def settings_now(self) -> Settings:
        """The settings with the tick that SET may have changed."""
        tick = f"{self.catalog.tick_microseconds} microseconds"
        return self.settings.with_option("tick", tick)

    def _add_relation(self, entry: RelationEntry, source: Source | None) -> None:
        """Reads the relation's content; if it cannot be read there is no such relation."""
        try:
            self.inputs.add_relation(entry, source)
        except BaseException:
            self._drop(entry.name)
            raise

    def _add_query(self, entry: QueryEntry, plan: Node, sink: Any) -> None:
        aside = self._aside(entry)
        if aside is not None:
            self._add_log(aside, None).counts_coming = True
        self._note_sink(self._add_log(entry, sink))
        if entry.active:
            self._activate(entry, plan)

    def _aside(self, entry: QueryEntry) -> QueryEntry | None:
        """What a query with ON ERROR SKIP leaves out, as a query beside it that nobody sees."""
        if entry.on_error != "skip":
            return None
        plan = left_out(guard(entry.plan).faults)
        name = entry.name + ASIDE
        return None if plan is None else replace(entry, name=name, plan=plan, sink=None)

    def _add_log(self, entry: QueryEntry, sink: Any) -> ResultLog:
        log = ResultLog(
            entry,
            self.catalog.tick_microseconds,
            self._in_timestamps(entry.plan),
            sink,
            self._keep_results,
        )
        log.write_elsewhere = self._write_elsewhere
        self._logs[entry.name.lower()] = log
        return log

    def _activate(self, entry: QueryEntry, plan: Node) -> None:
        epoch, aside = self.inputs.epoch(), self._aside(entry)
        self._outputs[entry.name.lower()] = self.graph.add_query(entry.name, plan, epoch)
        if aside is not None:
            output = self.graph.add_query(aside.name, optimise(aside.plan), epoch)
            self._outputs[aside.name.lower()] = output
        if self._runtime is not None:
            self._start_operators()
            self._runtime.set_weight(entry.name, entry.weight)

    def _in_timestamps(self, plan: Node) -> bool:
        """Whether the times of a query's inputs are moments rather than counts."""
        for node in plan.walk():
            if isinstance(node, StreamScan):
                entry = self.catalog.get(node.name)
                if isinstance(entry, StreamEntry) and (
                    entry.timestamp_column is None
                    or entry.schema[entry.timestamp_column].type is Type.TIMESTAMP
                ):
                    return True
        return False

    def drop(self, name: str) -> None:
        """Drops a query, view, stream or relation that nobody uses."""
        with self._lock:
            self._check_open()
            self._drop(as_text(name, "a name"))
            self._journal.note("drop", name=name)
            self._journal.flush()

    def _drop(self, name: str) -> None:
        entry = self.catalog.get(name)
        apply(Drop(kind_of(entry) if entry else "query", name), self.catalog)
        key = name.lower()
        self.memory.forget(key)
        if isinstance(entry, QueryEntry):
            self._deactivate(key)
            self._failures.forget(key)
            for log in (self._logs.pop(key), self._logs.pop(key + ASIDE, None)):
                if log is not None:
                    log.close()
        self.inputs.drop(key)
        self.claims.release(key)

    def restart(self, name: str) -> None:
        """Runs a query that has failed again, from now on."""
        with self._lock:
            self._check_open()
            entry = self.query_entry(name)
            if self._failures.of(name) is None:
                raise StateError(f'query "{entry.name}" has not failed')
            self._failures.forget(name)
            self._logs[name.lower()].sink_failed = False
            self._activate(entry, optimise(entry.plan, entry.on_error))
            self._journal.note("restart", name=entry.name)
            self._journal.flush()

    def failures(self) -> list[Failure]:
        """The queries that have failed, each with its reason."""
        with self._lock:
            return list(self._failures)

    def _deactivate(self, key: str) -> None:
        outputs = (self._outputs.pop(key, None), self._outputs.pop(key + ASIDE, None))
        removed = [
            each for output in outputs if output is not None for each in self.graph.remove(output)
        ]
        if not removed:
            return
        if self._runtime is not None:
            self._runtime.stop(
                [identity for identity in removed if identity in self._runtime.running]
            )
        self.inputs.forget_epochs(set(self.graph.epochs.values()))

    def _alter(self, action: AlterQuery) -> None:
        entry = self.query_entry(action.name)
        apply(action, self.catalog)
        changed = self.query_entry(action.name)
        self._logs[action.name.lower()].entry = changed
        if self._runtime is not None:
            self._runtime.set_weight(changed.name, changed.weight)
        if entry.active and not changed.active:
            self._deactivate(action.name.lower())
        elif changed.active and self._failures.of(changed.name) is not None:
            self.restart(changed.name)
        elif changed.active and not entry.active:
            self._activate(changed, optimise(changed.plan, changed.on_error))

    def _set(self, action: SetOption) -> None:
        settings = self.settings.with_option(action.key, str(action.value))
        if not self._journal.is_replaying:
            refuse_late_change(action.key, self._session is not None, self._runtime is not None)
        moves = not self._journal.is_replaying and settings.store != self.settings.store
        if moves and (self.catalog.entries or self._runtime is not None):
            raise StateError(
                "SET store comes before everything that is kept there: make it the first statement"
            )
        strategy = engine_strategy(settings.strategy, settings.budget_bytes)
        if action.key.lower() == "tick":
            apply(action, self.catalog)
        self.settings = settings
        if action.key.lower() in ("strategy", "budget") and self._loop is not None:
            self._loop.strategy = strategy
        if self._runtime is not None:
            self._set_limits(self._runtime.limits)

    def _set_limits(self, limits: Limits) -> None:
        """Tells the running operators the settings that may change at any time."""
        limits.step_rows = self.settings.step_rows
        limits.driver_rows = self.settings.driver_rows
        limits.asks_spark = self.settings.small_steps == "spark"
        limits.processors = self.settings.processors or limits.buckets

    # -- relations -------------------------------------------------------------------------

    def _insert(self, action: Insert) -> None:
        self.inputs.push(action.relation, list(action.rows))

    def _modify(
        self,
        name: str,
        predicate: Expression | None,
        new: tuple[Expression, ...] | None,
        text: str,
    ) -> None:
        """DELETE, and UPDATE as removal and insertion, decided by Spark on the present content."""
        while True:
            with self._lock:
                intake = self.inputs.relation(name)
                seen, rows = intake.changed_rows, intake.content()
            old, changed = self._evaluate(intake, rows.drop_columns(["_te"]), predicate, new)
            with self._lock:
                self._check_open()
                if intake.changed_rows != seen:
                    continue  # somebody else was quicker: look again
                at = self.inputs.change_time(intake)
                self._journal.note("statement", text=text, changes_rows=True)
                self.inputs.change(intake, old, at, -1)
                if changed is not None:
                    self.inputs.change(intake, changed, at, 1)
                self._journal.flush()
                return

    def _evaluate(
        self,
        intake: RelationIntake,
        rows: pa.Table,
        predicate: Expression | None,
        new: tuple[Expression, ...] | None,
    ) -> tuple[pa.Table, pa.Table | None]:
        from millpond.spark.modify import evaluate

        everything = tuple(
            Column(i, f.type, f.name) for i, f in enumerate(intake.entry.schema.fields)
        )
        schema = arrow_schema(intake.entry.schema)
        old = evaluate(self.spark, rows, predicate, everything).rename_columns(schema.names)
        if new is None:
            return old.cast(schema), None
        changed = evaluate(self.spark, rows, predicate, new).rename_columns(schema.names)
        return old.cast(schema), changed.cast(schema)

    # -- input -----------------------------------------------------------------------------

    def push(self, name: str, rows: Any) -> None:
        """Adds tuples to a stream, or rows to a relation at the current time.

        ``rows`` are dicts or tuples in schema order, an Arrow table, or a pandas data frame.
        """
        with self._lock:
            self._check_open()
            self.inputs.push(as_text(name, "a name"), rows)
            self._journal.flush()

    def push_changes(self, name: str, changes: Iterable[tuple[Any, str, Any]]) -> None:
        """Adds ``(ts, '+' or '-', row)`` to a relation; ts None means the beginning."""
        with self._lock:
            self._check_open()
            self.inputs.push_changes(as_text(name, "a name"), changes)
            self._journal.flush()

    def advance(self, name: str, timestamp: Any) -> None:
        """A heartbeat: promises that nothing at or before the time will follow."""
        with self._lock:
            self._check_open()
            self.inputs.advance(as_text(name, "a name"), timestamp)
            self._journal.flush()

    def late(self, stream: str) -> pa.Table:
        """The tuples of a stream that came too late, as they came."""
        with self._lock:
            return self.inputs.late(as_text(stream, "a name"))

    def _arrived(self, queue: Queue) -> None:
        if self._runtime is not None:
            self._runtime.arrived(queue.name)
        self._operation.wake()

    # -- running ---------------------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started now if it was not yet."""
        from millpond.spark.executors import check_store
        from millpond.spark.session import create_session

        with self._starting:
            if self._session is None:
                self._session = create_session(self.settings)
            if self._session is not self._session_checked:
                check_store(self._session, self.store.directory, self.store.is_durable)
                self._session_checked = self._session
            return self._session

    def _cores(self) -> int:
        """How many tasks run at once; a cluster is asked."""
        if self._session is None and is_local(self.settings.spark_master):
            return local_cores(self.settings.spark_master)
        return self.spark.sparkContext.defaultParallelism

    @property
    def runtime(self) -> SparkRuntime:
        """The running operators on Spark."""
        if self._runtime is None:
            from millpond.spark.runtime import SparkRuntime
            from millpond.spark.surroundings import Limits

            with self._lock:
                limits = Limits(seed=self.settings.seed, buckets=self._cores())
                self._set_limits(limits)
                self._runtime = SparkRuntime(
                    lambda: self.spark,
                    self.graph,
                    self.inputs.queues,
                    self.store,
                    self,
                    limits,
                    self._lock,
                )
                self._start_operators()
                for entry in self.catalog.of_kind(QueryEntry):
                    self._runtime.set_weight(entry.name, entry.weight)
        return self._runtime

    def _start_operators(self) -> None:
        if self._runtime is not None:
            self._runtime.start(self.inputs.since, BEGINNING - 1)

    def _strategy(self) -> Strategy:
        return engine_strategy(self.settings.strategy, self.settings.budget_bytes)

    def run_until_idle(self) -> None:
        """Works until every query is as far as its inputs allow."""
        self._check_open()
        self._operation.run(self._work)
        self._raise_failures()

    def run_sources(
        self,
        report: Report | None = None,
        seconds: float | None = None,
        rows: int | None = None,
    ) -> None:
        """Reads the sources of running queries, always the one that is furthest behind, and works.

        It ends with the sources, or after so many ``seconds`` or ``rows`` of each source.
        """
        self._check_open()
        limits = ReadLimits(seconds, rows)
        self._operation.run(lambda: self._work_through_sources(report, limits))
        self._raise_failures()

    def finish(
        self,
        report: Report | None = None,
        seconds: float | None = None,
        rows: int | None = None,
    ) -> None:
        """Reads sources as ``run_sources`` does, ends all that is read, and works to the end."""
        self._check_open()
        limits = ReadLimits(seconds, rows)
        self._operation.run(lambda: self._finish(report, limits))
        self._raise_failures()

    def start(self) -> None:
        """Works in the background from now on, as pushes come and sources deliver."""
        self._check_open()
        self._operation.start()

    def stop(self, drain: bool = True) -> None:
        """Ends the work in the background; ``drain``: only once all that has come is done."""
        self._operation.stop(drain)

    def _finish(self, report: Report | None, limits: ReadLimits) -> None:
        self._work_through_sources(report, limits)
        with self._lock:
            self.inputs.end()
        self._work()

    def _work_through_sources(self, report: Report | None, limits: ReadLimits) -> None:
        with self._lock:
            self.inputs.limit(limits)
        while self._read_source(report):
            self._work()
        self._work()

    def _read_source(self, report: Report | None = None) -> bool:
        """Reads a page of the source furthest behind; the lock is not held meanwhile."""
        with self._lock:
            names = [] if self._closed else self.inputs.sources_of(self.graph)
            reading = self.inputs.next_reading(names)
        if reading is None:
            return False
        line = self._read_elsewhere(reading)
        page = reading.page() if line is None else None
        with self._lock:
            if line is None:
                self.inputs.take(reading, page, report)
            else:
                self.inputs.take_line(reading, line, report)
            self._journal.flush()
        return True

    def _read_elsewhere(self, reading: SourceReading) -> dict[str, Any] | None:
        """Has the executors read a page that is too large for the driver, if files can be."""
        intake, settings = self.inputs.streams.get(reading.name), self.settings_now
        is_large = settings.page_rows > settings.driver_rows
        if intake is None or not is_large or not reading.can_be_elsewhere:
            return None
        from millpond.spark.sources import read_page

        with self._lock:
            work = {
                "admission": intake.admission,
                "settings": settings,
                "directory": str(self._directory.absolute()),
                "rows": self.inputs.read_rows.get(reading.name, 0),
                "now": intake.now_ticks(),
            }
        return read_page(self.spark, self.store, work)

    def _work(self) -> None:
        """One round of the loop: everything that can be done now."""
        with self._lock:
            if self._closed or not self._outputs:
                return
            self.inputs.promise(self.settings)
        if self._loop is None:
            self._loop = SchedulingLoop(self.runtime, self._strategy())
        try:
            self._loop.run()
        except BaseException:
            self.runtime.cancel()
            raise

    def _raise_failures(self) -> None:
        with self._lock:
            self._failures.raise_untold()

    # -- what the running operators tell ---------------------------------------------------

    def put_out(self, query: str, page: Page | None, until: int) -> None:
        """A query has put out a page, or nothing; it is complete up to a time."""
        self._logs[query.lower()].add(page, until)
        if page is not None:
            self._news.add(query.lower())

    def committed(self, identity: str, step: Step) -> None:
        """A step is about to be published."""
        if step.outcome is not None and self._journal.is_durable:
            page, state = step.outcome.output, step.running.state
            self._journal.note(
                "step",
                operator=identity,
                until=step.reached,
                page=None if page is None else page.reference(),
                state=None if state is None else state.reference(step.outcome.state),
            )

    def skipped(self, identity: str, until: int) -> None:
        """An operator has passed a time in which nothing happened."""
        self._journal.note("skip", operator=identity, until=until)

    def compacted(self, queue: str, change: Compaction) -> None:
        """Pages of a queue are about to be replaced by one."""
        if self._journal.is_durable:
            self._journal.note(
                "compact",
                queue=queue,
                page=None if change.page is None else change.page.reference(),
                replaced=[name for page in change.replaced for name in page.names],
                until=change.content_until,
            )

    def failed(self, identity: str, step: Step, error: Exception) -> None:
        """A step could not be done: the queries that need it stand still, the others go on."""
        label = self.graph.operators[identity].label()
        served = self.runtime.picture.queries(identity)
        queries = dict.fromkeys(query.removesuffix(ASIDE) for query in served)
        found = [
            Failure(query, label, str(error), step.after, step.until, step.offenders)
            for query in queries
        ]
        self.fail(found, error)

    def fail(self, failures: list[Failure], error: Exception) -> None:
        """Has queries stand still, for one reason."""
        self._journal.note("failed", failures=[asdict(failure) for failure in failures])
        self._failures.add(failures, error)
        for failure in failures:
            self._deactivate(failure.query.lower())

    def lost_spark(self) -> None:
        """Spark has died; the next step asks for another one."""
        self._session = None

    def after_commit(self) -> None:
        """Hands on what was put out; callbacks run without the lock."""
        with self._lock:
            self._journal.flush()
            logs = [self._logs[name] for name in self._news if name in self._logs]
            self._news = set()
        for log in logs:
            deliver(log, self._lock, self._sink_told)

    def _sink_told(self, log: ResultLog, error: Exception | None) -> None:
        if error is None:
            self._note_sink(log)
            self._journal.flush()
            return
        at = log.complete_until
        self.fail([Failure(log.entry.name, f"INTO {log.entry.sink}", str(error), at, at)], error)

    def _note_sink(self, log: ResultLog) -> None:
        if log.sink is not None:
            query, mark = log.entry.name.lower(), log.sink.mark()
            self._journal.note("sink", query=query, position=log.sink_position, mark=mark)

    # -- after a restart -------------------------------------------------------------------

    def _recover(self) -> None:
        """Goes on where an earlier run with this store has ended."""
        if not self._journal.is_durable:
            return
        replay = Replay(self)
        self._journal.is_replaying = True
        for record in self._journal.records():
            _ = self.runtime
            replay.act(record)
        self._journal.is_replaying = False
        self._failures.told()
        self.store.run = replay.runs + 1
        self._journal.note("open", run=self.store.run)
        self.store.remove_garbage(self._file_names())
        for key, entry in self.catalog.entries.items():
            match entry:
                case StreamEntry() | RelationEntry():
                    self._resume_source(key, entry)
                case QueryEntry():
                    log = self._logs[key]
                    log.sink = self._sink_of(entry, replay.marks.get(key))
                    self._news.add(key)
        self._journal.flush()

    def _resume_source(self, key: str, entry: StreamEntry | RelationEntry) -> None:
        is_read_once = isinstance(entry, RelationEntry) and not entry.has_changes
        has_ended = self.inputs.read_rows.get(key, 0) < 0
        if entry.source.name != "push" and not is_read_once and not has_ended:
            source = open_source(entry, self.settings_now, self._directory, self.claims)
            self.inputs.resume(key, source)

    def _file_names(self) -> set[str]:
        results = {name for log in self._logs.values() for page in log.pages for name in page.names}
        running = () if self._runtime is None else self._runtime.running.values()
        states = {name for each in running if each.state for name in each.state.names}
        return self.inputs.file_names() | results | states

    def sink_has_taken(self, query: str, position: int) -> None:
        """The sink of a query had taken so many pages when an earlier run ended."""
        log = self._logs[query]
        log.sink_position = position
        log.forget()

    # -- results ---------------------------------------------------------------------------

    def results(self, query: str, form: str = "arrow") -> Any:
        """What a query has put out so far: ``arrow``, ``pandas``, ``spark`` or ``rows``.

        Columns are ts (in ticks; NULL at the beginning), weight, and the query's own.
        """
        with self._lock:
            log = self._log(query)
            pages = list(log.pages)
            if form == "spark":
                return self._result_frame(log, pages)
            for page in pages:
                page.pin()
        try:
            table = log.table(pages)
        finally:
            with self._lock:
                for page in pages:
                    page.unpin()
        match form:
            case "arrow":
                return table
            case "pandas":
                return to_pandas(table)
            case "rows":
                return python_rows(table)
        raise StateError(f'no form "{form}"; known: arrow, pandas, spark, rows')

    def _result_frame(self, log: ResultLog, pages: list[Page]) -> Any:
        """Reads the files of the results where they lie, as long as the query is there."""
        from millpond.spark.deliveries import result_frame

        names = unique_names(["ts", "weight", *log.schema.names])
        return result_frame(self.spark, log.page_schema, names, pages)

    def _write_elsewhere(self, log: ResultLog, page: Page) -> bool:
        """Has an executor write a page to a Parquet sink, if that is where its rows are."""
        if page.is_in_driver or log.sink is None:
            return False
        part = log.sink.next_part()
        if part is None:
            return False
        from millpond.spark.deliveries import WritePart, write_part

        names = tuple(unique_names(["ts", "weight", *log.schema.names]))
        write_part(self.spark, page, WritePart(log.page_schema, names, str(part.absolute())))
        log.sink.has_part()
        return True

    def left_out(self, query: str) -> pa.Table:
        """What a query with ON ERROR SKIP has left out: when, how often, why and which row."""
        entry = self.query_entry(query)
        return self.results(entry.name + ASIDE) if self._aside(entry) else _nothing_left_out()

    def subscribe(self, query: str, callback: Callback) -> None:
        """Calls back with every table of new results, complete instants in order of time."""
        if not callable(callback):
            raise StateError(f"subscribe needs a function of one table, not {callback!r}")
        with self._lock:
            self._check_open()
            self._log(query).subscribe(callback)

    def format_time(self, query: str, ts: int | None) -> int | str | None:
        """A result's time as people read it."""
        return self._log(query).format_time(ts)

    def _log(self, query: str) -> ResultLog:
        if as_text(query, "a name").lower() not in self._logs:
            known = ", ".join(log.entry.name for log in self._logs.values()) or "none"
            raise StateError(f'no query "{query}"; known: {known}')
        return self._logs[query.lower()]

    def result_count(self, query: str) -> int:
        """How many elements a query has put out so far, kept or not."""
        return self._log(query).rows

    def left_out_count(self, query: str) -> int:
        """How many elements ON ERROR SKIP has left out so far, each counted when it came."""
        log = self._logs.get(query.lower() + ASIDE)
        return 0 if log is None else log.came

    def query_entry(self, name: str) -> QueryEntry:
        """The catalog entry of a query."""
        entry = self.catalog.get(as_text(name, "a name"))
        if not isinstance(entry, QueryEntry):
            return self._log(name).entry
        return entry

    def query(self, name: str) -> Query:
        """A handle on a query, for notebooks."""
        return Query(self, self.query_entry(name).name)

    # -- looking inside --------------------------------------------------------------------

    def explain(self, name: str, stage: str = "physical") -> Plan:
        """The plan of a registered query."""
        entry = self.query_entry(name)
        return Plan(entry.name, stage, self._plan_text(entry, stage))

    def _explain(self, action: Explain, text: str) -> Plan:
        if action.stage.lower() == "syntax":
            return Plan(action.query.name, "syntax", syntax_tree(text))
        stage = action.stage.lower()
        return Plan(action.query.name, stage, self._plan_text(action.query, stage))

    def _plan_text(self, entry: QueryEntry, stage: str) -> str:
        plan = optimise(entry.plan, entry.on_error)
        if stage == "logical":
            return str(plan)
        if entry.name.lower() in self._outputs:
            output = self._outputs[entry.name.lower()]
            return self.graph.describe(self.graph.upstream(output))
        return self.graph.explain(entry.name, plan, self.inputs.next_epoch)

    def show(self, kind: str) -> pa.Table:
        """What SHOW answers."""
        with self._lock:
            return shown(self, kind.lower())

    def _repr_html_(self) -> str:
        frame = self.show("all").to_pandas()
        return f"<b>Millpond engine</b>{frame.to_html(index=False)}"

    # -- end -------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise StateError("the engine is closed; make a new one")

    def close(self) -> None:
        """Frees everything; Spark stays up for other engines of the process."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._operation.stop(drain=False)
        if self._runtime is not None:
            self._runtime.close()
        with self._lock:
            self._journal.flush()
            for log in self._logs.values():
                log.close_sink()
            self._journal.close()
            self.store.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
