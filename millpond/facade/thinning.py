"""Drops tuples that wait already: what no step has taken is thinned to a lower rate.

Samples are nested, so it is as if that much had been kept when they came; what was taken stays, as
windows read it again when it leaves them. Each page is replaced by one of fewer rows, which the log
has like any other: so a restart finds the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millpond.durability.transitions import Compacted
from millpond.identities import InputId, StreamId
from millpond.intake.drop_point import DropPoint, dropped_in
from millpond.intake.transitions import WaitingThinned
from millpond.schema import FOREVER
from millpond.sharing.queries import Queries
from millpond.storage.origins import mixed
from millpond.storage.pages import Page
from millpond.storage.queues import Compaction, Queue
from millpond.storage.transitions import Transition

WORTH = 0.9
"""A page is written anew if at most this part of its rows is left."""


def thinned(queries: Queries, stream: InputId, percent: float) -> Iterator[Transition]:
    """What waits of all that is kept of a stream, as if so many percent had been kept of it."""
    inputs = queries.ground.inputs
    for name, tolerance in inputs.kept.get(stream, {}).items():
        if name != StreamId(tolerance.kept):  # what is known of others is all there will be
            continue
        point = DropPoint.of(tolerance, inputs.settings().seed, percent / 100)
        yield from _thinned(queries, name, point)


def _thinned(queries: Queries, name: StreamId, point: DropPoint) -> Iterator[Transition]:
    intake = queries.ground.inputs.streams[name]
    queue, taken = intake.queue, taken_until(queries, intake.queue)
    count, until = intake.dropped_count, intake.dropped_until
    for page in queue.pages:
        if page.last > taken:
            waiting = page.between(taken, FOREVER)
            left = point.thinned(waiting)
            if left.num_rows <= WORTH * waiting.num_rows:
                before = dropped_in(waiting)[0]
                dropped, last = dropped_in(left)
                count += dropped - before
                until = max(at for at in (until, last) if at is not None)
                yield _replaced(queries, queue, page, taken, left)
    if count > intake.dropped_count:
        yield WaitingThinned(name, count, until)


def _replaced(queries: Queries, queue: Queue, page: Page, taken: int, left: pa.Table) -> Compacted:
    """A page with other rows behind a time; those before are what they were."""
    table = pa.concat_tables([page.between(page.first - 1, taken), left])
    smaller = Page.of(queries.ground.store, table, page.is_sorted)
    smaller.origins = mixed([(page.origins, table.num_rows)])
    names = page.names if queries.ground.journal.is_durable else ()
    return Compacted(queue.name, smaller, names, None, Compaction(smaller, (page,)))


def taken_until(queries: Queries, queue: Queue) -> int:
    """Up to when steps have taken what is in a queue, those under way included."""
    running = queries.runtime.running
    claimed = [running[each].claimed for each in queries.graph.readers(queue.name)]
    return max([*claimed, *(each.cursor for each in queue.readers)], default=queue.heartbeat)
