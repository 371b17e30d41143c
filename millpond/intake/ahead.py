"""Tuples whose time the wall clock has not reached by far: one of the year 9999 would close every
window. ``AHEAD AT MOST length`` has them put aside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.catalog import VIOLATES, StreamEntry
from millpond.intake.punctuations import Carried
from millpond.schema import Type
from millpond.settings import format_duration


def without_ahead(
    entry: StreamEntry, table: pa.Table, carried: Carried, now_microseconds: int, tick: int
) -> tuple[pa.Table, Carried, pa.Table | None]:
    """The tuples of a page that are not too far ahead, the punctuations among those, and the others
    with what they violate; ``tick``: its microseconds."""
    ahead, column = entry.ahead_microseconds, entry.timestamp_column
    if ahead is None or column is None or not table.num_rows:
        return table, carried, None
    latest = now_microseconds + ahead
    is_moment = entry.schema[column].type is Type.TIMESTAMP
    limit = pa.scalar(latest, pa.timestamp("us")) if is_moment else pa.scalar(latest // tick)
    is_ahead = pc.greater(table.column(column), limit).combine_chunks()
    is_ahead = pc.fill_null(is_ahead, False)
    if not is_ahead.true_count:
        return table, carried, None
    found = table.filter(is_ahead)
    told = pa.array([ahead_name(entry)] * found.num_rows, pa.string())
    gone = np.append(0, np.cumsum(np.asarray(is_ahead)))
    places = tuple(place - int(gone[place]) for place in carried.places)
    found = found.append_column(pa.field(VIOLATES, pa.string()), told)
    return table.filter(pc.invert(is_ahead)), replace(carried, places=places), found


def ahead_name(entry: StreamEntry) -> str:
    """What such tuples violate."""
    return f"AHEAD AT MOST {format_duration(entry.ahead_microseconds or 0)}"
