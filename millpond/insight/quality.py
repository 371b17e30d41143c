"""How good the answers of queries are that tolerate a sample: SHOW QUALITY and engine.quality()."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa

from millpond.catalog import QueryEntry, Tolerance
from millpond.cql.algebra import HopWindow, Join, RangeWindow, StreamScan
from millpond.cql.node import Node
from millpond.identities import StreamId
from millpond.sharing.beginnings import told_time
from millpond.sharing.queries import Queries


@dataclass(frozen=True)
class Quality:
    """How good the answers of a query are now."""

    query: str
    stream: str
    kept_percent: float
    """How many of the tuples that come are kept."""
    least_percent: float
    confidence_percent: float
    tolerated_error: str
    """How far bounds may be from answers, if it says so."""
    reason: str
    """Why so many are kept, if that was changed since this run began."""
    window: str
    """How long the window is of what comes now, if it may be shortened: whole, or its length and
    why."""
    dropped: int
    """How many tuples were dropped so far."""
    exact: str
    """When answers are exact if nothing more is dropped: now, from a time on, or never."""
    false_negatives: float | None
    """Of an answer that is a set of rows, how many are missed for each hundred that are delivered,
    of tuples that come now: expected, or more than that where equal rows count once."""
    false_positives: float | None
    """How many of a hundred rows that are delivered are wrong."""
    widths: dict[str, float]
    """The widest confident bounds in the present answer, by columns, relative to the answers."""


def quality_rows(queries: Queries) -> Iterator[dict[str, Any]]:
    """A row for each query that tolerates a sample."""
    for entry in queries.ground.catalog.of_kind(QueryEntry):
        if entry.tolerates is not None:
            found = quality_of(queries, entry)
            yield {
                "query": found.query,
                "stream": found.stream,
                "kept percent": found.kept_percent,
                "at least": found.least_percent,
                "confidence": found.confidence_percent,
                "error": found.tolerated_error,
                "false negatives": found.false_negatives,
                "false positives": found.false_positives,
                "because": found.reason,
                "window": found.window,
                "dropped": found.dropped,
                "exact": found.exact,
                "widest bounds": ", ".join(f"{k} {v:.2%}" for k, v in found.widths.items()),
            }


def quality_of(queries: Queries, entry: QueryEntry) -> Quality:
    """How good the answers of a query are; one that tolerates nothing is exact."""
    said = entry.tolerates
    if said is None:
        return Quality(entry.name, "", 100.0, 100.0, 100.0, "", "", "", 0, "now", None, None, {})
    intake = queries.ground.inputs.streams[StreamId(said.kept)]
    rate = queries.ground.inputs.rate(StreamId(said.stream))
    missed = 100 * (1 - rate) / rate if said.is_of_sets else None
    return Quality(
        entry.name,
        said.stream,
        100 * rate,
        said.needed_percent,
        said.confidence_percent,
        said.tolerated_error,
        queries.ground.inputs.kept_because.get(StreamId(said.stream), ""),
        queries.ground.inputs.windows.told(said),
        intake.dropped_count,
        _exact(queries, entry, said, intake.dropped_until),
        missed,
        0.0 if said.is_of_sets else None,
        {} if entry.plan.is_stream else _widths(queries, entry),
    )


def _exact(queries: Queries, entry: QueryEntry, said: Tolerance, dropped_until: int | None) -> str:
    """When all that was dropped has left the window."""
    if dropped_until is None:
        return "now"
    gone = clear_of(entry, said, dropped_until)
    if gone is None:
        return "never"
    if queries.ground.deliveries.of(entry.name).complete_until >= gone:
        return "now"
    return f"from {told_time(queries, [said.stream], gone)} on"


def clear_of(entry: QueryEntry, said: Tolerance, time: int) -> int | None:
    """From when on the window of what is kept has nothing of a time; None if it always has."""
    window = next(each for each in entry.plan.walk() if _is_over(each, said.kept))
    if window.length_ticks is None:
        is_joined = any(isinstance(each, Join) or each.subqueries for each in entry.plan.walk())
        is_gone = said.is_of_sets and entry.plan.is_stream and not is_joined
        return time + 1 if is_gone else None
    return time + window.length_ticks + (window.slide_ticks or 1)


def _is_over(node: Node, stream: str) -> TypeGuard[RangeWindow | HopWindow]:
    if not isinstance(node, RangeWindow | HopWindow):
        return False
    return isinstance(node.input, StreamScan) and node.input.name == stream


def _widths(queries: Queries, entry: QueryEntry) -> dict[str, float]:
    """The widest bounds by columns, relative to the answers."""
    return {
        name: _largest(high - low, np.abs(size))
        for name, size, low, high in _bounds(queries, entry)
    }


def error_of(queries: Queries, entry: QueryEntry, is_relative: bool) -> float:
    """How far the bounds of the present answer are from it at most, of all its numbers."""
    found = (
        _largest(np.maximum(high - size, size - low), np.abs(size) if is_relative else 1.0)
        for _, size, low, high in _bounds(queries, entry)
    )
    return max(found, default=0.0)


def _bounds(
    queries: Queries, entry: QueryEntry
) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """The present answer with its confident bounds, by columns of numbers."""
    log = queries.ground.deliveries.of(entry.name)
    with log.reading(nullcontext(), of_content=True) as read:
        answer = log.net(read.pages)
    names = entry.plan.schema.names
    for place, name in enumerate(names):
        if f"{name}_certain_high" in names:
            columns = [answer.column(f"c{place + each}") for each in range(3)]
            if pa.types.is_integer(columns[0].type) or pa.types.is_floating(columns[0].type):
                size, low, high = map(_numbers, columns)
                yield name, size, low, high


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    doubles = column.cast(pa.float64(), safe=False).fill_null(0.0)
    return np.asarray(doubles, dtype=np.float64)


def _largest(lengths: np.ndarray, unit: np.ndarray | float) -> float:
    """The largest of lengths in units of their own; no length is none, whatever the unit."""
    with np.errstate(all="ignore"):
        found = np.where(lengths == 0, 0.0, lengths / unit)
    return float(np.nan_to_num(found, nan=np.inf).max()) if len(found) else 0.0
