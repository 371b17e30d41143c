"""The façade: one engine with its catalog, inputs, running queries and results.

Everything here wires; nothing here decides. Spark starts with the first step, so that checking and
explaining need no Java. Every method may be called from any thread and from callbacks: whatever
changes the engine holds its lock, and nobody holds it while a step is executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa

from millpond.analysis import analysed
from millpond.arguments import as_text
from millpond.arrivals import Arrivals, Feed
from millpond.budget import Budget, cached_bytes
from millpond.catalog import (
    ASIDE,
    Catalog,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    ViewEntry,
    kind_of,
)
from millpond.checkpoint import checkpoint, needs
from millpond.connectors import Source, arrow_schema, open_sink, open_source
from millpond.connectors.claims import Claims
from millpond.connectors.sinks import NamedSink
from millpond.cql.algebra import StreamScan
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_statement
from millpond.cql.expressions import Column, Expression
from millpond.cql.needed_functions import needed_functions
from millpond.cql.node import Node
from millpond.cql.statements import (
    Action,
    AlterPlan,
    AlterQuery,
    Create,
    Delete,
    Drop,
    Explain,
    Insert,
    SetOption,
    Show,
    Statement,
    Update,
)
from millpond.cql.text.parse import syntax_tree
from millpond.cql.text.split import split_statements
from millpond.cql.user_functions import checked_name, checked_types
from millpond.deliveries import Deliveries, nothing_left_out
from millpond.display import Plan, Query, shown
from millpond.errors import CqlError, MillpondError, Position, StateError
from millpond.failures import Failure, Failures
from millpond.inputs import Inputs, Report, SourceReading
from millpond.intake import RelationIntake
from millpond.interruption import WholeLock
from millpond.kernels import modify
from millpond.kernels.expressions import can_lower
from millpond.latency import Latencies
from millpond.lazy_spark import LazySpark
from millpond.measured_plan import measured_plan
from millpond.memory import Declaration, StatementMemory, noted
from millpond.operation import Operation
from millpond.planning.guard import guard, left_out
from millpond.planning.optimise import optimise
from millpond.planning.parts import Cut, Cuts
from millpond.planning.physical import Graph
from millpond.reading import Allowance, ReadLimits
from millpond.recovery import Replay, form_of
from millpond.results import Callback, ResultLog
from millpond.runtime import SchedulingLoop
from millpond.scheduling.strategy import Strategy
from millpond.scheduling.strategy_text import engine_strategy
from millpond.schema import BEGINNING, Type
from millpond.settings import Settings, refuse_late_change
from millpond.storage.journal import Journal
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction, Queue
from millpond.storage.store import Store
from millpond.user_function import UserFunction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millpond.spark.runtime import SparkRuntime
    from millpond.spark.steps import Step
    from millpond.spark.surroundings import Limits

FunctionGiven: TypeAlias = "tuple[str, Callable[..., Any], Sequence[Type | str], Type | str]"
"""What ``register_function`` takes."""


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
        self.settings = settings or Settings()
        if store is not None:
            self.settings = self.settings.with_option("store", str(store))
        self.catalog = Catalog(tick_microseconds=self.settings.tick_microseconds)
        for given in functions:
            if not isinstance(given, tuple) or len(given) != 4:
                raise StateError(
                    "functions are given as (name, function, parameter types, result type), "
                    f"not {given!r}"
                )
            self._register_function(*given)
        self._directory = Path(directory or ".")
        self._keeps_results = keep_results
        self.lazy_spark = LazySpark(spark)
        self._lock = WholeLock()
        """What is entered while Spark starts, which takes seconds, in whatever thread needs it."""
        self.claims = Claims()
        """The files that sources read and sinks write."""
        self.deliveries = Deliveries(self._lock, lambda: self.spark, self._wake)
        self.graph = Graph(linear=self.settings.linear)
        self.budget = Budget(self.settings.budget_bytes)
        self._open_store(self.settings.store)
        self._operation = Operation(
            self._lock, self._turn, self.arrivals, lambda: self.deliveries.is_settled
        )
        self._failures = Failures()
        self._outputs: dict[str, str] = {}
        self._begun: list[str] = []
        """The operators that the present statement has added."""
        self._runtime: SparkRuntime | None = None
        self._loop: SchedulingLoop | None = None
        self._closed = False
        self._strategy()
        self._recover()

    def _open_store(self, location: str) -> None:
        self.store = Store(location)
        self._journal = Journal(self.store)
        self.memory = StatementMemory()
        self.deliveries.use(self.store, self._journal)
        self.inputs = Inputs(self.catalog, self.store, self._journal, self._arrived)
        self.arrivals = Arrivals(
            self.inputs, self.graph, self._lock, self._read, self._wake, self._has_room
        )
        self._keep_to_budget()

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
                answer = self._act(statement)
            except CqlError as error:
                raise CqlError(error.message, error.position or position) from None
            except MillpondError as error:
                raise CqlError(str(error), position) from error
            if answer is not None:
                answers.append(answer)
        return answers

    def _act(self, statement: Statement) -> Any:
        action = statement.action
        match action:
            case Show():
                return self.show(action.kind)
            case Explain():
                with self._lock:
                    return self._explain(action, statement.text)
            case Delete():  # this and the next ask Spark, which must not hold the lock up
                self._modify(action.relation, action.predicate, None, statement)
            case Update():
                self._modify(action.relation, action.predicate, action.expressions, statement)
            case _:
                self._change(statement)
        return None

    def _change(self, statement: Statement) -> None:
        """Does what a statement says, and has it in the log when this returns; or nothing."""
        with self._lock:
            before, self._begun = self._journal.length, []
            for record in needs(_needed(statement.action)):
                self._journal.note(**record)
            note = noted(statement, self._journal)
            try:
                self._apply(statement.action)
            except BaseException:
                self._journal.take_back(before)
                raise
            if self._journal.is_durable:
                note["form"] = form_of(self.graph, self._begun)
            self.memory.done(statement)
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
            case AlterPlan():
                self.place_queues(action.operator, action.has_queue)
            case SetOption():
                self._set(action)

    def execute_again(self, text: str, position: Position) -> None:
        """Executes a statement of an earlier run: its files are opened later, if still needed."""
        statement = check_statement(text, position, self.catalog)
        self._apply(statement.action)
        self.memory.done(statement)

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
                plans = _planned(entry)
                sink = None if self._journal.is_replaying else self._sink_of(entry)
                apply(action, self.catalog)
                self._add_query(entry, plans, sink)
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

    def _add_query(self, entry: QueryEntry, plans: _Plans, sink: Any) -> None:
        if plans.aside is not None:
            self.deliveries.add(replace(self._log_of(plans.aside, None), counts_coming=True))
        self.deliveries.add(self._log_of(entry, sink))
        if entry.active:
            self._activate(entry, plans, self.inputs.epoch())

    def _log_of(self, entry: QueryEntry, sink: Any) -> ResultLog:
        tick, in_timestamps = self.catalog.tick_microseconds, self._in_timestamps(entry.plan)
        return ResultLog(entry, tick, in_timestamps, sink, self._keeps_results)

    def _activate(self, entry: QueryEntry, plans: _Plans, epoch: int) -> None:
        key = entry.name.lower()
        self._outputs[key] = self.graph.add_query(entry.name, plans.optimised, epoch)
        if plans.aside is not None:
            output = self.graph.add_query(plans.aside.name, plans.optimised_aside, epoch)
            self._outputs[plans.aside.name.lower()] = output
        self._begun = self.graph.take_added()
        if self._runtime is not None:
            self._start_operators(self._begun)
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
            self.deliveries.remove(key)
        self.inputs.drop(key)
        self.claims.release(key)

    def restart(self, name: str) -> None:
        """Runs a query that has failed again, from now on."""
        with self._lock:
            self._check_open()
            entry = self.query_entry(name)
            if self._failures.of(name) is None:
                raise StateError(f'query "{entry.name}" has not failed')
            self._restart(entry)
            self._journal.note("restart", name=entry.name)
            self._journal.flush()

    def _restart(self, entry: QueryEntry) -> None:
        self._failures.forget(entry.name)
        self.deliveries.of(entry.name.lower()).sink_failed = False
        self._activate(entry, _planned(entry), self.inputs.epoch())

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
        self.deliveries.of(action.name.lower()).entry = changed
        if self._runtime is not None:
            self._runtime.set_weight(changed.name, changed.weight)
        if entry.active and not changed.active:
            self._deactivate(action.name.lower())
        elif changed.active and self._failures.of(changed.name) is not None:
            self._restart(changed)
        elif changed.active and not entry.active:
            self._activate(changed, _planned(changed), self.inputs.epoch())

    def place_queues(self, operator: str, has_queue: bool) -> None:
        """Has a queue stand behind an operator, or none, whatever a strategy wants."""
        runtime = self.runtime
        if operator not in self.graph.operators and not runtime.cutting.cuts.is_part(operator):
            known = ", ".join(self.graph.operators) or "none"
            raise StateError(f'no operator "{operator}"; EXPLAIN PHYSICAL names them: {known}')
        runtime.placement = runtime.placement.say(operator, has_queue)
        if not self._journal.is_replaying:
            runtime.move_queues()

    def _set(self, action: SetOption) -> None:
        if self._journal.is_replaying and action.key.lower() == "store":
            return  # the store is where it is found
        settings = self.settings.with_option(action.key, str(action.value))
        if not self._journal.is_replaying:
            refuse_late_change(
                action.key,
                self.lazy_spark.is_started,
                self._runtime is not None,
                any(self.catalog.of_kind(QueryEntry)),
            )
        moves = not self._journal.is_replaying and settings.store != self.settings.store
        if moves and (self.catalog.entries or self._runtime is not None):
            raise StateError(
                "SET store comes before everything that is kept there: make it the first statement"
            )
        if moves:
            self._move_to(settings.store)
        strategy = engine_strategy(settings.strategy, settings.budget_bytes, settings.mode)
        if action.key.lower() == "tick":
            apply(action, self.catalog)
        self.settings = settings
        self._keep_to_budget()
        self.graph.linear = settings.linear
        if action.key.lower() in ("strategy", "mode", "budget") and self._loop is not None:
            self._loop.strategy = strategy
            self.runtime.placement = self.runtime.placement.undecided()
        if self._runtime is not None:
            self._set_limits(self._runtime.limits)

    def _keep_to_budget(self) -> None:
        self.budget.limit_bytes = self.settings.budget_bytes
        self.store.cached_bytes = cached_bytes(self.settings.budget_bytes)

    def _move_to(self, location: str) -> None:
        store, journal = self.store, self._journal
        self._open_store(location)
        self._operation.arrivals = self.arrivals
        journal.close()
        store.close()
        self._recover()

    def _set_limits(self, limits: Limits) -> None:
        """Tells the running operators the settings that may change at any time."""
        limits.step_rows = self.settings.step_rows
        limits.driver_rows = self.settings.driver_rows
        limits.by_cost = self.settings.place_by == "cost"
        limits.asks_spark = self.settings.small_steps == "spark"
        limits.processors = self.settings.processors or limits.buckets

    # -- functions of the user -------------------------------------------------------------

    def register_function(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[Type | str],
        result: Type | str,
    ) -> None:
        """Makes a function of Arrow arrays one of CQL; it must be deterministic, row by row.

        It gets an array for each parameter, NULLs included, and gives one of the same length.
        """
        with self._lock:
            self._check_open()
            replaces = self._register_function(name, function, parameters, result)
            if replaces and self._journal.is_durable:
                self.compact_log()  # so that it speaks of the other one no more

    def _register_function(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: Sequence[Type | str],
        result: Type | str,
    ) -> bool:
        """Registers a function; whether it takes the place of another one."""
        from millpond.spark.user_functions import user_function

        key = checked_name(name)
        made = user_function(key, function, *checked_types(key, parameters, result))
        before = self.catalog.functions.get(key)
        if before not in (None, made) and before in self.needed_functions():
            raise StateError(
                f"function {key}: another one of this name is in use; DROP the views and queries "
                "that call it first, or choose another name"
            )
        self.catalog.functions[key] = made
        return before not in (None, made)

    def needed_functions(self) -> list[UserFunction]:
        """The functions of the user that views and queries call."""
        plans = [
            entry.plan for kind in (ViewEntry, QueryEntry) for entry in self.catalog.of_kind(kind)
        ]
        return list(dict.fromkeys(each for plan in plans for each in needed_functions(plan)))

    # -- relations -------------------------------------------------------------------------

    def _insert(self, action: Insert) -> None:
        self.inputs.push(action.relation, list(action.rows))

    def _modify(
        self,
        name: str,
        predicate: Expression | None,
        new: tuple[Expression, ...] | None,
        statement: Statement,
    ) -> None:
        """DELETE, and UPDATE as removal and insertion, decided on the present content."""
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
                noted(statement, self._journal)
                self.inputs.change(intake, old, at, -1)
                if changed is not None:
                    self.inputs.change(intake, changed, at, 1)
                self.memory.done(statement)
                self._journal.flush()
                return

    def _evaluate(
        self,
        intake: RelationIntake,
        rows: pa.Table,
        predicate: Expression | None,
        new: tuple[Expression, ...] | None,
    ) -> tuple[pa.Table, pa.Table | None]:
        everything = tuple(
            Column(i, f.type, f.name) for i, f in enumerate(intake.entry.schema.fields)
        )
        schema = arrow_schema(intake.entry.schema)

        def evaluated(expressions: tuple[Expression, ...]) -> pa.Table:
            parts = expressions if predicate is None else (*expressions, predicate)
            if all(map(can_lower, parts)):
                table = modify.evaluate(rows, predicate, expressions)
            else:
                from millpond.spark.modify import evaluate

                table = evaluate(self.spark, rows, predicate, expressions)
            return table.rename_columns(schema.names).cast(schema)

        return evaluated(everything), None if new is None else evaluated(new)

    # -- input -----------------------------------------------------------------------------

    def push(self, name: str, rows: Any) -> None:
        """Adds tuples to a stream, or rows to a relation at the current time.

        ``rows`` are dicts or tuples in schema order, an Arrow table, or a pandas data frame.
        """
        self._wait_for_room(as_text(name, "a name"))
        with self._lock:
            self._check_open()
            self.inputs.push(name, rows)
            self._journal.flush()

    def push_changes(self, name: str, changes: Iterable[tuple[Any, str, Any]]) -> None:
        """Adds ``(ts, '+' or '-', row)`` to a relation; ts None means the beginning."""
        self._wait_for_room(as_text(name, "a name"))
        with self._lock:
            self._check_open()
            self.inputs.push_changes(name, changes)
            self._journal.flush()

    def _has_room(self, name: str, is_live: bool = False) -> bool:
        """Whether an input may have more."""
        if self._runtime is None:
            return self.store.bytes < self.budget.limit_bytes or not self._outputs
        queues = self.inputs.queues_of(name)
        return self.budget.has_room(self._runtime.backlog, queues, is_live)

    def _wait_for_room(self, name: str) -> None:
        """Waits while there is no room, and work that makes some; the lock is not held.

        When there is none, this may be what is waited for: it is let in, and others are spilled.
        """
        with self._lock:
            self._check_open()
            if self._has_room(name):
                return
        if self._operation.is_inside:
            raise StateError(
                f"push to {name}: as much waits as the {self.budget} allows, and the loop that "
                "could work on it waits for this callback; push from another thread, or SET budget"
            )
        self._operation.wait_for(lambda: self._closed or self._has_room(name))

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
        if queue.last_page_rows > self.settings.driver_rows:
            self._expect_spark()
        if self._runtime is not None:
            self._runtime.arrived(queue.name)
        self.arrivals.has_news = True
        self._wake()

    def _wake(self) -> None:
        """Something has come: the loop is to look at it."""
        self._operation.wake()
        if self._runtime is not None:
            self._runtime.wake()

    def _expect_spark(self) -> None:
        """Starts Spark in the background: steps are to come that need it."""
        if self._outputs and not self._journal.is_replaying:
            self.lazy_spark.start_ahead(self.settings, self.store)

    # -- running ---------------------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started now if it was not yet."""
        return self.lazy_spark.session(self.settings, self.store)

    @property
    def has_runtime(self) -> bool:
        """Whether operators run already, or were taken up from a store."""
        return self._runtime is not None

    @property
    def runtime(self) -> SparkRuntime:
        """The running operators on Spark."""
        if self._runtime is None:
            from millpond.spark.runtime import SparkRuntime
            from millpond.spark.surroundings import Limits

            with self._lock:
                cores = self.lazy_spark.cores(self.settings, self.store)
                limits = Limits(seed=self.settings.seed, buckets=cores)
                self._set_limits(limits)
                self._runtime = SparkRuntime(
                    lambda: self.spark,
                    self.graph,
                    self.inputs.queues,
                    self.store,
                    self,
                    limits,
                    self._lock,
                    lambda: self.lazy_spark.is_started,
                )
                self._start_operators(self.graph.operators)
                for entry in self.catalog.of_kind(QueryEntry):
                    self._runtime.set_weight(entry.name, entry.weight)
        return self._runtime

    def _start_operators(self, identities: Iterable[str]) -> None:
        if self._runtime is not None:
            self._runtime.start(identities, self.inputs.since, BEGINNING - 1)

    def _strategy(self) -> Strategy:
        settings = self.settings
        return engine_strategy(settings.strategy, settings.budget_bytes, settings.mode)

    def run_until_idle(self) -> None:
        """Works until every query is as far as its inputs allow."""
        self._check_open()
        self._operation.run(lambda: self._operation.work(Feed()))
        self._raise_failures()

    def run_sources(
        self,
        report: Report | None = None,
        seconds: float | None = None,
        rows: int | None = None,
    ) -> None:
        """Reads the sources of running queries, always the one that is furthest behind, and works.

        It ends with the sources, or after so many ``seconds`` or ``rows`` of each source; a later
        call reads on.
        """
        self._check_open()
        feed = self._feed(report, ReadLimits(seconds, rows))
        self._operation.run(lambda: self._operation.work(feed))
        self._raise_failures()

    def finish(
        self,
        report: Report | None = None,
        seconds: float | None = None,
        rows: int | None = None,
    ) -> None:
        """Reads sources as ``run_sources`` does, ends all that is read, and works to the end."""
        self._check_open()
        feed = self._feed(report, ReadLimits(seconds, rows))
        self._operation.run(lambda: self._finish(feed))
        self._raise_failures()

    def start(self) -> None:
        """Works in the background from now on, as pushes come and sources deliver."""
        self._check_open()
        self._operation.start()

    def stop(self, drain: bool = True) -> None:
        """Ends the work in the background; ``drain``: only once all that has come is done."""
        self._operation.stop(drain)

    def _finish(self, feed: Feed) -> None:
        self._operation.work(feed)
        with self._lock:
            self.inputs.end(self.graph)
        self._operation.work(Feed())

    def _feed(self, report: Report | None, limits: ReadLimits) -> Feed:
        """What a run takes; one that goes on with an earlier one counts the rows of both."""
        taken, self.inputs.taken_before = self.inputs.taken_before, {}
        return Feed(Allowance(limits, taken), report)

    def _read(self, reading: SourceReading) -> None:
        """Reads a page of a source, here or where the executors are; the lock is not held."""
        reading.line = self._read_elsewhere(reading)
        if reading.line is None:
            reading.read()

    def _read_elsewhere(self, reading: SourceReading) -> dict[str, Any] | None:
        """Has the executors read a page where files hold more rows than are for the driver."""
        intake, settings = self.inputs.streams.get(reading.name), self.settings_now
        most = settings.driver_rows
        is_large = settings.page_rows > most and (not most or reading.rows_left > most)
        if is_large:
            self._expect_spark()
        if intake is None or not is_large or not reading.can_be_elsewhere:
            return None
        may_wait = most == 0 or settings.place_by == "rows"
        if not may_wait and not self.lazy_spark.is_started:
            return None  # while Spark starts there is work for the driver
        from millpond.spark.sources import read_page

        with self._lock:
            work = {
                "admission": self.inputs.admission(reading),
                "settings": settings,
                "directory": str(self._directory.absolute()),
                "rows": reading.taken,
                "now": intake.now_ticks(),
            }
        return read_page(self.spark, self.store, work)

    def _turn(self, feed: Feed, is_idle: bool) -> bool:
        """Takes what has come, and has the loop take a turn; whether there was anything to do."""
        with self._lock:
            has_news = self.arrivals.deliver(feed, is_idle)
            if self._closed:
                return False
            self._make_room()
            if not self._outputs:
                self._journal.flush()
                return has_news
            if feed.promises and (has_news or is_idle):
                self.inputs.promise(self.settings)
                self.arrivals.has_news = False
            self._journal.flush()
        if self._loop is None:
            self._loop = SchedulingLoop(self.runtime, self._strategy())
        try:
            return self._loop.turn() or has_news
        except BaseException:
            self.runtime.cancel()
            raise

    def _make_room(self) -> None:
        """Spills what memory has no room for, or fails the queries that need too much of it."""
        if self._runtime is None:
            return
        crowded = self.budget.keep(self._runtime.backlog, self._runtime.queues)
        if crowded is None:
            return
        retaining = self._runtime.retaining(crowded)
        queries = dict.fromkeys(query.removesuffix(ASIDE) for query in retaining)
        operator = self.graph.operators.get(crowded)
        error = StateError(
            f"{'query' if len(queries) == 1 else 'queries'} {', '.join(queries)}: what windows "
            f"retain of {operator.label() if operator else crowded.replace(':', ' ')} is more than "
            f"the {self.budget} allows, and it cannot be spilled: {self.budget.fault}; "
            "SET budget, or ask for shorter windows"
        )
        now = self._runtime.queues[crowded].heartbeat
        self.fail([Failure(q, "windows", str(error), now, now, ()) for q in queries], error)

    def _raise_failures(self) -> None:
        with self._lock:
            self._failures.raise_untold()

    # -- what the running operators tell ---------------------------------------------------

    def put_out(self, query: str, page: Page | None, until: int) -> None:
        """A query has put out a page, or nothing; it is complete up to a time."""
        self.deliveries.put_out(query, page, until)

    def committed(self, identity: str, step: Step) -> None:
        """A step is about to be published."""
        self.inputs.moved()
        if step.outcome is not None and self._journal.is_durable:
            page, state = step.published, step.running.state
            self._journal.note(
                "step",
                operator=identity,
                until=step.reached,
                page=None if page is None else page.reference(),
                state=None if state is None else state.reference(step.outcome.state),
            )

    def skipped(self, identity: str, until: int) -> None:
        """An operator has passed a time in which nothing happened."""
        self.inputs.moved()
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

    def cut(self, cut: Cut) -> None:
        """A part of an operator is about to be one itself, or to be a part again."""
        self._journal.note("cut", **asdict(cut))

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
        self.lazy_spark.has_died()

    def after_commit(self) -> None:
        """Hands on what was put out; callbacks run without the lock."""
        with self._lock:
            self._journal.flush()
            if self._journal.is_long:
                self.compact_log()
            self._operation.wake()
        self.deliveries.hand_on(self.fail)

    # -- after a restart -------------------------------------------------------------------

    def _recover(self) -> None:
        """Goes on where an earlier run with this store has ended."""
        if not self._journal.is_durable:
            return
        try:
            self._replay(Replay(self))
        except BaseException:
            self.close()
            raise

    def _replay(self, replay: Replay) -> None:
        self._journal.is_replaying, keeps = True, self._keeps_results
        for record in self._journal.records():
            _ = self.runtime
            replay.act(record)
        self._journal.is_replaying = False
        self._failures.told()
        self.memory.recovered()
        self.inputs.free()
        self.store.run = replay.runs + 1
        self.opened = self._journal.note(**replay.opening(keeps))
        self.store.remove_garbage(self._file_names())
        for key, entry in self.catalog.entries.items():
            match entry:
                case StreamEntry() | RelationEntry():
                    self._resume_source(key, entry)
                case QueryEntry():
                    self.deliveries.of(key).sink = self._sink_of(entry, replay.marks.get(key))
                    self.deliveries.has_news(key)
        self._journal.flush()
        if self._journal.is_long:
            self.compact_log()

    def keep_results(self, keeps: bool) -> None:
        """Whether results are kept once sinks and subscribers have them."""
        self._keeps_results = keeps
        for log in self.deliveries:
            log.is_kept = keeps

    def _resume_source(self, key: str, entry: StreamEntry | RelationEntry) -> None:
        is_read_once = isinstance(entry, RelationEntry) and not entry.has_changes
        has_ended = self.inputs.read_rows.get(key, 0) < 0
        if entry.source.name != "push" and not is_read_once and not has_ended:
            source = open_source(entry, self.settings_now, self._directory, self.claims)
            self.inputs.resume(key, source)

    def _file_names(self) -> set[str]:
        running = () if self._runtime is None else self._runtime.running.values()
        states = {name for each in running if each.state for name in each.state.names}
        return self.inputs.file_names() | self.deliveries.file_names() | states

    def register_again(self, entry: QueryEntry, declared: Declaration, epoch: int | None) -> None:
        """Registers a query of an earlier run as it was; without an epoch it does not run."""
        self.catalog.add(entry)
        self.memory.declare(declared)
        plans = _planned(entry)
        self._add_query(replace(entry, active=False), plans, None)
        self.deliveries.of(entry.name).entry = entry
        if epoch is not None:
            self._activate(entry, plans, epoch)

    def epoch_of(self, query: str) -> int | None:
        """When a query began that runs."""
        output = self._outputs.get(query.lower())
        return None if output is None else self.graph.epochs[output]

    def compact_log(self) -> None:
        """Has the log of the store begin anew, with all there is."""
        with self._lock:
            self.inputs.free()
            self._journal.flush()
            self._journal.begin_anew(checkpoint(self) if self._journal.is_durable else None)

    # -- results ---------------------------------------------------------------------------

    def results(self, query: str, form: str = "arrow") -> Any:
        """What a query has put out so far: ``arrow``, ``pandas``, ``spark`` or ``rows``.

        Columns are ts (in ticks; NULL at the beginning), weight, and the query's own.
        """
        return self.deliveries.results(query, form)

    def left_out(self, query: str) -> pa.Table:
        """What a query with ON ERROR SKIP has left out: when, how often, why and which row."""
        entry = self.query_entry(query)
        aside = self.deliveries.aside(entry.name)
        return nothing_left_out() if aside is None else self.results(aside.entry.name)

    def subscribe(self, query: str, callback: Callback) -> None:
        """Calls back with every table of new results, complete instants in order of time."""
        if not callable(callback):
            raise StateError(f"subscribe needs a function of one table, not {callback!r}")
        with self._lock:
            self._check_open()
            self.deliveries.of(query).subscribe(callback)

    def format_time(self, query: str, ts: int | None) -> int | str | None:
        """A result's time as people read it."""
        return self.deliveries.of(query).format_time(ts)

    def result_count(self, query: str) -> int:
        """How many elements a query has put out so far, kept or not."""
        return self.deliveries.of(query).rows

    def left_out_count(self, query: str) -> int:
        """How many elements ON ERROR SKIP has left out so far, each counted when it came."""
        log = self.deliveries.aside(query)
        return 0 if log is None else log.came

    def latency(self, query: str) -> Latencies:
        """How long the results of a query took, from the arrival of their tuples."""
        with self._lock:
            return self.deliveries.of(query).latency.known()

    def query_entry(self, name: str) -> QueryEntry:
        """The catalog entry of a query."""
        entry = self.catalog.get(as_text(name, "a name"))
        if not isinstance(entry, QueryEntry):
            return self.deliveries.of(name).entry
        return entry

    def query(self, name: str) -> Query:
        """A handle on a query, for notebooks."""
        return Query(self, self.query_entry(name).name)

    # -- looking inside --------------------------------------------------------------------

    def explain(self, name: str, stage: str = "physical") -> Plan:
        """The plan of a registered query."""
        entry = self.query_entry(name)
        if stage not in ("logical", "physical", "analyze"):
            raise StateError(f'no stage "{stage}" of a plan; known: logical, physical, analyze')
        with self._lock:
            return Plan(entry.name, stage, self._plan_text(entry, stage))

    def _explain(self, action: Explain, text: str) -> Plan:
        if action.stage.lower() == "syntax":
            return Plan(action.query.name, "syntax", syntax_tree(text))
        stage = action.stage.lower()
        return Plan(action.query.name, stage, self._plan_text(action.query, stage))

    def _plan_text(self, entry: QueryEntry, stage: str) -> str:
        if stage == "analyze":
            return analysed(self, entry.name)
        plan = optimise(entry.plan, entry.on_error)
        if stage == "logical":
            return str(plan)
        if entry.name.lower() in self._outputs:
            wanted = self.graph.upstream(self._outputs[entry.name.lower()])
            groups = self._runtime.groups() if self._runtime is not None else []
            cuts = Cuts(self.graph) if self._runtime is None else self._runtime.cutting.cuts
            described = self.graph.describe(wanted, parts=cuts.names_in)
            return "\n".join([described, *_fused(groups, wanted)])
        return self.graph.explain(entry.name, plan, self.inputs.next_epoch)

    def held(self) -> AbstractContextManager[object]:
        """Has nothing change while one looks at several things."""
        return self._lock

    def output_of(self, query: str) -> str:
        """The operator that puts a query out; raises if none runs."""
        output = self._outputs.get(query.lower())
        if output is None or self._runtime is None or output not in self._runtime.running:
            raise StateError(
                f'query "{query}" does not run, so nothing was measured of it; register it with '
                "CREATE QUERY, feed it, and ask again"
            )
        return output

    def statistics(self) -> dict[str, Any]:
        """The running plan as it was measured, as plain data, for `millpond simulate`."""
        with self._lock:
            return measured_plan(self)

    def show(self, kind: str) -> pa.Table:
        """What SHOW answers."""
        with self._lock:
            return shown(self, as_text(kind, "what to show").lower())

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
            self.arrivals.close()
        self._operation.stop(drain=False)
        if self._runtime is not None:
            self._runtime.close()
        self.deliveries.settle()
        with self._lock:
            self._journal.flush()
            self.deliveries.close()
            self._journal.close()
            self.store.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _fused(groups: Iterable[tuple[str, ...]], wanted: set[str]) -> Iterator[str]:
    """A line for each virtual operator of several of these operators."""
    for group in groups:
        if len(group) > 1 and wanted.intersection(group):
            yield f"no queue between {', '.join(group)}: one virtual operator"


def _needed(action: Action) -> list[UserFunction]:
    """The functions of the user that a statement declares something with."""
    match action:
        case Create(ViewEntry(plan=plan) | QueryEntry(plan=plan)):
            return needed_functions(plan)
    return []


class _Plans(NamedTuple):
    """The plan of a query, and with ON ERROR SKIP the query of what it leaves out."""

    optimised: Node
    aside: QueryEntry | None
    optimised_aside: Node


def _planned(entry: QueryEntry) -> _Plans:
    """The plans of a query; what it leaves out is a query beside it that nobody sees."""
    optimised = optimise(entry.plan, entry.on_error)
    left = left_out(guard(entry.plan).faults) if entry.on_error == "skip" else None
    if left is None:
        return _Plans(optimised, None, optimised)
    aside = replace(entry, name=entry.name + ASIDE, plan=left, sink=None)
    return _Plans(optimised, aside, optimise(left))
