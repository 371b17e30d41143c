"""From when on a query can see its streams: what queues still hold is there to be seen again.

And from when on nothing tells what came late from what was there before."""

from collections.abc import Iterable, Iterator

from millpond.catalog import QueryEntry, StreamEntry
from millpond.connectors.python_values import moment
from millpond.cql.algebra import ONE_ROW, RelationScan, StreamScan
from millpond.cql.node import Node
from millpond.errors import StateError
from millpond.identities import StreamId
from millpond.planning.convergence import ALWAYS, Foreseen
from millpond.schema import BEGINNING, Type
from millpond.sharing.queries import Queries


def refuse_what_is_gone(queries: Queries, entry: QueryEntry, plan: Node) -> None:
    """Refuses a query that is to begin when its inputs are no longer known as they were."""
    if entry.begins is None:
        return
    if not any(isinstance(node, StreamScan) for node in (*entry.plan.walk(), *plan.walk())):
        raise StateError(
            f'query "{entry.name}" reads no stream, so there is no time to begin FROM: leave it out'
        )
    earliest, reason = max(_limits(queries, plan), default=(BEGINNING, ""))
    if entry.begins < earliest:
        raise StateError(
            f'query "{entry.name}" cannot begin {told_start(queries, plan, entry.begins)}: '
            f"{reason}; the earliest possible is {told_start(queries, plan, earliest)}; leave FROM "
            "out to begin now"
        )


def told_start(queries: Queries, plan: Node, time: int) -> str:
    """A time as it is written after CREATE QUERY."""
    if time <= BEGINNING:
        return "FROM BEGINNING"
    return f"FROM {told_time(queries, _streams_of(plan), time)}"


def _limits(queries: Queries, plan: Node) -> Iterator[tuple[int, str]]:
    """The first time at which each input is known, if that is not the beginning, and why."""
    for node in plan.walk():
        if isinstance(node, StreamScan):
            queue = queries.ground.inputs.streams[StreamId(node.name)].queue
            if queue.pages:
                _ = queries.runtime  # its operators say what they will read
            first = queue.whole_after() + 1
            if first > BEGINNING:
                told = told_time(queries, _streams_of(plan), first - 1)
                yield first, f"stream {node.name} is no longer there up to {told}"
        elif isinstance(node, RelationScan) and node.name != ONE_ROW.name:
            last = queries.ground.inputs.relation(node.name).last_change
            if last > BEGINNING:
                told = told_time(queries, _streams_of(plan), last)
                yield last + 1, f"relation {node.name} has changed at {told}"


def _streams_of(plan: Node) -> list[str]:
    return [node.name for node in plan.walk() if isinstance(node, StreamScan)]


def told_time(queries: Queries, streams: Iterable[str], time: int) -> str:
    """A time as people write it: a number of ticks, or a timestamp where streams have those."""
    for name in streams:
        stream = queries.ground.catalog.get(name)
        if isinstance(stream, StreamEntry):
            column = stream.timestamp_column
            if column is None or stream.schema[column].type is Type.TIMESTAMP:
                return f"TIMESTAMP '{moment(time, queries.ground.catalog.tick_microseconds)}'"
    return str(time)


def told_merge(queries: Queries, each: Foreseen) -> str:
    """When two operators will be one, as people read it."""
    if each.rows:
        return f"once {each.rows:,} elements have come"
    graph = queries.graph
    queues = {queue for i in graph.upstream(each.first) for queue in graph.queues_of(i)}
    names = [queue.stream for queue in sorted(queues) if queue.stream is not None]
    return f"from {told_time(queries, names, each.at)} on" if each.at > ALWAYS else "at once"
