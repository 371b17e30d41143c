"""What SHOW and EXPLAIN say of the constraints of streams."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from millpond.catalog import Constraint, StreamEntry, promised
from millpond.cql.expressions import Expression
from millpond.entities.catalogued import quoted
from millpond.identities import BY_NUMBER, OperatorId, StreamId
from millpond.intake.intake import StreamIntake
from millpond.intake.occurrences import Occurring
from millpond.intake.orderings import Ordering
from millpond.intake.remnants import Remnant
from millpond.planning.bounded import Ageing, AnyFreeing, Freeing, Meeting
from millpond.planning.graph import Graph
from millpond.planning.join_keys import join_keys
from millpond.planning.physical import (
    AggregateOperator,
    JoinOperator,
    Operator,
    RowsWindowOperator,
)
from millpond.planning.predicates import all_columns
from millpond.settings import format_duration
from millpond.sharing.queries import Queries
from millpond.sharing.watching import Suggestion
from millpond.storage.state import COMPACT_ROWS

SIDES = ("left", "right")


def constraint_rows(queries: Queries) -> Iterator[dict[str, Any]]:
    """A row for each constraint: what is declared, what was seen, and what it frees; and for each
    that is not declared, was seen and would free rows."""
    for entry in queries.ground.catalog.of_kind(StreamEntry):
        seen = queries.ground.inputs.streams[entry.identity].orderings
        for each in entry.constraints:
            yield _declared_row(queries, entry, seen[each.name])
    yield from dropped_rows(queries)
    for suggestion in queries.watching.suggested():
        yield _suggested_row(queries, suggestion)


def _declared_row(
    queries: Queries, entry: StreamEntry, seen: Ordering | Occurring
) -> dict[str, Any]:
    constraint = seen.constraint
    joins = queries.relying.operators(entry, constraint)
    length = partial(_length, queries, constraint)
    return {
        "stream": entry.name,
        "name": constraint.name,
        "state": "declared",
        "says": promised(constraint, entry, queries.ground.catalog),
        "within": length(constraint.within) + _grown(queries, seen),
        "measured": length(seen.measured),
        "on violation": constraint.on_violation,
        "violations": seen.violations,
        "complete from": _complete_from(seen),
        "frees rows of": ", ".join(joins),
        "rows freed": sum(_so_far(queries, identity, "freed_rows") for identity in joins),
        "bytes freed": sum(_so_far(queries, identity, "freed_bytes") for identity in joins),
        "to say": "",
    }


def dropped_rows(queries: Queries) -> Iterator[dict[str, Any]]:
    """A row for each constraint that was dropped and forbids something still."""
    streams = queries.ground.inputs.streams
    for intake in streams.values():
        for name, (remnant, owner) in intake.remnants.items():
            if not intake.is_over(name):
                yield _dropped_row(queries, remnant, owner)


def _dropped_row(queries: Queries, remnant: Remnant, owner: StreamIntake) -> dict[str, Any]:
    dropped = remnant.dropped
    return {
        "stream": owner.entry.name,
        "name": dropped.name,
        "state": "dropped",
        "says": promised(dropped, owner.entry, queries.ground.catalog),
        "within": _length(queries, dropped, dropped.within),
        "measured": "",
        "on violation": dropped.on_violation,
        "violations": remnant.violations,
        "complete from": _ends(remnant, owner),
        "frees rows of": "",
        "rows freed": 0,
        "bytes freed": 0,
        "to say": "",
    }


def _ends(remnant: Remnant, owner: StreamIntake) -> str:
    """From which tuple on nothing is forbidden any more."""
    if not remnant.by:
        return f"time {remnant.until}"
    place = remnant.reach + owner.orderings[remnant.by].widened.within
    return f"row {place}" if remnant.dropped.is_of_rows else f"time {place}"


def _suggested_row(queries: Queries, suggestion: Suggestion) -> dict[str, Any]:
    catalog, constraint = queries.ground.catalog, suggestion.constraint
    entry = queries.ground.inputs.streams[suggestion.stream].entry
    says = promised(constraint, entry, catalog, quoted)
    return {
        "stream": entry.name,
        "name": "",
        "state": "suggested",
        "says": promised(constraint, entry, catalog),
        "within": "",
        "measured": f"{constraint.within} rows",
        "on violation": "",
        "violations": 0,
        "complete from": "",
        "frees rows of": ", ".join(suggestion.operators),
        "rows freed": 0,
        "bytes freed": 0,
        "to say": f"ALTER STREAM {quoted(entry.name)} ADD {says} AS MEASURED",
    }


def _length(queries: Queries, constraint: Constraint, length: int) -> str:
    if constraint.is_of_rows:
        return f"{length} rows"
    return format_duration(length * queries.ground.catalog.tick_microseconds) if length else "0"


def _grown(queries: Queries, seen: Ordering | Occurring) -> str:
    """How large k is where it has grown."""
    if seen.widened.within == seen.constraint.within:
        return ""
    return f", grown to {_length(queries, seen.constraint, seen.widened.within)}"


def _complete_from(seen: Ordering | Occurring) -> str:
    """From which tuple on all that adhere to a k that has grown are part of the stream."""
    place = seen.widened.complete_from
    if place is None:
        return ""
    return f"row {place}" if seen.constraint.is_of_rows else f"time {place}"


def _so_far(queries: Queries, identity: OperatorId, what: str) -> int:
    """How many rows or bytes an operator has freed."""
    if not queries.has_runtime:
        return 0
    return int(getattr(queries.runtime.running[identity], what, 0))


def told_freeings(queries: Queries, graph: Graph, wanted: Iterable[OperatorId]) -> Iterator[str]:
    """A line for each side of a join, and each group, that constraints free, and what is kept."""
    for identity in sorted(wanted, key=BY_NUMBER):
        for each in queries.relying.freeings(identity, graph):
            yield _told(queries, graph, identity, each)


def _told(queries: Queries, graph: Graph, identity: OperatorId, freeing: AnyFreeing) -> str:
    by = ", ".join(sorted(_named(queries, freeing)))
    match freeing:
        case Freeing():
            key, rows = _freed(graph.operators[identity], freeing)
            is_closed = _closes(queries, freeing)
            what = f"{rows} with {key} closed" if is_closed else f"{rows} with {key} < bound"
            more = f" and of {COMPACT_ROWS:,} closed last" if is_closed else ""
            kept = f"those with {key} open{more}" if is_closed else f"those with {key} >= bound"
        case Ageing():
            rows = f"rows of its {SIDES[freeing.side]} side"
            what = f"{rows} that are {_ages(queries, freeing)} old"
            kept = "the others"
        case Meeting():
            rows = f"rows of its {SIDES[freeing.side]} side"
            what, kept = f"{rows} that have met one", "the others"
    return f"{identity}: {by} frees {what}; it keeps at most 2 x {kept} + {COMPACT_ROWS:,} a bucket"


def _closes(queries: Queries, freeing: Freeing) -> bool:
    """Whether values are closed one by one."""
    return any(
        each.kind == "clustered" and each.column == source.column
        for source in freeing.sources
        for each in _entry(queries, source.stream).constraints
    )


def _ages(queries: Queries, freeing: Ageing) -> str:
    """How old rows are that reference something."""
    found = (
        _length(queries, each, each.within)
        for stream, name in freeing.by
        for each in _entry(queries, stream).constraints
        if each.name == name
    )
    return " or ".join(sorted(found))


def _freed(operator: Operator, freeing: Freeing) -> tuple[Expression, str]:
    """The key by which something is freed, and what that is."""
    match operator:
        case JoinOperator():
            keys = join_keys(operator.condition, len(operator.left.schema))
            key = (keys.left, keys.right)[freeing.side][freeing.key]
            return key, f"rows of its {SIDES[freeing.side]} side"
        case AggregateOperator():
            return operator.keys[freeing.key], "groups"
        case RowsWindowOperator():
            return operator.partition[freeing.key], "rows of partitions"
    return all_columns(operator.inputs[0])[freeing.key], "groups"


def _named(queries: Queries, freeing: AnyFreeing) -> Iterator[str]:
    """The constraints by which something is freed."""
    for entry in queries.ground.catalog.of_kind(StreamEntry):
        for each in entry.constraints:
            if freeing.relies_on(entry.identity, each):
                yield f"{entry.name}.{each.name}"


def _entry(queries: Queries, stream: StreamId) -> StreamEntry:
    return queries.ground.inputs.streams[stream].entry
