"""Store, states and journal: what is needed lies there, and the log says so."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from millpond.insight.validation.complaints import recounted, strangers
from millpond.storage.bucketed import BucketedState, KeptState, PairedState
from millpond.storage.journal import Journal
from millpond.storage.log import LogEnd
from millpond.storage.mark import LOG
from millpond.storage.pages import Page
from millpond.storage.state_cache import StateCache
from millpond.storage.store import END, FOLDERS, SPILLED, Store

if TYPE_CHECKING:
    from millpond.execution.operators.running import RunningOperator


def bytes_of_pages(store: Store, idle_pages: Iterable[Page]) -> Iterator[str]:
    """The store knows the bytes of all pages; no step makes any just now."""
    size = sum(page.bytes for page in set(idle_pages) if not page.is_free)
    yield from recounted("bytes of the pages in the store", store.bytes, size)


def files_of_pages(store: Store, settled_pages: Iterable[Page]) -> Iterator[str]:
    """The rows of a page are in memory, or in files that are there."""
    named = {page: tuple(page._names) for page in settled_pages if not page.is_free}
    there = _names_there(store)
    for page, names in named.items():
        if not page.is_in_driver and not page._names:
            yield f"a page of {page.rows} rows is neither in memory nor in a file"
        for name in names:
            yield from _is_there(store, there, name, "a page")


def files_of_states(store: Store, running: Mapping[str, RunningOperator]) -> Iterator[str]:
    """The state of an operator is in files that are there."""
    states = {identity: each.state for identity, each in running.items()}
    named = {i: tuple(state.names) for i, state in states.items() if state is not None}
    there = _names_there(store)
    for identity, names in named.items():
        for name in names:
            yield from _is_there(store, there, name, f"the state of {identity}")


def _names_there(store: Store) -> set[str]:
    """The files of pages and states, as their folders have them; to be asked for after the names
    that are to be among them."""
    folders = [folder for folder in (*FOLDERS, SPILLED) if store.path(folder).exists()]
    return {f"{folder}/{file.name}" for folder in folders for file in store.path(folder).iterdir()}


def _is_there(store: Store, there: Container[str], name: str, what: str) -> Iterator[str]:
    if name not in there:
        yield f"{what} is in {name}, which is not there"
    elif store.is_durable and name not in store._sums:
        yield f"{what} is in {name}, of which the log says nothing"
    elif name in store._doomed:
        yield f"{what} is in {name}, which is about to be deleted"


def files_of_log(store: Store) -> Iterator[str]:
    """What the log names and nobody has given up is there."""
    with store._guard:
        named = store._sums.keys() - set(store._doomed)
        unnoted = set(store._unnoted)
        known = set(store._sums)
    for name in sorted(named - _names_there(store)):
        yield f"the log names {name}, which is not there"
    yield from strangers("files that the log is to know", unnoted, known)


def tables_read_again(store: Store) -> Iterator[str]:
    """What is remembered of files takes as much memory as is counted."""
    with store._guard:
        size = sum(table.nbytes for table in store._tables.values())
        yield from recounted("bytes of what was read again", store._tables_bytes, size)


# -- states ----------------------------------------------------------------------------------


def versions(running: Mapping[str, RunningOperator]) -> Iterator[str]:
    """The files of a state follow one another, up to its version."""
    for identity, each in running.items():
        for state in _states(each.state):
            for deltas in state.version.buckets:
                spans = [(delta.first, delta.last) for delta in deltas]
                ends = [last for _, last in spans]
                if any(one[1] >= other[0] for one, other in pairwise(spans)):
                    yield f"files of the state of {identity} say the same twice: {spans}"
                if max(ends, default=0) > state.version.number:
                    yield f"the state of {identity} is older than its files: {spans}"


def _states(state: KeptState | None) -> list[BucketedState]:
    if isinstance(state, PairedState):
        return [state.left, state.right]
    return [state] if isinstance(state, BucketedState) else []


def cached_states(cache: StateCache) -> Iterator[str]:
    """What is held of states takes as much memory as is counted."""
    with cache._lock:
        held = sum(each.bytes for each in cache._held.values())
        waiting = sum(each.bytes for each in cache._waiting.values())
        yield from recounted("bytes of states in memory", cache._held_bytes, held)
        yield from recounted("bytes of states not yet committed", cache._waiting_bytes, waiting)


# -- the journal -----------------------------------------------------------------------------


def end_of_log(store: Store, journal: Journal) -> Iterator[str]:
    """A store that lasts has a log, and no more of it is said to be whole than is written."""
    if store.is_durable != journal.is_durable:
        yield "notes go nowhere: the store has no open log, or its log is still being read"
    if journal._log is None:
        return
    if not store.path(LOG).exists():
        yield f"the log {LOG} is not there"
    end = LogEnd.read(store.path(END))
    if end > journal._log.last_number:
        yield f"the log is whole up to {end}, and its last record is {journal._log.last_number}"
