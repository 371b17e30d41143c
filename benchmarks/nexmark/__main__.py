"""NEXMark's queries of windows and of ranks, as published, over 1,000,000 events.

    python -m benchmarks.nexmark [--quick] [--out DIR] [--rows EVENTS] [--queries q5,q19]

Before anything is timed, the answers to 50,000 events are compared with DuckDB's, row for row: of
windows what each has to say when it ends, of ranks the answer after every tenth of the events. Each
query runs alone, in the driver, without Spark: seconds and processor seconds.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa

from benchmarks.nexmark.events import Events
from benchmarks.nexmark.in_duckdb import QUERIES, Rows, answer
from benchmarks.reporting import Report, options, progress
from millpond import Engine
from millpond.settings import Settings

FOLDER = Path(__file__).parent
EVENTS, QUICK_EVENTS, CHECKED = 1_000_000, 100_000, 50_000
PIECE_MICROSECONDS = 1_000_000
"""So much time of all streams is pushed at once."""
EPOCH = datetime(1970, 1, 1)


def begun(query: str) -> Engine:
    """An engine with the streams and one query."""
    settings = Settings(driver_rows=10**12, processors=1)
    engine = Engine(settings, keep_results=True)
    engine.execute((FOLDER / "streams.cql").read_text(encoding="utf-8"))
    engine.execute((FOLDER / f"{query}.cql").read_text(encoding="utf-8"))
    return engine


def pieces(tables: dict[str, pa.Table]) -> list[dict[str, pa.Table]]:
    """The tables cut by time, for all streams alike."""
    times = {name: table["dateTime"].cast(pa.int64()).to_numpy() for name, table in tables.items()}
    first = min(int(each[0]) for each in times.values())
    last = max(int(each[-1]) for each in times.values())
    found = []
    for begin in range(first, last + 1, PIECE_MICROSECONDS):
        bounds = (begin, begin + PIECE_MICROSECONDS)
        cut = {name: each.searchsorted(bounds) for name, each in times.items()}
        found.append({name: t[slice(*map(int, cut[name]))] for name, t in tables.items()})
    return found


def feed(engine: Engine, piece: dict[str, pa.Table]) -> None:
    """Pushes what came in some time, and has it answered."""
    for name, table in piece.items():
        if table.num_rows:
            engine.push(name, table)
    engine.run_until_idle()


def said(engine: Engine, query: str) -> Rows:
    """What a query has answered: of windows all of it with the time, of a relation its content."""
    found: Rows = Counter()
    for row in engine.results(query).to_pylist():
        ts, weight = row.pop("ts"), row.pop("weight")
        moment = () if query == "q19" else (EPOCH + timedelta(microseconds=ts),)
        found[(*moment, *row.values())] += weight
    return Counter({row: count for row, count in found.items() if count})


def check(query: str, count: int = CHECKED) -> int:
    """Fails unless the answers are DuckDB's; how many rows were compared."""
    tables = Events(count).tables()
    parts, compared = pieces(tables), 0
    with begun(query) as engine:
        for number, piece in enumerate(parts, 1):
            feed(engine, piece)
            if query == "q19" and number % max(1, len(parts) // 10) == 0:
                known = pa.concat_tables([part["bid"] for part in parts[:number]])
                engine.advance("bid", known["dateTime"][-1].cast(pa.int64()).as_py())
                engine.run_until_idle()
                compared += _compare(query, said(engine, query), answer(query, {"bid": known}))
        engine.finish()
        return compared + _compare(query, said(engine, query), answer(query, tables))


def _compare(query: str, found: Rows, expected: Rows) -> int:
    if found != expected:
        surplus, missing = found - expected, expected - found
        told = f"too much {list(surplus)[:3]}, too little {list(missing)[:3]}"
        raise SystemExit(f"{query}: not DuckDB's answer; {told}")
    return expected.total()


def timed(query: str, count: int) -> tuple[float, float]:
    """Seconds and processor seconds for so many events."""
    parts = pieces(Events(count).tables())
    with begun(query) as engine:
        began, worked = time.perf_counter(), time.process_time()
        for piece in parts:
            feed(engine, piece)
        engine.finish()
        return time.perf_counter() - began, time.process_time() - worked


def main() -> None:
    """Checks and times the queries."""
    parser = options(__doc__ or "", "how many events")
    parser.add_argument("--queries", default=",".join(QUERIES), help="only these")
    chosen = parser.parse_args()
    count = chosen.rows or (QUICK_EVENTS if chosen.quick else EVENTS)
    report, names = Report("nexmark", chosen.out), chosen.queries.split(",")
    with progress(len(names)) as doing:
        for name in names:
            doing(name)
            compared = check(name, min(count, CHECKED))
            seconds, processor_seconds = timed(name, count)
            report.value(
                f"{name}: {count:,} events",
                1e6 * processor_seconds / count,
                "processor microseconds an event",
                seconds=seconds,
                processor_seconds=processor_seconds,
                rows_compared_with_duckdb=compared,
            )
    report.close()


if __name__ == "__main__":
    main()
