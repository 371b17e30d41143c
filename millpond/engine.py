"""The façade: one engine with its catalog, inputs, running queries and results.

Everything here wires; nothing here decides. Spark starts with the first step, so that checking and
explaining need no Java.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry, ViewEntry
from millpond.connectors import arrow_schema, open_sink, open_source
from millpond.cql import apply, check_statement, split_statements, syntax_tree
from millpond.cql.algebra import Node, StreamScan
from millpond.cql.expressions import Column, Expression
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
from millpond.display import Plan, Query, kind_of, shown
from millpond.errors import CqlError, MillpondError, StateError
from millpond.inputs import Inputs, Report
from millpond.intake import RelationIntake
from millpond.planning.optimise import optimise
from millpond.planning.physical import Graph
from millpond.results import Callback, ResultLog
from millpond.runtime import SchedulingLoop
from millpond.scheduling.registry import make
from millpond.schema import BEGINNING, Type
from millpond.settings import Settings
from millpond.storage.pages import PageStore
from millpond.storage.queues import Queue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millpond.spark.runtime import SparkRuntime


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
    ) -> None:
        if isinstance(settings, dict):
            settings = Settings().with_options(settings)
        self.settings = settings or Settings()
        self.catalog = Catalog(tick_microseconds=self.settings.tick_microseconds)
        self._directory = Path(directory or ".")
        self._keep_results = keep_results
        self._session = spark
        self._store = PageStore()
        self.inputs = Inputs(self.catalog, self._store, self._arrived)
        self._logs: dict[str, ResultLog] = {}
        self._outputs: dict[str, str] = {}
        self._graph = Graph()
        self._runtime: SparkRuntime | None = None
        self._loop: SchedulingLoop | None = None
        self._closed = False
        make(self.settings.strategy)

    # -- statements ------------------------------------------------------------------------

    def execute(self, script: str, name: str = "<script>") -> list[Any]:
        """Runs the statements of a script; the answers of SHOW and EXPLAIN, in order."""
        self._check_open()
        answers = []
        for text, position in split_statements(script):
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
            case Create():
                self._create(action)
            case Drop():
                self.drop(action.name)
            case Insert():
                self._insert(action)
            case Delete():
                self._modify(action.relation, action.predicate, None)
            case Update():
                self._modify(action.relation, action.predicate, action.expressions)
            case AlterQuery():
                self._alter(action)
            case SetOption():
                self._set(action)
            case Show():
                return self.show(action.kind)
            case Explain():
                return self._explain(action, text)
        return None

    def _create(self, action: Create) -> None:
        entry = action.entry
        match entry:
            case StreamEntry():
                source = open_source(entry, self.settings_now, self._directory)
                apply(action, self.catalog)
                self.inputs.add_stream(entry, source)
            case RelationEntry():
                source = open_source(entry, self.settings_now, self._directory)
                apply(action, self.catalog)
                self.inputs.add_relation(entry, source)
            case QueryEntry():
                plan = optimise(entry.plan, entry.on_error)
                sink = open_sink(entry, self._directory) if entry.sink else None
                apply(action, self.catalog)
                self._add_query(entry, plan, sink)
            case ViewEntry():
                apply(action, self.catalog)

    @property
    def settings_now(self) -> Settings:
        """The settings with the tick that SET may have changed."""
        tick = f"{self.catalog.tick_microseconds} microseconds"
        return self.settings.with_option("tick", tick)

    def _add_query(self, entry: QueryEntry, plan: Node, sink: Any) -> None:
        log = ResultLog(
            entry,
            self.catalog.tick_microseconds,
            self._in_timestamps(entry.plan),
            sink,
            self._keep_results,
        )
        self._logs[entry.name.lower()] = log
        if entry.active:
            self._activate(entry, plan)

    def _activate(self, entry: QueryEntry, plan: Node) -> None:
        output = self._graph.add_query(entry.name, plan, self.inputs.epoch())
        self._outputs[entry.name.lower()] = output
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
        self._check_open()
        entry = self.catalog.get(name)
        apply(Drop(kind_of(entry), name), self.catalog)
        key = name.lower()
        if isinstance(entry, QueryEntry):
            self._deactivate(key)
            self._logs.pop(key).close()
        self.inputs.drop(key)

    def _deactivate(self, key: str) -> None:
        output = self._outputs.pop(key, None)
        if output is None:
            return
        removed = self._graph.remove(output)
        if self._runtime is not None:
            self._runtime.stop(
                [identity for identity in removed if identity in self._runtime.running]
            )
        self.inputs.forget_epochs(set(self._graph.epochs.values()))

    def _alter(self, action: AlterQuery) -> None:
        entry = self.query_entry(action.name)
        apply(action, self.catalog)
        changed = self.query_entry(action.name)
        self._logs[action.name.lower()].entry = changed
        if self._runtime is not None:
            self._runtime.set_weight(changed.name, changed.weight)
        if entry.active and not changed.active:
            self._deactivate(action.name.lower())
        elif changed.active and not entry.active:
            self._activate(changed, optimise(changed.plan, changed.on_error))

    def _set(self, action: SetOption) -> None:
        settings = self.settings.with_option(action.key, str(action.value))
        strategy = make(settings.strategy)
        if action.key.lower() == "tick":
            apply(action, self.catalog)
        self.settings = settings
        if action.key.lower() == "strategy" and self._loop is not None:
            self._loop.strategy = strategy

    # -- relations -------------------------------------------------------------------------

    def _insert(self, action: Insert) -> None:
        self.inputs.relation(action.relation)
        self.inputs.push(action.relation, list(action.rows))

    def _modify(
        self, name: str, predicate: Expression | None, new: tuple[Expression, ...] | None
    ) -> None:
        """DELETE, and UPDATE as removal and insertion, decided by Spark on the present content."""
        intake = self.inputs.relation(name)
        old, changed = self._evaluate(intake, predicate, new)
        at = self.inputs.change_time(intake)
        self.inputs.change(intake, old, at, -1)
        if changed is not None:
            self.inputs.change(intake, changed, at, 1)

    def _evaluate(
        self,
        intake: RelationIntake,
        predicate: Expression | None,
        new: tuple[Expression, ...] | None,
    ) -> tuple[pa.Table, pa.Table | None]:
        from millpond.spark.modify import evaluate

        rows = intake.content().drop_columns(["_te"])
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
        self._check_open()
        self.inputs.push(name, rows)

    def push_changes(self, name: str, changes: Iterable[tuple[Any, str, Any]]) -> None:
        """Adds ``(ts, '+' or '-', row)`` to a relation; ts None means the beginning."""
        self._check_open()
        self.inputs.push_changes(name, changes)

    def advance(self, name: str, timestamp: Any) -> None:
        """A heartbeat: promises that nothing at or before the time will follow."""
        self._check_open()
        self.inputs.advance(name, timestamp)

    def late(self, stream: str) -> pa.Table:
        """The tuples of a stream that came too late, as they came."""
        return self.inputs.late(stream)

    def _arrived(self, queue: Queue) -> None:
        if self._runtime is not None:
            self._runtime.arrived(queue.name)

    # -- running ---------------------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started now if it was not yet."""
        if self._session is None:
            from millpond.spark.session import create_session

            self._session = create_session(self.settings)
        return self._session

    @property
    def runtime(self) -> SparkRuntime:
        """The running operators on Spark."""
        if self._runtime is None:
            from millpond.spark.runtime import SparkRuntime
            from millpond.spark.surroundings import Limits

            limits = Limits(
                step_rows=self.settings.step_rows,
                driver_rows=self.settings.driver_rows,
                partitions=self.spark.sparkContext.defaultParallelism,
                seed=self.settings.seed,
            )
            self._runtime = SparkRuntime(
                self.spark, self._graph, self.inputs.queues, self._store, self._deliver, limits
            )
            self._start_operators()
            for entry in self.catalog.of_kind(QueryEntry):
                self._runtime.set_weight(entry.name, entry.weight)
        return self._runtime

    def _start_operators(self) -> None:
        if self._runtime is not None:
            self._runtime.start(self.inputs.since, BEGINNING - 1)

    def _deliver(self, query: str, table: pa.Table, until: int) -> None:
        self._logs[query.lower()].add(table, until)

    def run_until_idle(self) -> None:
        """Works until every query is as far as its inputs allow."""
        self._check_open()
        if not self._outputs:
            return
        self.inputs.promise(self.settings)
        if self._loop is None:
            self._loop = SchedulingLoop(self.runtime, make(self.settings.strategy))
        self._loop.run()
        self.runtime.raise_failures()

    def run_sources(self, report: Report | None = None) -> None:
        """Reads every source to its end, always the one that is furthest behind, and works."""
        while self.inputs.sources:
            self.inputs.read(report)
            self.run_until_idle()
        self.run_until_idle()

    def finish(self, report: Report | None = None) -> None:
        """Reads all sources, ends all inputs, and works until nothing can follow."""
        self._check_open()
        if self.inputs.sources:
            self.run_sources(report)
        self.inputs.end()
        self.run_until_idle()

    # -- results ---------------------------------------------------------------------------

    def results(self, query: str, form: str = "arrow") -> Any:
        """What a query has put out so far: ``arrow``, ``pandas``, ``spark`` or ``rows``.

        Columns are ts (in ticks; NULL at the beginning), weight, and the query's own.
        """
        table = self._log(query).table()
        match form:
            case "arrow":
                return table
            case "pandas":
                return table.to_pandas()
            case "spark":
                return self.spark.createDataFrame(table)
            case "rows":
                return table.to_pylist()
        raise StateError(f'no form "{form}"; known: arrow, pandas, spark, rows')

    def subscribe(self, query: str, callback: Callback) -> None:
        """Calls back with every table of new results, complete instants in order of time."""
        self._check_open()
        if not callable(callback):
            raise StateError(f"subscribe needs a function of one table, not {callback!r}")
        self._log(query).subscribers.append(callback)

    def format_time(self, query: str, ts: int | None) -> int | str | None:
        """A result's time as people read it."""
        return self._log(query).format_time(ts)

    def _log(self, query: str) -> ResultLog:
        if query.lower() not in self._logs:
            known = ", ".join(log.entry.name for log in self._logs.values()) or "none"
            raise StateError(f'no query "{query}"; known: {known}')
        return self._logs[query.lower()]

    def result_count(self, query: str) -> int:
        """How many elements a query has put out so far, kept or not."""
        return self._log(query).rows

    def query_entry(self, name: str) -> QueryEntry:
        """The catalog entry of a query."""
        entry = self.catalog.get(name)
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
            return self._graph.describe(self._graph.upstream(output))
        return self._graph.explain(entry.name, plan, self.inputs.next_epoch)

    def show(self, kind: str) -> pa.Table:
        """What SHOW answers."""
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
        if self._closed:
            return
        self._closed = True
        for log in self._logs.values():
            log.close()
        if self._runtime is not None:
            self._runtime.close()
        self._store.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
