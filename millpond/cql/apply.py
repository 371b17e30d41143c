"""What a checked statement does to the catalog."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from millpond.catalog import (
    KINDS,
    Catalog,
    Constraint,
    PartitionEntry,
    QueryEntry,
    RelationEntry,
    StreamEntry,
    ViewEntry,
    kind_of,
)
from millpond.cql.algebra import ONE_ROW, RelationScan, StreamScan
from millpond.cql.node import Node
from millpond.cql.statements import (
    Action,
    AlterPartition,
    AlterQuery,
    AlterStream,
    Create,
    Drop,
    SetOption,
)
from millpond.errors import StateError
from millpond.identities import KEPT
from millpond.settings import Settings
from millpond.spelling import listed, suggestion


def apply(action: Action, catalog: Catalog) -> None:
    """Changes the catalog as the statement says; statements that only ask or push do nothing."""
    if isinstance(action, Create):
        if action.replaces:
            catalog.remove(action.entry.name)
        catalog.add(action.entry)
    elif isinstance(action, Drop):
        complaint = drop_complaint(action.kind, action.name, catalog)
        if complaint:
            raise StateError(complaint)
        catalog.remove(action.name)
    elif isinstance(action, AlterQuery):
        catalog.replace(altered(action, catalog))
    elif isinstance(action, AlterStream):
        catalog.replace(altered_stream(action, catalog))
    elif isinstance(action, AlterPartition):
        catalog.replace(altered_partition(action, catalog))
        for entry in list(catalog.of_kind(PartitionEntry)):  # an operator is in one only
            if entry.name.lower() != action.name.lower() and {*entry.operators} & {*action.adds}:
                left = tuple(each for each in entry.operators if each not in action.adds)
                catalog.replace(replace(entry, operators=left))
    elif isinstance(action, SetOption) and action.key.lower() == "time_zone":
        catalog.time_zone = Settings().with_option("time_zone", str(action.value)).time_zone
    elif isinstance(action, SetOption) and action.key == "tick":
        set_tick(action.value, catalog)


def set_tick(value: Any, catalog: Catalog) -> None:
    """Fixes the length of a tick; only before the first stream."""
    complaint = tick_complaint(catalog)
    if complaint:
        raise StateError(complaint)
    catalog.tick_microseconds = Settings().with_option("tick", str(value)).tick_microseconds


def tick_complaint(catalog: Catalog) -> str:
    """Why the tick cannot be set now, or the empty string."""
    streams = list(catalog.of_kind(StreamEntry))
    if not streams:
        return ""
    return f'SET tick comes before the first CREATE STREAM; "{streams[0].name}" is declared'


def drop_complaint(kind: str, name: str, catalog: Catalog) -> str:
    """Why a name cannot be dropped, or the empty string."""
    entry = catalog.get(name)
    if entry is None:
        known = (each.name for each in catalog.of_kind(KINDS[kind]))
        return f'no {kind} "{name}"{suggestion(name, known)}'
    if not isinstance(entry, KINDS[kind]):
        return f'"{entry.name}" is a {kind_of(entry)}; write DROP {kind_of(entry).upper()}'
    if isinstance(entry, PartitionEntry):
        return _partition_complaint(entry, catalog)
    is_read = isinstance(entry, StreamEntry | RelationEntry)
    users = users_of(entry.name, catalog) if is_read else ()
    if users:
        return f'"{entry.name}" is still used by {listed(users)}; DROP these first'
    referring = list(referring_to(entry.name, catalog)) if isinstance(entry, StreamEntry) else ()
    if referring:
        return f'"{entry.name}" is referenced by {listed(referring)}; DROP CONSTRAINT first'
    return ""


def _partition_complaint(entry: PartitionEntry, catalog: Catalog) -> str:
    key = entry.name.lower()
    inside = [q.name for q in catalog.of_kind(QueryEntry) if q.partition.lower() == key]
    if not inside:
        return ""
    return (
        f'"{entry.name}" still has {listed(inside)}; ALTER QUERY … SET NO PARTITION, or DROP these'
    )


def referring_to(stream: str, catalog: Catalog) -> Iterator[str]:
    """The constraints of other streams that reference a stream."""
    for entry in catalog.of_kind(StreamEntry):
        for each in entry.constraints:
            if each.target.lower() == stream.lower():
                yield f"{entry.name}.{each.name}"


def users_of(name: str, catalog: Catalog) -> list[str]:
    """The views and queries that read a stream or relation."""
    plans = [e for e in catalog.entries.values() if isinstance(e, (ViewEntry, QueryEntry))]
    return [e.name for e in plans if name.lower() in {s.lower() for s in scanned(e.plan)}]


def scanned(plan: Node) -> Iterator[str]:
    """The names of the streams and relations a plan reads, also in its subqueries."""
    for node in plan.walk_into_subqueries():
        if isinstance(node, (StreamScan, RelationScan)) and node.name != ONE_ROW.name:
            yield node.name.partition(KEPT)[0]


def altered(action: AlterQuery, catalog: Catalog) -> QueryEntry:
    """The entry that ALTER QUERY makes of the one there is."""
    entry = catalog.get(action.name)
    if not isinstance(entry, QueryEntry):
        raise StateError(f'no query "{action.name}"')
    return replace(
        entry,
        weight=entry.weight if action.weight is None else action.weight,
        active=entry.active if action.active is None else action.active,
        on_error=entry.on_error if action.on_error is None else action.on_error,
        plan=entry.plan if action.plan is None else action.plan,
        text=entry.text if action.plan is None else action.text,
        tolerates=entry.tolerates if action.tolerates is None else action.tolerates,
        partition=entry.partition if action.partition is None else action.partition,
    )


def altered_partition(action: AlterPartition, catalog: Catalog) -> PartitionEntry:
    """The entry that ALTER PARTITION makes of the one there is."""
    entry = catalog.get(action.name)
    if not isinstance(entry, PartitionEntry):
        raise StateError(f'no partition "{action.name}"')
    kept = (each for each in entry.operators if each not in (*action.drops, *action.adds))
    return replace(
        entry,
        strategy=entry.strategy if action.strategy is None else action.strategy,
        threads=entry.threads if action.threads is None else action.threads,
        priority=entry.priority if action.priority is None else action.priority,
        operators=(*kept, *action.adds),
    )


def altered_stream(action: AlterStream, catalog: Catalog) -> StreamEntry:
    """The entry that ALTER STREAM makes of the one there is."""
    entry = catalog.get(action.name)
    if not isinstance(entry, StreamEntry):
        raise StateError(f'no stream "{action.name}"')
    if action.adds is not None:
        return _with_constraints(entry, (*entry.constraints, action.adds))
    if action.kept_percent is not None:
        return replace(entry, kept_percent=action.kept_percent, shed_percent=None)
    if action.drops is not None:
        dropped = entry.constraint(action.drops)
        return _with_constraints(entry, [c for c in entry.constraints if c is not dropped])
    if action.idle_microseconds is not None:
        return replace(entry, idle_microseconds=action.idle_microseconds, has_other_idle=True)
    if action.ahead_microseconds is not None:
        return replace(entry, ahead_microseconds=action.ahead_microseconds, has_other_ahead=True)
    if action.alters is not None:
        new = action.alters
        altered = [new if c.name == new.name else c for c in entry.constraints]
        return _with_constraints(entry, altered)
    delay, late = action.delay_ticks or 0, action.late_percent
    return replace(entry, delay_ticks=delay, late_percent=late, has_other_delay=True)


def _with_constraints(entry: StreamEntry, constraints: Sequence[Constraint]) -> StreamEntry:
    first = entry.constraints if entry.created_with is None else entry.created_with
    return replace(entry, constraints=tuple(constraints), created_with=first)
