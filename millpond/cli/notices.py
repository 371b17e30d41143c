"""What a run says about itself on stderr: what keeps it going, and what cannot have been meant."""

import sys
from collections.abc import Iterator

from millpond.catalog import QueryEntry, StreamEntry
from millpond.facade.engine import Engine
from millpond.intake.reading import active_readers, endless

MOST_QUERIES = 5
"""Of so many queries, the slowest, a run tells the latency when it ends."""


def say_what_has_no_end(engine: Engine, way_out: str) -> None:
    """Names the endless sources that keep queries running, and how to end them."""
    sources = {key: source for key, (source, _) in engine.inputs.sources.items()}
    for each in endless(engine.catalog, sources):
        _say(f"{each}: {way_out}")


def warn_of_silence(engine: Engine, has_answers: bool) -> None:
    """Warns of a script that cannot put anything out: no query, or a stream that nobody feeds."""
    queries = list(engine.catalog.of_kind(QueryEntry))
    if not queries and not has_answers and engine.catalog.entries:
        _say("warning: the script asks nothing, so nothing was read; add a SELECT or CREATE QUERY")
    for name, readers in _unfed(engine):
        _say(
            f"warning: nothing feeds stream {name}, which {', '.join(readers)} read{_s(readers)}; "
            f"give it a source, such as FROM csv('file.csv') or FROM stdin()"
        )


def warn_of_late_tuples(engine: Engine) -> None:
    """Says how many tuples came too late, broke a constraint or contradicted a punctuation."""
    for intake in engine.inputs.streams.values():
        if intake.late_count:
            _say(
                f"warning: stream {intake.entry.name}: {intake.late_count} of "
                f"{intake.arrived + intake.late_count} tuples came too late and were left out; "
                "DELAY in CREATE STREAM says how much disorder to wait for"
            )
        if intake.violating_count:
            _say(
                f"warning: stream {intake.entry.name}: {intake.violating_count} tuples broke a "
                "constraint or contradicted a punctuation and were left out; SHOW CONSTRAINTS says "
                "which, and how far it would have to go, and SHOW PUNCTUATIONS"
            )


def warn_of_bad_rows(engine: Engine) -> None:
    """Says how many rows of sources could not be read and were put aside, if any."""
    for entry in engine.catalog.of_kind(StreamEntry):
        count = engine.bad_row_count(entry.name)
        if count:
            said = engine.bad_rows(entry.name, last_rows=1)["reason"].to_pylist()
            last = "".join(f"; the last: {reason}" for reason in said)
            words = (
                "row could not be read and was" if count == 1 else "rows could not be read and were"
            )
            _say(f"warning: stream {entry.name}: {count} {words} put aside{last}")


def say_what_it_took(engine: Engine) -> None:
    """Says which way steps and rows went, what has waited, and how long results took."""
    if not engine.has_runtime or not engine.runtime.tally.steps:
        return
    _say_which_way(engine)
    backlog = engine.runtime.backlog
    _say(
        f"backlog at most {backlog.peak_bytes / 1e6:,.2f} MB, "
        f"{backlog.mean_bytes() / 1e6:,.2f} MB on average"
    )
    known = [(engine.latency(e.name), e.name) for e in engine.catalog.of_kind(QueryEntry)]
    measured = [pair for pair in known if pair[0].results]
    for latencies, name in sorted(measured, key=lambda pair: -pair[0].p95_seconds)[:MOST_QUERIES]:
        _say(f"latency of {name}: {latencies}")
    if len(measured) > MOST_QUERIES:
        _say(f"latency of {len(measured) - MOST_QUERIES} more queries: shorter; see SHOW LATENCY")


def _say_which_way(engine: Engine) -> None:
    tally = engine.runtime.tally
    _say(
        f"{tally.driver_steps:,} steps in the driver ({tally.driver_rows:,} rows), "
        f"{tally.executor_steps:,} on the executors ({tally.executor_rows:,} rows); "
        f"{tally.driver_bytes / 1e6:,.1f} MB came to the driver"
    )


def _unfed(engine: Engine) -> Iterator[tuple[str, list[str]]]:
    for entry in engine.catalog.of_kind(StreamEntry):
        intake = engine.inputs.streams[entry.identity]
        readers = list(active_readers(engine.catalog, entry.identity))
        if entry.source.name == "push" and readers and not intake.arrived + intake.late_count:
            yield entry.name, readers


def _s(readers: list[str]) -> str:
    return "s" if len(readers) == 1 else ""


def _say(text: str) -> None:
    sys.stderr.write(f"millpond: {text}\n")
    sys.stderr.flush()
