"""Who holds the others up, in words."""

from collections.abc import Iterator
from dataclasses import dataclass

from millpond.delivery.latency import in_unit
from millpond.entities import Entities
from millpond.insight.input_names import input_label
from millpond.insight.operator_names import named_queries, operator_label
from millpond.sharing.queries import Queries

BUSY, IDLE = 0.7, 0.3
"""Loads from which on an operator is a bottleneck, and below which nobody is."""


@dataclass(frozen=True)
class OperatorView:
    """One operator of late."""

    name: str
    does: str
    rows_in: float
    rows_out: float
    load: float
    waiting_rows: int
    waiting_bytes: float
    queries: tuple[str, ...] = ()
    slowest_input: str = ""
    behind_seconds: float = 0.0
    """For how long the oldest tuple waits in it."""


def operator_views(queries: Queries, entities: Entities) -> Iterator[OperatorView]:
    """The running operators of late; the lock is held."""
    if not queries.has_runtime:
        return
    runtime = queries.runtime
    behind = entities.values_of("queue", "behind_seconds")
    for identity, measured in runtime.statistics.items():
        running = runtime.running[identity]
        rows = running.waiting(running.claimed, running.horizon)
        slowest = max(running.inputs, key=lambda name: behind.get(name, 0.0), default="")
        yield OperatorView(
            identity,
            operator_label(queries.graph.operators[identity]),
            measured.inputs.per_second(),
            measured.outputs.per_second(),
            measured.busy.per_second(),
            rows,
            rows * measured.input_bytes,
            tuple(named_queries(queries, runtime.picture.queries(identity))),
            input_label(queries.ground.catalog, slowest) if slowest else "",
            behind.get(slowest, 0.0),
        )


def bottleneck(operators: list[OperatorView]) -> str:
    """Who holds the others up.

    >>> bottleneck([OperatorView("op1", "Join", 10.0, 5.0, 0.9, 12, 96.0, ("q17",), "s", 40.0)])
    "query q17's op1 (Join) takes 90% of the time; 12 rows wait for it, its input s is 40 s behind"
    """
    if not operators:
        return "nobody: nothing runs"
    busiest = max(operators, key=lambda each: (each.load, each.waiting_bytes))
    if busiest.load < IDLE:
        return "nobody; the inputs set the pace"
    owner = _owner(busiest.queries)
    name = f"{owner}{busiest.name} ({busiest.does})"
    if busiest.load < BUSY and not busiest.waiting_rows:
        return f"nobody yet; {name} is busiest, {busiest.load:.0%} of the time"
    waits = f"{busiest.waiting_rows:,} rows wait for it"
    ahead = busiest.waiting_rows / busiest.rows_in if busiest.rows_in else 0.0
    if busiest.behind_seconds > 0:
        late = f", its input {busiest.slowest_input} is {in_unit(busiest.behind_seconds)} behind"
    else:
        late = f", {in_unit(ahead)} of input" if ahead else ""
    return f"{name} takes {busiest.load:.0%} of the time; {waits}{late}"


def _owner(queries: tuple[str, ...]) -> str:
    if not queries:
        return ""
    more = f" and {len(queries) - 1} more" if len(queries) > 1 else ""
    return f"query {queries[0]}'s " if not more else f"queries {queries[0]}{more}: "
