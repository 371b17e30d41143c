"""What SHOW and EXPLAIN say of the constraints of streams."""

from collections.abc import Iterable, Iterator
from typing import Any

from millpond.catalog import Constraint, StreamEntry
from millpond.cql.expressions import Expression
from millpond.identities import BY_NUMBER, OperatorId
from millpond.planning.bounded import Freeing
from millpond.planning.graph import Graph
from millpond.planning.join_keys import join_keys
from millpond.planning.physical import AggregateOperator, JoinOperator, Operator
from millpond.planning.predicates import all_columns
from millpond.settings import format_duration
from millpond.sharing.queries import Queries
from millpond.storage.state import COMPACT_ROWS

SIDES = ("left", "right")


def constraint_rows(queries: Queries) -> Iterator[dict[str, Any]]:
    """A row for each constraint: what is declared, what was seen, and what it frees."""
    for entry in queries.ground.catalog.of_kind(StreamEntry):
        seen = queries.ground.inputs.streams[entry.identity].orderings
        for each in entry.constraints:
            joins = queries.relying.operators(entry, each)
            yield {
                "stream": entry.name,
                "name": each.name,
                "says": f"ORDERED BY ({entry.schema[each.column].name})",
                "within": _length(queries, each, each.within),
                "measured": _length(queries, each, seen[each.name].measured),
                "on violation": each.on_violation,
                "violations": seen[each.name].violations,
                "frees rows of": ", ".join(joins),
                "rows freed": sum(_freed_rows(queries, identity) for identity in joins),
            }


def _length(queries: Queries, constraint: Constraint, length: int) -> str:
    if constraint.is_of_rows:
        return f"{length} rows"
    return format_duration(length * queries.ground.catalog.tick_microseconds) if length else "0"


def _freed_rows(queries: Queries, identity: OperatorId) -> int:
    if not queries.has_runtime:
        return 0
    return int(getattr(queries.runtime.running[identity], "freed_rows", 0))


def told_freeings(queries: Queries, graph: Graph, wanted: Iterable[OperatorId]) -> Iterator[str]:
    """A line for each side of a join, and each group, that constraints free, and what is kept."""
    for identity in sorted(wanted, key=BY_NUMBER):
        for each in queries.relying.freeings(identity, graph):
            yield _told(queries, graph, identity, each)


def _told(queries: Queries, graph: Graph, identity: OperatorId, freeing: Freeing) -> str:
    key, rows = _freed(graph.operators[identity], freeing)
    by = ", ".join(sorted(_named(queries, freeing)))
    return (
        f"{identity}: {by} frees {rows} with {key} < bound; it keeps at most 2 x those with "
        f"{key} >= bound + {COMPACT_ROWS:,} a bucket"
    )


def _freed(operator: Operator, freeing: Freeing) -> tuple[Expression, str]:
    """The key by which something is freed, and what that is."""
    match operator:
        case JoinOperator():
            keys = join_keys(operator.condition, len(operator.left.schema))
            key = (keys.left, keys.right)[freeing.side][freeing.key]
            return key, f"rows of its {SIDES[freeing.side]} side"
        case AggregateOperator():
            return operator.keys[freeing.key], "groups"
    return all_columns(operator.inputs[0])[freeing.key], "groups"


def _named(queries: Queries, freeing: Freeing) -> Iterator[str]:
    """The constraints by which something is freed."""
    for stream, column in freeing.sources:
        entry = queries.ground.inputs.streams[stream].entry
        yield from (
            f"{entry.name}.{each.name}" for each in entry.constraints if each.column == column
        )
