"""What an engine shows of itself: plans and queries in notebooks, and the answers of SHOW."""

from __future__ import annotations

import html
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from millpond.catalog import KINDS, PartitionEntry, QueryEntry, RelationEntry, StreamEntry, warned
from millpond.connectors.python_values import to_pandas
from millpond.delivery.latency import in_unit
from millpond.identities import BY_NUMBER, InputId, OperatorId
from millpond.insight.constraints import constraint_rows
from millpond.insight.partitions import partition_rows, thread_rows
from millpond.insight.punctuations import punctuation_rows
from millpond.insight.quality import quality_rows
from millpond.intake.promises import behind_ticks
from millpond.planning.convergence import foreseen
from millpond.settings import format_duration
from millpond.sharing.beginnings import told_merge
from millpond.sharing.queries import Queries
from millpond.sharing.waits import wait_of

if TYPE_CHECKING:
    from millpond.execution.operators.running import RunningOperator
    from millpond.execution.places import Places
    from millpond.execution.statistics import Tally

SHOWN_ROWS = 20
"""How many of its last results a query shows in a notebook."""


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


class Answering(Protocol):
    """Who answers for queries: the engine."""

    def results(self, query: str, form: str = "arrow") -> Any:
        """What a query has put out so far."""

    def explain(self, name: str, stage: str = "physical") -> Plan:
        """The plan of a registered query."""

    def query_entry(self, name: str) -> QueryEntry:
        """The catalog entry of a query."""


class Query:
    """A handle on a registered query."""

    def __init__(self, engine: Answering, name: str) -> None:
        self._engine = engine
        self.name = name

    def results(self) -> pa.Table:
        """What the query has put out."""
        table: pa.Table = self._engine.results(self.name)
        return table

    def explain(self, stage: str = "physical") -> Plan:
        """The query's plan."""
        return self._engine.explain(self.name, stage)

    def _repr_html_(self) -> str:
        table = self.results()
        last = min(SHOWN_ROWS, table.num_rows)
        rows = to_pandas(table.slice(table.num_rows - last)).to_html(index=False)
        entry = self._engine.query_entry(self.name)
        return (
            f"<b>{html.escape(self.name)}</b> <code>{html.escape(entry.text)}</code>"
            f"<p>{table.num_rows} result elements, the last {last}:</p>{rows}"
        )


def shown(queries: Queries, what: str) -> pa.Table:
    """What SHOW answers: ``settings``, a kind in the plural, ``all``, or one name."""
    if what == "failures":
        rows = [
            vars(failure) | {"rows": "; ".join(failure.rows)} for failure in list(queries.failures)
        ]
    elif what in _TABLES:
        rows = list(_TABLES[what](queries))
    else:
        rows = list(_settings(queries) if what == "settings" else _entries(queries, what))
    return pa.Table.from_pylist(rows) if rows else pa.table({"name": pa.array([], pa.string())})


def _steps(queries: Queries) -> Iterator[dict[str, Any]]:
    if not queries.has_runtime:
        return
    for identity, measured in queries.runtime.statistics.items():
        tally = measured.tally
        yield {
            "operator": identity,
            "does": queries.graph.operators[identity].label(),
            "queries": queries.groups.told(queries.runtime.picture.queries(identity)),
            "steps": tally.steps,
            "rows in": tally.rows_in,
            "rows out": tally.rows_out,
            "seconds": round(tally.seconds, 3),
            "in driver": tally.driver_steps,
            "on executors": tally.executor_steps,
            **_costs(queries.runtime.running[identity].places),
            "place": _place(queries.runtime.running[identity], tally),
            "driver bytes": tally.driver_bytes,
        }


def _queues(queries: Queries) -> Iterator[dict[str, Any]]:
    """What lies behind each input and operator, for each that reads it."""
    if not queries.has_runtime:
        return
    runtime = queries.runtime
    group_of = {each: group for group in runtime.groups() for each in group}
    for name, queue in queries.ground.inputs.queues.items():
        waiting, by_hand = runtime.backlog.of(name), runtime.placement.by_hand
        said = by_hand.get(name) if isinstance(name, OperatorId) else None
        for reader in queries.graph.readers(name):
            yield {
                "after": name,
                "before": reader,
                "queue": "no" if name in group_of[reader] else "yes",
                "by hand": "" if said is None else "queue" if said else "no queue",
                "waiting rows": runtime.running[reader].waiting_in(queue),
                "waiting bytes": waiting.bytes,
                "retained rows": queue.rows - waiting.rows,
                "retained bytes": queue.bytes - waiting.bytes,
                "spilled bytes": queue.spilled_bytes,
            }


def _sharing(queries: Queries) -> Iterator[dict[str, Any]]:
    """Which queries run as one, which operators several queries or groups read, or will read."""
    graph, groups = queries.graph, queries.groups

    def row(
        shared: str,
        names: Sequence[str],
        operators: Iterable[str],
        output: OperatorId,
        when: str = "",
    ) -> dict[str, Any]:
        return {
            "shared": shared,
            "by": len(groups.expanded(names)),
            "queries": groups.told(names),
            "operators": ", ".join(operators),
            "does": graph.operators[output].label(),
            "when": when,
        }

    for group in groups:
        own = [i for i in graph.upstream(group.output) if graph.serves(i) == 1]
        yield row(group.name, [group.name], sorted(own, key=BY_NUMBER), group.output)
    for identity in graph.operators:
        if graph.serves(identity) > 1:
            yield row(identity, graph.queries(identity), [identity], identity)
    for each in foreseen(graph.copy()):
        names = list(dict.fromkeys(graph.queries(each.first) + graph.queries(each.later)))
        both, when = (each.first, each.later), told_merge(queries, each)
        yield row(each.first, names, both, each.first, when)


def _costs(places: Places) -> dict[str, str]:
    """What a step is thought to cost in each place."""
    return {
        f"{place} cost": f"{1e3 * line.step:.1f} ms + {1e6 * line.row:.2f} µs a row"
        for place, line in places.lines.items()
    }


def _place(running: RunningOperator, tally: Tally) -> str:
    """Where a step of usual size runs, and why."""
    return running.place_reason(round(tally.rows_in / max(1, tally.steps)))


def _statistics(queries: Queries) -> Iterator[dict[str, Any]]:
    """Rates are those of the last seconds, sizes and selectivities those of the last steps."""
    if not queries.has_runtime:
        return
    runtime = queries.runtime
    now = time.monotonic()
    for identity, measured in runtime.statistics.items():
        running, tally = runtime.running[identity], measured.tally
        yield {
            "operator": identity,
            "does": queries.graph.operators[identity].label(),
            "selectivity": round(measured.selectivity, 6),
            **_costs(running.places),
            "arriving rows/s": round(_arriving(queries, identity), 3),
            "rows in/s": round(measured.inputs.per_second(now), 3),
            "rows out/s": round(measured.outputs.per_second(now), 3),
            "load": round(measured.busy.per_second(now), 4),
            "bytes a row in": round(measured.input_bytes, 1),
            "bytes a row out": round(measured.output_bytes, 1),
            "bytes in": round(tally.bytes_in),
            "bytes out": tally.bytes_out,
            "waiting rows": running.waiting(running.claimed, running.horizon),
        }


def _arriving(queries: Queries, identity: OperatorId) -> float:
    """Rows a second that come into the queues that an operator reads."""
    runtime = queries.runtime
    return sum(runtime.queues[q].arrivals.per_second() for q in runtime.running[identity].inputs)


def _latency(queries: Queries) -> Iterator[dict[str, Any]]:
    for entry in queries.ground.catalog.of_kind(QueryEntry):
        known = queries.ground.deliveries.latency(entry.name)
        yield {
            "query": entry.name,
            "results": known.results,
            "mean": in_unit(known.mean_seconds),
            "p50": in_unit(known.p50_seconds),
            "p95": in_unit(known.p95_seconds),
            "p99": in_unit(known.p99_seconds),
            "largest": in_unit(known.largest_seconds),
            "without arrival": known.without_arrival,
        }


def _functions(queries: Queries) -> Iterator[dict[str, Any]]:
    for function in queries.ground.catalog.functions.values():
        yield {"function": str(function)}


def _warnings(queries: Queries) -> Iterator[dict[str, Any]]:
    """What views and queries say and is hardly meant."""
    for entry in warned(queries.ground.catalog):
        for each in entry.warnings:
            line, column = each.position.line, each.position.column
            yield {"name": entry.name, "line": line, "column": column, "warning": each.message}


def _settings(queries: Queries) -> Iterator[dict[str, Any]]:
    for key, value, meaning, change in queries.ground.settings_now.listing():
        yield {"setting": key, "value": value, "meaning": meaning, "changes": change}


def _entries(queries: Queries, what: str) -> Iterator[dict[str, Any]]:
    texts = {each.name.lower(): each.text for each in queries.ground.memory.living()}
    for kind, entries in KINDS.items():
        plural = "queries" if kind == "query" else kind + "s"
        for entry in queries.ground.catalog.of_kind(entries):
            if what in (plural, "all", entry.name.lower()):
                schema = entry.plan.schema if isinstance(entry, QueryEntry) else entry.schema
                detail = _detail(queries, entry)
                yield {
                    "name": entry.name,
                    "kind": kind,
                    "columns": str(schema),
                    "detail": detail,
                    "text": texts.get(entry.name.lower(), ""),
                }


def _detail(queries: Queries, entry: Any) -> str:
    match entry:
        case QueryEntry():
            failed = any(failure.query == entry.name for failure in list(queries.failures))
            state = "failed" if failed else "active" if entry.active else "inactive"
            count = queries.ground.deliveries.of(entry.name).rows
            aside = queries.ground.deliveries.left_out_count(entry.name)
            skipped = f", {aside} left out" if aside else ""
            known = queries.ground.deliveries.latency(entry.name)
            latency = f", latency {known}" if known.results else ""
            wait = wait_of(queries, entry.name)
            waits = "" if wait is None else f", {wait}"
            where = f", partition {entry.partition}" if entry.partition else ""
            said = f"{state}, weight {entry.weight:g}{where}, {count} result elements{skipped}"
            return f"{said}{latency}{waits}"
        case StreamEntry():
            intake = queries.ground.inputs.streams[entry.identity]
            come = f"{entry.source}, {intake.arrived} tuples, {intake.late_count} late"
            log = queries.ground.deliveries.bad_rows(entry.name)
            bad = "" if log is None else f", {log.rows} bad rows put aside"
            broken = f", {intake.violating_count} violating" if intake.violating_count else ""
            return come + bad + broken + _behind(queries, entry) + _held(queries, entry.name)
        case PartitionEntry():
            return str(entry)
        case RelationEntry():
            return str(entry.source) + _held(queries, entry.name)
    return ""


_TABLES: dict[str, Callable[[Queries], Iterator[dict[str, Any]]]] = {
    "steps": _steps,
    "queues": _queues,
    "partitions": partition_rows,
    "threads": thread_rows,
    "statistics": _statistics,
    "latency": _latency,
    "functions": _functions,
    "sharing": _sharing,
    "constraints": constraint_rows,
    "punctuations": punctuation_rows,
    "quality": quality_rows,
    "warnings": _warnings,
}
"""What SHOW answers by itself, not from the catalog."""


def _behind(queries: Queries, entry: StreamEntry) -> str:
    """How far its time is behind that of the stream furthest."""
    ticks = behind_ticks(queries.ground.inputs, entry.identity)
    length = format_duration((ticks or 0) * queries.ground.catalog.tick_microseconds)
    return f", {length} behind" if ticks else ""


def _held(queries: Queries, name: str) -> str:
    """Whether a source is held back."""
    is_held = InputId(name) in queries.ground.inputs.held
    return f", held back: as much waits as the {queries.ground.budget} allows" if is_held else ""
