"""NEXMark's queries, Q0 to Q22, as published, over 1,000,000 events.

    python -m benchmarks.nexmark [--quick] [--out DIR] [--rows EVENTS] [--queries q5,q19]

Before anything is timed, the answers to 50,000 events are compared with DuckDB's, row for row: of
streams all that was said, at its time (of windows when they end), of relations what they hold after
every tenth of the events. Each query runs alone, in the driver, without Spark: seconds and
processor seconds, and processor time beside that of Q4 (goal: at most three times as much).
"""

from __future__ import annotations

import time

import pyarrow as pa

from benchmarks.nexmark.asking import Tables, asked_too, begun, feed, pieces, promise, said
from benchmarks.nexmark.events import Events
from benchmarks.nexmark.in_duckdb import QUERIES, RELATIONS, Rows, answer
from benchmarks.reporting import Report, options, progress

EVENTS, QUICK_EVENTS, CHECKED = 1_000_000, 100_000, 50_000
PIECE_MICROSECONDS = 1_000_000
"""So much time of all streams is pushed at once."""
LOOKS = 10
YARDSTICK, GOAL = "q4", 3.0


def check(query: str, count: int = CHECKED, looks: int = LOOKS) -> int:
    """Fails unless the answers are DuckDB's; how many rows were compared."""
    tables = Events(count).tables()
    parts, compared = pieces(tables, PIECE_MICROSECONDS), 0
    with begun(query, is_checked=True) as engine:
        for number, piece in enumerate(parts, 1):
            feed(engine, query, piece)
            if query in RELATIONS and number % max(1, len(parts) // looks) == 0:
                known = _known(parts[:number])
                promise(engine, known)
                compared += _compare(query, said(engine, query), answer(query, known))
        engine.finish()
        expected = answer(query, tables | asked_too(engine, query))
        return compared + _compare(query, said(engine, query), expected)


def _known(parts: list[Tables]) -> Tables:
    return {name: pa.concat_tables([part[name] for part in parts]) for name in parts[0]}


def _compare(query: str, found: Rows, expected: Rows) -> int:
    if found != expected:
        surplus, missing = found - expected, expected - found
        told = f"too much {list(surplus)[:3]}, too little {list(missing)[:3]}"
        raise SystemExit(f"{query}: not DuckDB's answer; {told}")
    return expected.total()


def timed(query: str, count: int) -> tuple[float, float]:
    """Seconds and processor seconds for so many events."""
    parts = pieces(Events(count).tables(), PIECE_MICROSECONDS)
    with begun(query) as engine:
        began, worked = time.perf_counter(), time.process_time()
        for piece in parts:
            feed(engine, query, piece)
        engine.finish()
        return time.perf_counter() - began, time.process_time() - worked


def main() -> None:
    """Checks and times the queries."""
    parser = options(__doc__ or "", "how many events")
    parser.add_argument("--queries", default=",".join(QUERIES), help="only these")
    chosen = parser.parse_args()
    count = chosen.rows or (QUICK_EVENTS if chosen.quick else EVENTS)
    report, names = Report("nexmark", chosen.out), chosen.queries.split(",")
    with progress(len(names) + 1) as doing:
        doing(YARDSTICK)
        _, yardstick = timed(YARDSTICK, count)
        for name in names:
            doing(name)
            compared = check(name, min(count, CHECKED))
            seconds, processor_seconds = timed(name, count)
            report.ratio(
                f"{name}: {count:,} events",
                processor_seconds / yardstick,
                GOAL,
                at_most=True,
                processor_microseconds_an_event=round(1e6 * processor_seconds / count, 2),
                seconds=round(seconds, 2),
                processor_seconds=round(processor_seconds, 2),
                rows_compared_with_duckdb=compared,
            )
    report.close()


if __name__ == "__main__":
    main()
