"""A query of NEXMark in an engine of its own: what is pushed to it, and what it has answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.nexmark.events import side_input
from benchmarks.nexmark.in_duckdb import RELATIONS, Rows
from millpond import Engine
from millpond.settings import Settings

FOLDER = Path(__file__).parent
EPOCH = datetime(1970, 1, 1)
Tables = dict[str, pa.Table]
_BY_ARRIVAL = "bid_as_it_comes"
_ARRIVALS = f"CREATE QUERY arrivals AS SELECT tstamp(B) AS came, bidder FROM {_BY_ARRIVAL} B"


def count_char(texts: pa.Array, letters: pa.Array) -> pa.Array:
    """How often a letter is in a text; the function of the user of Q14."""
    (letter,) = pc.unique(letters).to_pylist() or ("",)
    return pc.cast(pc.count_substring(texts, letter), "int64")


@contextmanager
def begun(query: str, is_checked: bool = False) -> Iterator[Engine]:
    """An engine with the streams and one query; ``is_checked``: with what a check needs too."""
    settings = Settings(driver_rows=10**12, processors=1)
    with (
        TemporaryDirectory(prefix="nexmark") as folder,
        Engine(settings, keep_results=True) as engine,
    ):
        engine.register_function("count_char", count_char, ["STRING", "STRING"], "BIGINT")
        engine.execute((FOLDER / "streams.cql").read_text(encoding="utf-8"))
        text = (FOLDER / f"{query}.cql").read_text(encoding="utf-8")
        engine.execute(text, parameters={"folder": folder} if ":folder" in text else None)
        if query == "q12" and is_checked:
            engine.execute(_ARRIVALS)
        if query == "q13":
            engine.push("side_input", side_input())
        yield engine


def pieces(tables: Tables, microseconds: int) -> list[Tables]:
    """The tables cut by time, for all streams alike."""
    times = {name: table["dateTime"].cast(pa.int64()).to_numpy() for name, table in tables.items()}
    first = min(int(each[0]) for each in times.values())
    last = max(int(each[-1]) for each in times.values())
    found = []
    for begin in range(first, last + 1, microseconds):
        bounds = (begin, begin + microseconds)
        cut = {name: each.searchsorted(bounds) for name, each in times.items()}
        found.append({name: t[slice(*map(int, cut[name]))] for name, t in tables.items()})
    return found


def feed(engine: Engine, query: str, piece: Tables) -> None:
    """Pushes what came in some time, and has it answered."""
    for name, table in piece.items():
        if table.num_rows:
            is_by_arrival = query == "q12" and name == "bid"
            engine.push(_BY_ARRIVAL if is_by_arrival else name, table)
    engine.run_until_idle()


def promise(engine: Engine, known: Tables) -> None:
    """Has all that is known answered: nothing of these times will follow."""
    last = max(pc.max(table["dateTime"]).cast(pa.int64()).as_py() for table in known.values())
    for name in known:
        engine.advance(name, last)
    engine.run_until_idle()


def said(engine: Engine, query: str) -> Rows:
    """What a query has answered: of a relation its content, of a stream all, with the time."""
    found: Rows = Counter()
    for row in engine.results(query).to_pylist():
        ts, weight, *values = row.values()
        moment = () if query in RELATIONS else (EPOCH + timedelta(microseconds=ts),)
        found[(*moment, *values)] += weight
    return Counter({row: count for row, count in found.items() if count})


def asked_too(engine: Engine, query: str) -> Tables:
    """What DuckDB has to know besides the events."""
    if query == "q13":
        return {"side_input": side_input()}
    return {"arrivals": engine.results("arrivals")} if query == "q12" else {}
