"""The control tables of what is declared: queries, streams, relations."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from millpond.catalog import QueryEntry, RelationEntry, StreamEntry
from millpond.entities.attributes import Attribute, Read, boolean, integer, knob, number, text
from millpond.entities.control_tables import Kind
from millpond.entities.controlled import Controlled
from millpond.errors import StateError
from millpond.identities import InputId, StreamId
from millpond.intake.intake import END
from millpond.intake.promises import behind_ticks
from millpond.schema import BEGINNING
from millpond.settings import format_duration
from millpond.sharing.waits import heartbeat_text, wait_of
from millpond.storage.queues import Queue

_TOLERANCE = re.compile(r"EXACT|TOLERATE \([A-Z0-9 .,]{1,200}\)", re.IGNORECASE)
_LENGTH = re.compile(r"\s*\d+(\.\d+)?\s*[A-Za-z]*\s*")
"""A number with a unit of time, or of ticks."""
_ADAPTIVE = re.compile(r"\s*adaptive\s+([\d.]+\s+percent\s+)?at\s+most\b", re.IGNORECASE)
"""What comes before the longest of delays that follow how tuples come."""


def quoted(name: str) -> str:
    """A name as CQL reads it, whatever is in it.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def _names(kind: type[Any]) -> Callable[[Controlled], list[str]]:
    return lambda view: [entry.name for entry in view.ground.catalog.of_kind(kind)]


# -- queries -------------------------------------------------------------------------------


def _state(view: Controlled, name: str) -> str:
    if any(failure.query == name for failure in list(view.queries.failures)):
        return "failed"
    return "active" if view.ground.query_entry(name).active else "inactive"


def _error(view: Controlled, name: str) -> str:
    return next((f.error for f in list(view.queries.failures) if f.query == name), "")


def _set_weight(view: Controlled, name: str, value: float) -> None:
    view.execute(f"ALTER QUERY {quoted(name)} SET WEIGHT {value!r}")


def _set_active(view: Controlled, name: str, value: bool) -> None:
    view.execute(f"ALTER QUERY {quoted(name)} SET {'ACTIVE' if value else 'INACTIVE'}")


def _set_partition(view: Controlled, name: str, value: str) -> None:
    where = f"PARTITION {quoted(value.strip())}" if value.strip() else "NO PARTITION"
    view.execute(f"ALTER QUERY {quoted(name)} SET {where}")


def _reduced(view: Controlled, name: str) -> str:
    return ", ".join(view.ground.query_entry(name).reduced)


def _tolerates(view: Controlled, name: str) -> str:
    tolerates = view.ground.query_entry(name).tolerates
    return "EXACT" if tolerates is None else str(tolerates)


def _set_tolerates(view: Controlled, name: str, value: str) -> None:
    if not _TOLERANCE.fullmatch(value):
        raise StateError(
            f"tolerates: {value!r} will not do; it is EXACT or TOLERATE (SAMPLE AT LEAST 10 "
            "PERCENT, ERROR 2 PERCENT, CONFIDENCE 95 PERCENT)"
        )
    view.execute(f"ALTER QUERY {quoted(name)} {value}")


def window_bytes(view: Controlled, name: str) -> int:
    """What the window of a query takes, if it may be shortened."""
    said = view.ground.query_entry(name).tolerates
    is_cut = said is not None and said.shortest_ticks is not None
    return view.ground.inputs.windows.bytes(said) if said is not None and is_cut else 0


def change_memory(view: Controlled, name: str, value: int) -> None:
    """Has the window of a query take so many bytes at most."""
    said = view.ground.query_entry(name).tolerates
    if said is None or said.shortest_ticks is None:
        raise StateError(
            f'memory: the window of query "{name}" is as long as it says; ALTER or CREATE it with '
            "TOLERATE (WINDOW AT LEAST RANGE length)"
        )
    if value < 0:
        raise StateError(f"memory: {value} bytes; it is 0 or more")
    view.execute(f"ALTER QUERY {quoted(name)} {replace(said, window_bytes=value)}")


def _set_kept(view: Controlled, name: str, value: float) -> None:
    view.execute(f"ALTER STREAM {quoted(name)} KEEP {value!r} PERCENT")


def _set_on_error(view: Controlled, name: str, value: str) -> None:
    view.execute(f"ALTER QUERY {quoted(name)} ON ERROR {value.upper()}")


def _latency(part: str) -> Read:
    return lambda view, name: getattr(view.ground.deliveries.latency(name), f"{part}_seconds")


def _complete_until(view: Controlled, name: str) -> str:
    log = view.ground.deliveries.of(name)
    return _time(log.complete_until, log.format_time)


def _time(ticks: int, format_time: Callable[[int], Any]) -> str:
    if ticks <= BEGINNING:
        return ""
    return "the end" if ticks >= END else str(format_time(ticks))


def _waits_for(view: Controlled, name: str) -> str:
    found = wait_of(view.queries, name)
    return "" if found is None else found.input


def _waits_seconds(view: Controlled, name: str) -> float:
    found = wait_of(view.queries, name)
    return 0.0 if found is None else found.since_seconds


def _waits(view: Controlled, name: str) -> str:
    found = wait_of(view.queries, name)
    return "" if found is None else str(found)


def _operators(view: Controlled, name: str) -> str:
    try:
        return ", ".join(sorted(view.graph.upstream(view.queries.output_of(name))))
    except StateError:  # it does not run
        return ""


QUERY = Kind(
    "query",
    "a continuous query",
    _names(QueryEntry),
    (
        text("state", "active, inactive or failed", _state),
        knob(
            "weight",
            "number",
            "how much it matters to strategies",
            lambda e, q: e.ground.query_entry(q).weight,
            _set_weight,
            above=0,
        ),
        knob(
            "partition",
            "text",
            "whose threads do its work; empty if it is in none",
            lambda e, q: e.ground.query_entry(q).partition,
            _set_partition,
        ),
        knob(
            "active",
            "boolean",
            "whether its answer is kept up to date",
            lambda e, q: e.ground.query_entry(q).active,
            _set_active,
        ),
        knob(
            "on_error",
            "text",
            "what a row does on which an expression fails: stop the query, or be skipped",
            lambda e, q: e.ground.query_entry(q).on_error,
            _set_on_error,
            choices=("stop", "skip"),
        ),
        knob(
            "tolerates",
            "text",
            "how small a sample it tolerates, and how sure its bounds are; or EXACT",
            _tolerates,
            _set_tolerates,
        ),
        knob(
            "memory",
            "integer",
            "what its window takes, if it may be shortened; writing it says what it may take",
            window_bytes,
            change_memory,
            unit="bytes",
        ),
        text("error", "why it stands still", _error),
        integer("results", "elements put out so far", lambda e, q: e.ground.deliveries.of(q).rows),
        integer(
            "left_out",
            "elements left out by ON ERROR SKIP",
            lambda e, q: e.ground.deliveries.left_out_count(q),
        ),
        text("waits", "what it waits for, how long, and how far that is", _waits),
        text("waits_for", "the stream or relation that it waits for", _waits_for),
        number("waits_seconds", "how long it waits for that", _waits_seconds, "s"),
        text("complete_until", "up to when its answer is complete", _complete_until),
        *(
            number(
                f"latency_{part}_seconds", f"from arrival to output, {part}", _latency(part), "s"
            )
            for part in ("mean", "p50", "p95", "p99")
        ),
        text("reduced", "what its statement has REDUCED", _reduced),
        text("text", "the query in CQL", lambda e, q: e.ground.query_entry(q).text),
        text("operators", "the operators that work for it", _operators),
    ),
    activity="results",
)


# -- streams and relations -----------------------------------------------------------------


def _queue(view: Controlled, name: str) -> Queue:
    return view.ground.inputs.queues_of(name)[0]


def _backlog_bytes(view: Controlled, name: str) -> int:
    return view.runtime.backlog.of(_queue(view, name).name).bytes if view.has_runtime else 0


def _promised(view: Controlled, name: str) -> str:
    return heartbeat_text(view.ground.catalog, _queue(view, name))


def _schema(view: Controlled, name: str) -> str:
    return str(getattr(view.ground.catalog.get(name), "schema", ""))


def _source(view: Controlled, name: str) -> str:
    return str(getattr(view.ground.catalog.get(name), "source", ""))


def _shared() -> tuple[Attribute, ...]:
    """What streams and relations have in common."""
    return (
        text("columns", "its columns", _schema),
        text("source", "where its rows come from", _source),
        number(
            "rate",
            "rows that come in a second, of late",
            lambda e, s: _queue(e, s).arrivals.per_second(),
            "rows/s",
        ),
        integer("backlog_bytes", "what waits in its queue", _backlog_bytes, "bytes"),
        text("promised", "nothing at or before this time will follow", _promised),
        boolean(
            "held_back",
            "whether its source waits, as there is no room",
            lambda e, s: InputId(s) in e.ground.inputs.held,
        ),
    )


def _delay(view: Controlled, name: str) -> str:
    entry = view.ground.catalog.get(name)
    if not isinstance(entry, StreamEntry):
        return "none"
    longest = _in_words(view, entry.delay_ticks)
    if entry.late_percent:
        return f"adaptive {entry.late_percent:g} percent at most {longest}"
    return longest


def _present_delay(view: Controlled, name: str) -> str:
    return _in_words(view, view.ground.inputs.streams[StreamId(name)].admission.delay_ticks)


def _in_words(view: Controlled, ticks: int) -> str:
    return format_duration(ticks * view.ground.catalog.tick_microseconds) if ticks else "none"


def _set_delay(view: Controlled, name: str, value: str) -> None:
    rest = _ADAPTIVE.match(value)
    if rest:
        length = rest[0] + _length("delay", value[rest.end() :], "none")
    else:
        length = "0" if value.strip().lower() == "none" else _length("delay", value, "none")
    view.execute(f"ALTER STREAM {quoted(name)} DELAY {length}")


def _idle_after(view: Controlled, name: str) -> str:
    entry = view.ground.catalog.get(name)
    silence = entry.idle_microseconds if isinstance(entry, StreamEntry) else 0
    return format_duration(silence) if silence else "never"


def _set_idle_after(view: Controlled, name: str, value: str) -> None:
    length = "NEVER" if value.strip().lower() == "never" else _length("idle_after", value, "never")
    view.execute(f"ALTER STREAM {quoted(name)} IDLE AFTER {length}")


def _ahead(view: Controlled, name: str) -> str:
    entry = view.ground.catalog.get(name)
    ahead = entry.ahead_microseconds if isinstance(entry, StreamEntry) else None
    return "any" if ahead is None else format_duration(ahead)


def _set_ahead(view: Controlled, name: str, value: str) -> None:
    length = _length("ahead", value)
    view.execute(f"ALTER STREAM {quoted(name)} AHEAD AT MOST {length}")


def _skew(view: Controlled, name: str) -> str:
    entry = view.ground.catalog.get(name)
    skew = entry.skew_ticks if isinstance(entry, StreamEntry) else None
    return "any" if skew is None else _in_words(view, skew)


def _behind(view: Controlled, name: str) -> str:
    ticks = behind_ticks(view.ground.inputs, StreamId(name))
    return "" if ticks is None else _in_words(view, ticks)


def _length(knob_name: str, value: str, nothing: str = "") -> str:
    """The length that was given for a knob; something else may stand for none."""
    if not _LENGTH.fullmatch(value):
        wanted = f"{nothing} or a length" if nothing else "a length"
        raise StateError(
            f"{knob_name}: {value!r} will not do; it must be {wanted}, such as 5 seconds"
        )
    return value


def _bad_rows(view: Controlled, name: str) -> int:
    log = view.ground.deliveries.bad_rows(name)
    return 0 if log is None else log.rows


STREAM = Kind(
    "stream",
    "a growing sequence of tuples",
    _names(StreamEntry),
    (
        *_shared(),
        integer(
            "arrived",
            "tuples that came so far",
            lambda e, s: e.ground.inputs.streams[StreamId(s)].arrived,
        ),
        integer(
            "late",
            "tuples that came too late",
            lambda e, s: e.ground.inputs.streams[StreamId(s)].late_count,
        ),
        integer("bad_rows", "rows its source could not read, put aside", _bad_rows),
        integer(
            "violating",
            "tuples that broke a constraint or contradicted a punctuation",
            lambda e, s: e.ground.inputs.streams[StreamId(s)].violating_count,
        ),
        knob("delay", "text", "how late a tuple may come", _delay, _set_delay),
        text("present_delay", "the same now, where it follows how tuples come", _present_delay),
        knob(
            "idle_after",
            "text",
            "how long it may be silent before its time goes on without it",
            _idle_after,
            _set_idle_after,
        ),
        text("skew", "how far its time may be behind that of other streams", _skew),
        text("behind", "how far it is behind the stream furthest", _behind),
        knob("ahead", "text", "how far a tuple may be ahead of the clock", _ahead, _set_ahead),
        knob(
            "kept_percent",
            "number",
            "how many tuples are kept for queries that tolerate it, where overload is approximate",
            lambda e, s: e.ground.stream_entry(s).kept_percent,
            _set_kept,
            above=0,
        ),
    ),
    activity="arrived",
)

RELATION = Kind(
    "relation",
    "a set of rows that changes over time",
    _names(RelationEntry),
    (
        *_shared(),
        integer(
            "changes",
            "rows put in or taken out so far",
            lambda e, r: e.ground.inputs.relation(r).changed_rows,
        ),
    ),
    activity="changes",
)
