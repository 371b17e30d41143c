"""Queries that wait for time: a tuple has come, but an input has not promised to be past it.

That is not work that is left to do, so it counts neither as latency nor as a bottleneck.
"""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from millpond.catalog import Catalog, StreamEntry
from millpond.connectors.python_values import moment
from millpond.delivery.latency import in_unit
from millpond.identities import OperatorId, QueryName
from millpond.intake.inputs import Inputs
from millpond.intake.intake import END
from millpond.schema import BEGINNING, Type
from millpond.sharing.queries import Queries
from millpond.storage.queues import Queue

LEAST_SECONDS = 1.0
"""Who waits for less is not said to wait."""


@dataclass(frozen=True)
class Wait:
    """What a query waits for."""

    input: str
    """The stream or relation, as it was declared."""
    since_seconds: float
    """How long the oldest tuple has waited that the input holds up."""
    heartbeat: str
    """How far the input is; empty if nothing has come in it."""

    def __str__(self) -> str:
        far = f"its heartbeat is {self.heartbeat}" if self.heartbeat else "nothing has come in it"
        return f"waits for {self.input} since {in_unit(self.since_seconds)}; {far}"


def wait_of(queries: Queries, query: str) -> Wait | None:
    """What a query waits for, if it does; the lock is held."""
    output = queries.outputs.get(QueryName(query).key)
    return None if output is None else _wait_of(queries, output)


def waits(queries: Queries, most: int) -> Iterator[tuple[str, Wait]]:
    """The queries that wait, of the first so many that do not run as others do."""
    one_of = {output: query for query, output in reversed(queries.outputs.items())}
    for output, query in islice(reversed(one_of.items()), most):
        found = _wait_of(queries, output)
        if found is not None:
            yield queries.ground.query_entry(query.asked_by).name, found


def ready_seconds(queries: Queries, query: str, ticks: int) -> float:
    """When the inputs of a query had promised to be past a time; minus infinity if not known."""
    group, key = queries.groups.get(query), QueryName(query).key
    output = queries.outputs.get(key) if group is None else group.output
    if output is None:
        return -math.inf
    moments = (_reached(queries.ground.inputs, queue, ticks) for queue in _inputs(queries, output))
    return max((each for each in moments if each < math.inf), default=-math.inf)


def heartbeat_text(catalog: Catalog, queue: Queue) -> str:
    """How far an input is, as people read it; empty before anything was promised."""
    if queue.heartbeat <= BEGINNING:
        return ""
    if queue.heartbeat >= END:
        return "the end"
    return time_text(catalog, queue, queue.heartbeat)


def time_text(catalog: Catalog, queue: Queue, ticks: int) -> str:
    """A time of an input as people read it: a number where its times are numbers."""
    entry = catalog.get(queue.name.input)
    is_number = (
        isinstance(entry, StreamEntry)
        and entry.timestamp_column is not None
        and entry.schema[entry.timestamp_column].type != Type.TIMESTAMP
    )
    return str(ticks) if is_number else moment(ticks, catalog.tick_microseconds)


def _wait_of(queries: Queries, output: OperatorId) -> Wait | None:
    inputs = list(_inputs(queries, output))
    slowest = min(inputs, key=lambda queue: queue.heartbeat, default=None)
    if slowest is None or slowest.heartbeat >= END:
        return None
    oldest = min(queue.oldest_arrival(slowest.heartbeat) for queue in inputs)
    seconds = time.monotonic() - oldest
    if seconds < LEAST_SECONDS:
        return None
    catalog, identity = queries.ground.catalog, slowest.name
    entry = catalog.get(identity.input)
    name = identity if entry is None else entry.name
    return Wait(name, seconds, heartbeat_text(catalog, slowest))


def _inputs(queries: Queries, output: OperatorId) -> Iterator[Queue]:
    """The queues of the streams and relations that an operator depends on."""
    queues = queries.ground.inputs.queues
    if output not in queries.graph.operators:
        return
    for identity in queries.graph.upstream(output):
        for name in queries.graph.queues_of(identity):
            if not isinstance(name, OperatorId) and name in queues:
                yield queues[name]


def _reached(inputs: Inputs, queue: Queue, ticks: int) -> float:
    """When an input had promised to be past a time."""
    intake = inputs.streams.get(queue.name.input)
    if intake is not None and intake.entry.timestamp_column is None:  # its time is the wall clock's
        past = (intake.now_ticks() - ticks) * intake.tick_microseconds / 1e6
        return time.monotonic() - past
    return -math.inf if queue.promises is None else queue.promises.reached(ticks)
