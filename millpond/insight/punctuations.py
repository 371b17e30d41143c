"""What SHOW and EXPLAIN say of the punctuations of streams."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from millpond.catalog import StreamEntry
from millpond.cql.expressions import Expression
from millpond.cql.patterns import EPOCH, LEAST, MOST, Pattern, Range, Values
from millpond.identities import BY_NUMBER, OperatorId
from millpond.intake.intake import StreamIntake
from millpond.planning.graph import Graph
from millpond.planning.join_keys import join_keys
from millpond.planning.physical import (
    AggregateOperator,
    JoinOperator,
    Operator,
    RowsWindowOperator,
)
from millpond.planning.predicates import all_columns
from millpond.planning.punctuated import Closing, Way
from millpond.schema import Field, Type
from millpond.sharing.closings import by_heartbeats, relied_on
from millpond.sharing.queries import Queries
from millpond.storage.state import COMPACT_ROWS

SIDES = ("left", "right")
MOST_SHOWN = 5
"""So many ranges or values of a column are shown."""


def punctuation_rows(queries: Queries) -> Iterator[dict[str, Any]]:
    """A row for each pattern that is remembered: what it says, and what it frees."""
    relying = queries.closings.relying()
    for intake in queries.ground.inputs.streams.values():
        for policy, remembered in intake.punctuations.items():
            for columns, patterns in _by_columns(remembered.patterns).items():
                found = relied_on(relying, intake.entry.identity, [columns])
                freed = {
                    "frees rows of": ", ".join(found),
                    "rows freed": sum(_freed_rows(queries, each) for each in found),
                }
                yield from (_row(intake, policy, each) | freed for each in patterns)


def _by_columns(patterns: Iterable[Pattern]) -> dict[tuple[int, ...], list[Pattern]]:
    found: dict[tuple[int, ...], list[Pattern]] = {}
    for each in patterns:
        found.setdefault(each.columns, []).append(each)
    return found


def _row(intake: StreamIntake, policy: str, pattern: Pattern) -> dict[str, Any]:
    return {
        "stream": intake.entry.name,
        "nothing follows with": told_pattern(intake.entry, pattern),
        "ranges and values": len(pattern),
        "on violation": policy,
        "violations": intake.contradicted.get(policy, 0),
        "forgotten": intake.punctuations[policy].forgotten,
    }


def _freed_rows(queries: Queries, identity: OperatorId) -> int:
    if not queries.has_runtime:
        return 0
    return int(getattr(queries.runtime.running[identity], "freed_rows", 0))


def told_pattern(entry: StreamEntry, pattern: Pattern) -> str:
    """A pattern as it is written, but for values beyond a few."""
    parts = ((entry.schema[column], values) for column, values in pattern.parts)
    return " AND ".join(_told_values(field, values) for field, values in parts)


def _told_values(field: Field, values: Values) -> str:
    singles = [low for low, high in values.ranges if low == high]
    texts = ["'" + text.replace("'", "''") + "'" for text in values.texts]
    listed_values = [*(_constant(each, field.type) for each in singles), *texts]
    wide = [each for each in values.ranges if each[0] < each[1]]
    told = [_told_range(field, each) for each in wide[:MOST_SHOWN]]
    if len(listed_values) == 1:
        told.append(f"{field.name} = {listed_values[0]}")
    elif listed_values:
        told.append(f"{field.name} IN ({', '.join(_first(listed_values))})")
    if len(wide) > MOST_SHOWN:
        told.append(f"{len(wide) - MOST_SHOWN} more ranges")
    return told[0] if len(told) == 1 else f"({' OR '.join(told)})"


def _first(values: list[str]) -> list[str]:
    rest = len(values) - MOST_SHOWN
    return values if rest <= 0 else [*values[:MOST_SHOWN], f"{rest} more"]


def _told_range(field: Field, ends: Range) -> str:
    low, high = (_constant(each, field.type) for each in ends)
    if ends[0] == LEAST:
        return f"{field.name} <= {high}"
    return f"{field.name} >= {low}" if ends[1] == MOST else f"{field.name} BETWEEN {low} AND {high}"


def _constant(number: int, type_: Type) -> str:
    if number in (LEAST, MOST):
        return str(number)
    match type_:
        case Type.BOOLEAN:
            return "TRUE" if number else "FALSE"
        case Type.DATE:
            return f"DATE '{(EPOCH + timedelta(days=number)).date()}'"
        case Type.TIMESTAMP:
            return f"TIMESTAMP '{EPOCH + timedelta(microseconds=number)}'"
    return str(number)


def told_closings(queries: Queries, graph: Graph, wanted: Iterable[OperatorId]) -> Iterator[str]:
    """A line for each side of a join, and each group, that punctuations free."""
    for identity in sorted(wanted, key=BY_NUMBER):
        for each in queries.closings.awaited(identity, graph):
            yield _told(queries, graph, identity, each)


def _told(queries: Queries, graph: Graph, identity: OperatorId, closing: Closing) -> str:
    keys, rows = _closed(graph.operators[identity], closing)
    named = [_told_way(queries, way, keys) for way in closing.ways]
    return (
        f"{identity}: {' and '.join(named)} free {rows} whose keys they name; it keeps at most 2 x "
        f"the others + {COMPACT_ROWS:,} a bucket"
    )


def _told_way(queries: Queries, way: Way, keys: tuple[Expression, ...]) -> str:
    """By what keys are closed that come by a way."""
    intake = queries.ground.inputs.streams[way.stream]
    entry, numbers = intake.entry, [key for _, key in way.keys]
    if not intake.is_punctuated and by_heartbeats(entry, way):
        numbers = [key for column, key in way.keys if column == entry.timestamp_column]
        return f"heartbeats of {entry.name} ({', '.join(_named(keys, numbers))})"
    return f"punctuations of {entry.name} ({', '.join(_named(keys, numbers))})"


def _named(keys: tuple[Expression, ...], numbers: list[int]) -> list[str]:
    return [str(keys[number]) for number in numbers]


def _closed(operator: Operator, closing: Closing) -> tuple[tuple[Expression, ...], str]:
    """The keys by which something is freed, and what that is."""
    match operator:
        case JoinOperator():
            keys = join_keys(operator.condition, len(operator.left.schema))
            return (keys.left, keys.right)[closing.side], f"rows of its {SIDES[closing.side]} side"
        case AggregateOperator():
            return operator.keys, "groups"
        case RowsWindowOperator():
            return operator.partition, "rows of partitions"
    return all_columns(operator.inputs[0]), "groups"
