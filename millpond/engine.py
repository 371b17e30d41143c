"""The façade: one engine with its catalog, inputs, running queries and results.

Everything here wires; nothing here decides. Spark starts with the first step, so that checking and
explaining need no Java.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from millpond.catalog import Catalog, QueryEntry, RelationEntry, StreamEntry, ViewEntry
from millpond.connectors import (
    Progress,
    Source,
    arrow_schema,
    open_sink,
    open_source,
    to_arrow,
    to_ticks,
)
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
from millpond.errors import CqlError, InputError, MillpondError, StateError
from millpond.intake import (
    END,
    RelationIntake,
    StreamIntake,
    relation_page_schema,
    stream_page_schema,
)
from millpond.planning.optimise import optimise
from millpond.planning.physical import Graph
from millpond.results import Callback, ResultLog
from millpond.runtime import SchedulingLoop
from millpond.scheduling.registry import make
from millpond.schema import BEGINNING, FOREVER, Type
from millpond.settings import Settings
from millpond.spark.kernels.columns import integers
from millpond.spark.kernels.counts import net
from millpond.spark.kernels.groups import Ints
from millpond.spark.pages import PageStore
from millpond.spark.queues import Queue, Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millpond.spark.runtime import SparkRuntime

Report = Callable[[str, Progress], None]
"""Called while sources are read: the name of the input and how far it is."""


@dataclass(frozen=True)
class Plan:
    """A plan as text, shown as such in notebooks."""

    query: str
    stage: str
    text: str

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<b>{html.escape(self.query)}</b> ({self.stage})<pre>{html.escape(self.text)}</pre>"


class Query:
    """A handle on a registered query."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self.name = name

    def results(self) -> pa.Table:
        """What the query has put out."""
        return self._engine.results(self.name)

    def explain(self, stage: str = "physical") -> Plan:
        """The query's plan."""
        return self._engine.explain(self.name, stage)

    def _repr_html_(self) -> str:
        table = self.results()
        shown = table.slice(max(0, table.num_rows - 20)).to_pandas().to_html(index=False)
        entry = self._engine.query_entry(self.name)
        return (
            f"<b>{html.escape(self.name)}</b> <code>{html.escape(entry.text)}</code>"
            f"<p>{table.num_rows} result elements, the last {min(20, table.num_rows)}:</p>{shown}"
        )


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
        self._queues: dict[str, Queue] = {}
        self._streams: dict[str, StreamIntake] = {}
        self._relations: dict[str, RelationIntake] = {}
        self._sources: dict[str, tuple[Source, Iterator[pa.Table]]] = {}
        self._logs: dict[str, ResultLog] = {}
        self._outputs: dict[str, str] = {}
        self._graph = Graph()
        self._epoch = 0
        self._since: dict[int, dict[str, int]] = {}
        self._moved = False
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
                source = open_source(entry, self._settings_now(), self._directory)
                apply(action, self.catalog)
                self._add_stream(entry, source)
            case RelationEntry():
                source = open_source(entry, self._settings_now(), self._directory)
                apply(action, self.catalog)
                self._add_relation(entry, source)
            case QueryEntry():
                plan = optimise(entry.plan)
                sink = open_sink(entry, self._directory) if entry.sink else None
                apply(action, self.catalog)
                self._add_query(entry, plan, sink)
            case ViewEntry():
                apply(action, self.catalog)

    def _settings_now(self) -> Settings:
        tick = f"{self.catalog.tick_microseconds} microseconds"
        return self.settings.with_option("tick", tick)

    def _add_stream(self, entry: StreamEntry, source: Source) -> None:
        name = f"stream:{entry.name.lower()}"
        queue = Queue(name, stream_page_schema(entry.schema), self._store, True)
        self._queues[name] = queue
        tick = self.catalog.tick_microseconds
        self._streams[entry.name.lower()] = StreamIntake(entry, queue, tick)
        if entry.source.name != "push":
            self._sources[entry.name.lower()] = (source, source.pages())

    def _add_relation(self, entry: RelationEntry, source: Source) -> None:
        queue = self._relation_queue(entry, "")
        queue.readers.append(Reader(BEGINNING - 1, lambda page: page.last, needs_content=True))
        self._relations[entry.name.lower()] = RelationIntake(entry, [queue])
        if entry.source.name != "push":
            self._sources[entry.name.lower()] = (source, source.pages())
            if not entry.has_changes:
                self._read_content(entry.name.lower())

    def _relation_queue(self, entry: RelationEntry, suffix: str) -> Queue:
        name = f"relation:{entry.name.lower()}{suffix}"
        queue = Queue(name, relation_page_schema(entry.schema), self._store, False)
        self._queues[name] = queue
        return queue

    def _read_content(self, name: str) -> None:
        """A relation without timestamps is there from the beginning."""
        _, pages = self._sources.pop(name)
        for page in pages:
            self._change(name, page, self._change_time(self._relations[name]), 1)

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
        if self._moved:
            self._begin_epoch()
        output = self._graph.add_query(entry.name, plan, self._epoch)
        self._outputs[entry.name.lower()] = output
        if self._runtime is not None:
            self._start_operators()
            self._runtime.set_weight(entry.name, entry.weight)

    def _begin_epoch(self) -> None:
        """Queries registered from now on see what comes from now on."""
        self._epoch += 1
        self._moved = False
        self._since[self._epoch] = {
            intake.queue.name: intake.queue.heartbeat for intake in self._streams.values()
        }
        for intake in self._relations.values():
            queue = self._relation_queue(intake.entry, f"@{self._epoch}")
            content, promised = intake.content(), intake.queue.heartbeat
            settled = integers(content["_ts"]) <= promised
            columns = content.column_names[3:]
            now = net(content.filter(pa.array(settled)), columns, END)
            queue.append(_content_at_beginning(now, columns))
            queue.append(content.filter(pa.array(~settled)))
            queue.advance(promised)
            intake.queues.append(queue)

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
        entry = self.catalog.get(name)
        kinds = {StreamEntry: "stream", RelationEntry: "relation", ViewEntry: "view"}
        kind = kinds.get(type(entry), "query")
        apply(Drop(kind, name), self.catalog)
        key = name.lower()
        if isinstance(entry, QueryEntry):
            self._deactivate(key)
            self._logs.pop(key).close()
        self._sources.pop(key, None)
        if self._streams.pop(key, None):
            self._queues.pop(f"stream:{key}").close()
        relation = self._relations.pop(key, None)
        for queue in relation.queues if relation else []:
            self._queues.pop(queue.name).close()

    def _deactivate(self, key: str) -> None:
        output = self._outputs.pop(key, None)
        if output is None:
            return
        removed = self._graph.remove(output)
        if self._runtime is not None:
            self._runtime.stop(
                [identity for identity in removed if identity in self._runtime.running]
            )

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
            self._activate(changed, optimise(changed.plan))

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
        intake = self._relation(action.relation)
        table = to_arrow(list(action.rows), intake.entry.schema, intake.entry.name)
        self._change(action.relation.lower(), table, self._change_time(intake), 1)

    def _change(self, name: str, rows: pa.Table, at: int, weight: int) -> None:
        count = rows.num_rows
        intake = self._relations[name]
        times, weights = np.full(count, at), np.full(count, weight)
        intake.change(rows, times.astype(np.int64), weights.astype(np.int64))
        self._arrived(intake.queues, moved=at > BEGINNING)  # what is there from the start, all see

    def _change_time(self, intake: RelationIntake) -> int:
        """The current time: the largest any input has reached, and after every promise."""
        reached = [i.largest for i in self._streams.values() if i.largest is not None]
        promised = [i.queue.heartbeat for i in self._streams.values()]
        promised += [queue.heartbeat for queue in intake.queues]
        after = max(promised, default=BEGINNING - 1) + 1
        now = max([*reached, after, intake.last_change])
        return max(now, 0) if now > BEGINNING else BEGINNING

    def _modify(
        self, name: str, predicate: Expression | None, new: tuple[Expression, ...] | None
    ) -> None:
        """DELETE, and UPDATE as removal and insertion, decided by Spark on the present content."""
        intake = self._relation(name)
        old, changed = self._evaluate(intake, predicate, new)
        at = self._change_time(intake)
        self._change(name.lower(), old, at, -1)
        if changed is not None:
            self._change(name.lower(), changed, at, 1)

    def _evaluate(
        self,
        intake: RelationIntake,
        predicate: Expression | None,
        new: tuple[Expression, ...] | None,
    ) -> tuple[pa.Table, pa.Table | None]:
        from millpond.spark.modify import evaluate

        content = intake.content()
        rows = net(content, content.column_names[3:], END)
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
        key = name.lower()
        if key in self._streams:
            intake = self._streams[key]
            intake.accept(to_arrow(rows, intake.entry.schema, intake.entry.name))
            self._arrived([intake.queue])
            return
        relation = self._relation(name)
        table = to_arrow(rows, relation.entry.schema, relation.entry.name)
        self._change(key, table, self._change_time(relation), 1)

    def push_changes(self, name: str, changes: Iterable[tuple[Any, str, Any]]) -> None:
        """Adds ``(ts, '+' or '-', row)`` to a relation; ts None means the beginning."""
        self._check_open()
        intake, listed = self._relation(name), list(changes)
        signs = {"+": 1, "-": -1}
        for ts, op, _ in listed:
            if op not in signs:
                raise InputError(f"relation {name}: op must be '+' or '-', not {op!r}")
            if ts is not None and not hasattr(ts, "isoformat") and not isinstance(ts, int):
                raise InputError(f"relation {name}: {ts!r} is not a time")
        times = [BEGINNING if ts is None else self._ticks(ts) for ts, _, _ in listed]
        table = to_arrow([row for _, _, row in listed], intake.entry.schema, intake.entry.name)
        weights = np.array([signs[op] for _, op, _ in listed], dtype=np.int64)
        self._apply_changes(intake, table, np.array(times, dtype=np.int64), weights)

    def _apply_changes(
        self, intake: RelationIntake, rows: pa.Table, times: Ints, weights: Ints
    ) -> None:
        if rows.num_rows == 0:
            return
        intake.change(rows, times, weights)
        for queue in intake.queues:
            queue.advance(int(times.max()) - 1)
        self._arrived(intake.queues)

    def _ticks(self, ts: Any) -> int:
        if isinstance(ts, int):
            return ts
        ticks = to_ticks(pa.array([ts], pa.timestamp("us")), self.catalog.tick_microseconds)
        return int(ticks[0].as_py())

    def advance(self, name: str, timestamp: Any) -> None:
        """A heartbeat: promises that nothing at or before the time will follow."""
        self._check_open()
        key, ticks = name.lower(), self._ticks(timestamp)
        is_stream = key in self._streams
        queues = [self._streams[key].queue] if is_stream else self._relation(name).queues
        for queue in queues:
            queue.advance(min(ticks, END))
        self._arrived(queues)

    def _arrived(self, queues: Iterable[Queue], moved: bool = True) -> None:
        self._moved = self._moved or moved
        if self._runtime is not None:
            for queue in queues:
                self._runtime.arrived(queue.name)

    def _relation(self, name: str) -> RelationIntake:
        if name.lower() in self._relations:
            return self._relations[name.lower()]
        known = ", ".join(sorted([*self._streams, *self._relations])) or "none"
        raise StateError(f'no stream or relation "{name}"; known: {known}')

    def late(self, stream: str) -> pa.Table:
        """The tuples of a stream that came too late, as they came."""
        if stream.lower() not in self._streams:
            raise StateError(f'no stream "{stream}"; known: {", ".join(sorted(self._streams))}')
        return self._streams[stream.lower()].late

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
                self.spark, self._graph, self._queues, self._store, self._deliver, limits
            )
            self._start_operators()
            for entry in self.catalog.of_kind(QueryEntry):
                self._runtime.set_weight(entry.name, entry.weight)
        return self._runtime

    def _start_operators(self) -> None:
        if self._runtime is not None:
            self._runtime.start(self._since, BEGINNING - 1)

    def _deliver(self, query: str, table: pa.Table, until: int) -> None:
        self._logs[query.lower()].add(table, until)

    def run_until_idle(self) -> None:
        """Works until every query is as far as its inputs allow."""
        self._check_open()
        if not self._outputs:
            return
        self._promise()
        if self._loop is None:
            self._loop = SchedulingLoop(self.runtime, make(self.settings.strategy))
        self._loop.run()

    def _promise(self) -> None:
        """Heartbeats on demand: from the wall clock, and from the streams for quiet relations."""
        for intake in self._streams.values():
            if intake.entry.timestamp_column is None and intake.queue.heartbeat < END:
                self._raise([intake.queue], intake.now_ticks() - 1)
        if self.settings.clock == "wall":
            self._time_out()
        reached = max((i.queue.heartbeat for i in self._streams.values()), default=BEGINNING)
        for relation in self._relations.values():
            if not relation.entry.has_changes:
                self._raise(relation.queues, max(reached, relation.last_change))
            relation.queue.readers[0].cursor = relation.queue.heartbeat

    def _time_out(self) -> None:
        """On a wall clock, a stream that stays quiet too long follows the others."""
        reached = max((i.queue.heartbeat for i in self._streams.values()), default=BEGINNING)
        now = time.monotonic()
        for intake in self._streams.values():
            quiet = now - intake.last_arrival_seconds
            if quiet > self.settings.heartbeat_timeout_seconds:
                self._raise([intake.queue], reached)

    def _raise(self, queues: list[Queue], heartbeat: int) -> None:
        for queue in queues:
            if heartbeat > queue.heartbeat:
                queue.advance(heartbeat)
                if self._runtime is not None:
                    self._runtime.arrived(queue.name)

    def run_sources(self, report: Report | None = None) -> None:
        """Reads every source to its end, always the one that is furthest behind, and works."""
        while self._sources:
            name = min(self._sources, key=self._reached)
            self._read(name, report)
            self.run_until_idle()
        self.run_until_idle()

    def _reached(self, name: str) -> int:
        if name in self._streams:
            return self._streams[name].queue.heartbeat
        return self._relations[name].queue.heartbeat

    def _read(self, name: str, report: Report | None) -> None:
        """One page of one source; at its end the promise that nothing will follow."""
        source, pages = self._sources[name]
        page = next(pages, None)
        if report is not None:
            report(self.catalog.entries[name].name, source.progress())
        if page is None:
            del self._sources[name]
            self.advance(name, END)
        elif name in self._streams:
            self._streams[name].accept(page)
            self._arrived([self._streams[name].queue])
        else:
            times = np.asarray(page["ts"]).astype(np.int64)
            weights = np.asarray(page["weight"]).astype(np.int64)
            rows = page.select(page.column_names[2:])
            self._apply_changes(self._relations[name], rows, times, weights)

    def finish(self, report: Report | None = None) -> None:
        """Reads all sources, ends all inputs, and works until nothing can follow."""
        self._check_open()
        if self._sources:
            self.run_sources(report)
        for name in [*self._streams, *self._relations]:
            self.advance(name, END)
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
        self._log(query).subscribers.append(callback)

    def format_time(self, query: str, ts: int | None) -> int | str | None:
        """A result's time as people read it."""
        return self._log(query).format_time(ts)

    def _log(self, query: str) -> ResultLog:
        if query.lower() not in self._logs:
            known = ", ".join(log.entry.name for log in self._logs.values()) or "none"
            raise StateError(f'no query "{query}"; known: {known}')
        return self._logs[query.lower()]

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
        plan = optimise(entry.plan)
        if stage == "logical":
            return str(plan)
        if entry.name.lower() in self._outputs:
            output = self._outputs[entry.name.lower()]
            return self._graph.describe(self._graph.upstream(output))
        return self._graph.explain(entry.name, plan, self._epoch + self._moved)

    def show(self, kind: str) -> pa.Table:
        """What SHOW answers."""
        rows = list(self._shown(kind.lower()))
        return pa.Table.from_pylist(rows) if rows else pa.table({"name": pa.array([], pa.string())})

    def _shown(self, kind: str) -> Iterator[dict[str, Any]]:
        if kind == "settings":
            for key, value, meaning in self._settings_now().listing():
                yield {"setting": key, "value": value, "meaning": meaning}
            return
        kinds = {
            "streams": StreamEntry,
            "relations": RelationEntry,
            "views": ViewEntry,
            "queries": QueryEntry,
        }
        for name, wanted in kinds.items():
            for entry in self.catalog.of_kind(wanted):
                if kind in (name, "all", entry.name.lower()):
                    yield self._described(entry, name)

    def _described(self, entry: Any, kind: str) -> dict[str, Any]:
        described: dict[str, Any] = {"name": entry.name, "kind": kind.rstrip("s")}
        if kind == "queries":
            log = self._logs[entry.name.lower()]
            state = "active" if entry.active else "inactive"
            detail = f"{state}, weight {entry.weight:g}, {log.rows} result elements"
            return described | {
                "kind": "query",
                "columns": str(entry.plan.schema),
                "detail": detail,
            }
        detail = ""
        if kind == "streams":
            intake = self._streams[entry.name.lower()]
            detail = f"{entry.source}, {intake.arrived} tuples, {intake.late_count} late"
        elif kind == "relations":
            detail = str(entry.source)
        return described | {"columns": str(entry.schema), "detail": detail}

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


def _content_at_beginning(rows: pa.Table, columns: list[str]) -> pa.Table:
    """A relation's net content as elements that hold from the beginning."""
    count = rows.num_rows
    arrays = [
        pa.array(np.full(count, BEGINNING)),
        pa.array(np.full(count, FOREVER)),
        rows["_w"],
        *(rows[name] for name in columns),
    ]
    return pa.Table.from_arrays(arrays, names=["_ts", "_te", "_w", *columns])
