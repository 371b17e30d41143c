"""Going on after a restart: what the log of a store says happens again, and all is as it was.

Files are opened when all of it has happened, if they are still needed. Steps are deterministic and
what was not committed is invisible, so that is all.
"""

from collections.abc import Callable

from millpond.catalog import QueryEntry, RelationEntry, StreamEntry
from millpond.durability.transitions import opened
from millpond.identities import InputId
from millpond.sharing.attachments import bad_rows_entry, open_sink_of, open_source_of
from millpond.sharing.ground import Ground
from millpond.sharing.queries import Queries
from millpond.storage.formats import Record
from millpond.storage.transitions import transition_of

Prepare = Callable[[Record], None]
"""Looks at a record before it is done."""


def recover(queries: Queries) -> None:
    """Has queries go on where an earlier run with their store has ended."""
    ground = queries.ground
    replay(queries)
    check_files(queries)
    ground.store.remove_garbage(file_names(queries))
    for entry in ground.catalog.entries.values():
        match entry:
            case StreamEntry() | RelationEntry():
                _resume_source(ground, entry.identity, entry)
                bad_rows = bad_rows_entry(entry) if isinstance(entry, StreamEntry) else None
                if bad_rows is not None:
                    _resume_sink(ground, bad_rows)
            case QueryEntry():
                _resume_sink(ground, entry)
    queries.purge_again()
    ground.force()


def replay(queries: Queries, prepare: Prepare = lambda record: None) -> None:
    """Has everything be as the log says, with files still to be looked at."""
    ground, keeps = queries.ground, queries.keeps_results
    for record in ground.journal.records():
        _ = queries.runtime
        prepare(record)
        queries.apply([transition_of(record, ground.store, ground.catalog.functions)])
    ground.store.replayed()
    ground.journal.make_copies()
    queries.failures.told()
    ground.memory.recovered()
    if queries.has_runtime:
        queries.runtime.free()
    ground.store.run += 1
    queries.keep_results(keeps)
    ground.opened = opened(queries, ground.store.run, keeps)
    ground.journal.note(ground.opened)


def _resume_source(ground: Ground, key: InputId, entry: StreamEntry | RelationEntry) -> None:
    is_read_once = isinstance(entry, RelationEntry) and not entry.has_changes
    has_ended = ground.inputs.read_rows.get(key, 0) < 0
    if entry.source.name != "push" and not is_read_once and not has_ended:
        ground.inputs.resume(key, open_source_of(ground, entry))


def _resume_sink(ground: Ground, entry: QueryEntry) -> None:
    log = ground.deliveries.of(entry.identity)
    log.sink = open_sink_of(ground, entry, log.sink_mark)
    ground.deliveries.has_news(entry.identity)


def check_files(queries: Queries) -> None:
    """Refuses a store whose files are not as the log says.

    What steps read is read through; results and late tuples are when somebody asks for them, and
    until then only their lengths are looked at.
    """
    store, needed = queries.ground.store, step_file_names(queries)
    store.refuse(store.faults(needed) | store.faults(file_names(queries) - needed, is_whole=False))


def step_file_names(queries: Queries) -> set[str]:
    """The files that are needed to go on: what waits in queues and for sinks, and states."""
    ground = queries.ground
    pages = (page for queue in ground.inputs.queues.values() for page in queue.all_pages)
    to_sinks = (page for log in ground.deliveries for page in log.waiting)
    return {name for page in (*pages, *to_sinks) for name in page.names} | _state_names(queries)


def file_names(queries: Queries) -> set[str]:
    """The files of the store that are needed."""
    ground = queries.ground
    return ground.inputs.file_names() | ground.deliveries.file_names() | _state_names(queries)


def _state_names(queries: Queries) -> set[str]:
    running = queries.runtime.running.values() if queries.has_runtime else ()
    return {name for each in running if each.state for name in each.state.names}
