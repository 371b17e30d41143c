"""Store, states and journal: what is needed lies there, and the log says so."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from millpond.identities import OperatorId
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


def names_of_pages(pages: Iterable[Page]) -> dict[Page, tuple[str, ...]]:
    """The files that pages lie in."""
    return {page: tuple(page._names) for page in pages if not page.is_free}


def names_of_states(
    running: Mapping[OperatorId, RunningOperator],
) -> dict[OperatorId, tuple[str, ...]]:
    """The files that the states of operators lie in."""
    states = {identity: each.state for identity, each in running.items()}
    return {i: tuple(state.names) for i, state in states.items() if state is not None}


def names_in_log(store: Store) -> set[str]:
    """The files that the log names and nobody has given up."""
    with store._guard:
        return store._sums.keys() - set(store._doomed)


def names_there(store: Store) -> set[str]:
    """The files of pages and states, as their folders have them; to be asked for after the names
    that are to be among them."""
    found: set[str] = set()
    for folder in (*FOLDERS, SPILLED):
        with contextlib.suppress(FileNotFoundError), os.scandir(store.path(folder)) as files:
            found.update(f"{folder}/{file.name}" for file in files)
    return found


def files_of_pages(
    store: Store, page_files: Mapping[Page, tuple[str, ...]], there: set[str]
) -> Iterator[str]:
    """The rows of a page are in memory, or in files that are there."""
    sound = _sound(store, there)
    for page, names in page_files.items():
        if not page.is_in_driver and not page._names:
            yield f"a page of {page.rows} rows is neither in memory nor in a file"
        if not sound.issuperset(names):
            yield from _unsound(store, there, names, "a page")


def files_of_states(
    store: Store, state_files: Mapping[OperatorId, tuple[str, ...]], there: set[str]
) -> Iterator[str]:
    """The state of an operator is in files that are there."""
    sound = _sound(store, there)
    for identity, names in state_files.items():
        if not sound.issuperset(names):
            yield from _unsound(store, there, names, f"the state of {identity}")


def _sound(store: Store, there: set[str]) -> set[str]:
    """The files that something may lie in."""
    with store._guard:
        known = there & store._sums.keys() if store.is_durable else there
        return known - set(store._doomed)


def _unsound(store: Store, there: set[str], names: Iterable[str], what: str) -> Iterator[str]:
    for name in names:
        if name not in there:
            yield f"{what} is in {name}, which is not there"
        elif store.is_durable and name not in store._sums:
            yield f"{what} is in {name}, of which the log says nothing"
        elif name in store._doomed:
            yield f"{what} is in {name}, which is about to be deleted"


def files_of_log(log_files: set[str], there: set[str]) -> Iterator[str]:
    """What the log names and nobody has given up is there."""
    for name in sorted(log_files - there):
        yield f"the log names {name}, which is not there"


def files_to_note(store: Store) -> Iterator[str]:
    """What the log is to name next is known."""
    with store._guard:
        unnoted, known = set(store._unnoted), set(store._sums)
    yield from strangers("files that the log is to know", unnoted, known)


def tables_read_again(store: Store) -> Iterator[str]:
    """What is remembered of files takes as much memory as is counted."""
    with store._guard:
        size = sum(table.nbytes for table in store._tables.values())
        yield from recounted("bytes of what was read again", store._tables_bytes, size)


# -- states ----------------------------------------------------------------------------------


def versions(running: Mapping[OperatorId, RunningOperator]) -> Iterator[str]:
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
    if journal._log is None or store.remote is not None:
        return
    if not store.path(LOG).exists():
        yield f"the log {LOG} is not there"
    end = LogEnd.read(store.path(END))
    if end > journal._log.last_number:
        yield f"the log is whole up to {end}, and its last record is {journal._log.last_number}"
