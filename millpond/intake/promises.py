"""Promises of inputs that nothing at or before a time will follow: those of users, of the wall
clock, and of sources that end."""

import time
from typing import Any

from millpond.connectors.sources import is_live, nothing_until
from millpond.identities import InputId
from millpond.intake.inputs import Coming, Inputs
from millpond.intake.intake import END, StreamIntake
from millpond.intake.transitions import HeartbeatCame, SourceRead
from millpond.planning.graph import Graph
from millpond.schema import BEGINNING
from millpond.settings import Settings
from millpond.storage.queues import Queue


def advance(inputs: Inputs, name: str, timestamp: Any, coming: Coming) -> None:
    """A heartbeat: promises that nothing at or before the time will follow."""
    inputs.promise_to(inputs.queues_of(name), inputs.ticks(timestamp, name), coming)


def promise_all(inputs: Inputs, heartbeat: int, coming: Coming) -> None:
    """Promises that nothing at or before a time will follow anywhere."""
    for name in inputs.names:
        inputs.promise_to(inputs.queues_of(name), heartbeat, coming)


def keep_promise(inputs: Inputs, key: InputId) -> None:
    """A stream has another delay: with a smaller one time may be over at once."""
    intake = inputs.streams[key]
    if intake.promise > intake.queue.heartbeat:
        with inputs.ahead(flushes=False) as coming:
            inputs.promise_to(inputs.queues_of(key), intake.promise, coming)


def end(inputs: Inputs, graph: Graph) -> None:
    """Promises that nothing will follow, except in sources that nobody reads."""
    ending = [
        name for name in inputs.names if name not in inputs.sources or inputs.is_read(graph, name)
    ]
    for name in inputs.relations.keys() & ending:
        inputs.relations[name].refuse_conflict(END)
    for name in ending:
        inputs.held.discard(name)
        with inputs.ahead(flushes=False) as coming:
            if name in inputs.sources:  # read up to its limit
                coming.append(SourceRead(name, -1, inputs.bad_rows.get(name, 0)))
            inputs.promise_to(inputs.queues_of(name), END, coming)


def promise_on_demand(inputs: Inputs, settings: Settings) -> None:
    """Heartbeats on demand: from the wall clock, and from the streams for quiet relations."""
    for name, intake in inputs.streams.items():
        follows = intake.entry.timestamp_column is None and not intake.is_admitted_elsewhere
        if follows and intake.queue.heartbeat < END and not intake.is_kept:
            _raise(inputs, inputs.queues_of(name), intake.now_ticks() - 1)
    _ask(inputs)
    _bound_skew(inputs)
    _time_out(inputs, settings)
    for relation in inputs.relations.values():
        if not relation.entry.has_changes:
            _raise(inputs, relation.queues, max(_furthest(inputs), relation.last_change))
        relation.reader.cursor = relation.queue.heartbeat


def _ask(inputs: Inputs) -> None:
    """A source that knows its own time says it when others are further: who joins them waits."""
    furthest = _furthest(inputs)
    for name, intake in inputs.streams.items():
        is_behind = intake.queue.heartbeat < furthest < END and name in inputs.sources
        if is_behind and not intake.is_kept and not intake.is_admitted_elsewhere:
            known = nothing_until(inputs.sources[name][0])
            if known is not None:
                _raise(inputs, inputs.queues_of(name), min(known, furthest))


def _bound_skew(inputs: Inputs) -> None:
    """A stream that may not be so far behind others goes on where they are further than that; those
    timed by their arrival do not count, as their time is that of the wall clock."""
    timed = (each for each in inputs.streams.values() if each.entry.timestamp_column is not None)
    times = (intake.queue.heartbeat for intake in timed)
    reached = max((each for each in times if each < END), default=BEGINNING)
    for name, intake in inputs.streams.items():
        skew = intake.entry.skew_ticks
        has_more = name in inputs.held or _always_has_more(inputs, name)
        if skew is None or reached == BEGINNING or has_more or intake.is_kept:
            continue
        if not intake.is_admitted_elsewhere:
            _raise(inputs, inputs.queues_of(name), reached - skew - 1)


def behind_ticks(inputs: Inputs, name: InputId) -> int | None:
    """How far the time of a stream is behind that of the one furthest; None before its first."""
    times = [intake.queue.heartbeat for intake in inputs.streams.values()]
    known = [each for each in times if BEGINNING < each < END]
    own = inputs.streams[name].queue.heartbeat
    return max(known) - own if BEGINNING < own < END else None


def _furthest(inputs: Inputs) -> int:
    return max((i.queue.heartbeat for i in inputs.streams.values()), default=BEGINNING)


def _time_out(inputs: Inputs, settings: Settings) -> None:
    """A stream that stays silent too long follows the others, and the wall clock."""
    silent = [name for name, i in inputs.streams.items() if _is_silent(inputs, name, i, settings)]
    if not silent:
        return
    times = (intake.queue.heartbeat for intake in inputs.streams.values())
    reached = max((each for each in times if each < END), default=BEGINNING)
    for name in silent:
        promised = inputs.streams[name].idle_promise(time.monotonic())
        _raise(inputs, inputs.queues_of(name), max(reached, promised))


def _is_silent(inputs: Inputs, name: InputId, intake: StreamIntake, settings: Settings) -> bool:
    """Whether nothing has come to a stream for so long that its time goes on without it."""
    limit = intake.entry.idle_microseconds / 1e6
    if not limit and settings.clock == "wall":
        limit = settings.heartbeat_timeout_seconds
    if not limit or intake.is_kept:
        return False
    has_more = name in inputs.held or _always_has_more(inputs, name) or intake.is_admitted_elsewhere
    return not has_more and time.monotonic() - intake.last_arrival_seconds > limit


def _always_has_more(inputs: Inputs, name: InputId) -> bool:
    return name in inputs.sources and not is_live(inputs.sources[name][0])


def _raise(inputs: Inputs, queues: list[Queue], heartbeat: int) -> None:
    later = [queue.name for queue in queues if heartbeat > queue.heartbeat]
    if later:
        with inputs.ahead(flushes=False) as coming:
            coming += [HeartbeatCame(name, heartbeat, moves=False) for name in later]
