"""The times of tuples: every tuple has one, and all lie where windows and delays can be added."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.arguments import shown_value
from millpond.connectors.arrow import RowPosition, in_words, to_ticks
from millpond.connectors.rows import to_arrow
from millpond.connectors.sources import Declaration
from millpond.errors import InputError
from millpond.schema import BEGINNING, FOREVER, Field, Schema, Type

EARLIEST, LATEST = BEGINNING // 2 + 1, FOREVER // 2 - 1
"""The range of times in ticks; half of what 63 bits could hold, so that sums stay within it."""

Ticks: TypeAlias = npt.NDArray[np.int64]


def times_of(
    column: pa.ChunkedArray, name: str, tick_microseconds: int, where: RowPosition
) -> Ticks:
    """The times in a column, in ticks; a NULL or a time out of range is refused and located."""
    if column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise InputError(f"{where(row)}: column {name} is NULL; every tuple needs its time")
    ticks: Ticks = np.asarray(to_ticks(column, tick_microseconds)).astype(np.int64)
    if len(ticks) and (ticks.min() < EARLIEST or ticks.max() > LATEST):
        row = int(np.flatnonzero((ticks < EARLIEST) | (ticks > LATEST))[0])
        fault = out_of_range(in_words(column[row]))
        raise InputError(f"{where(row)}, column {name}: {fault}")
    return ticks


def check_times(table: pa.Table, declaration: Declaration, where: RowPosition) -> None:
    """Refuses tuples without a usable time while the file and the line are known."""
    position = declaration.timestamp_column
    if position is not None:
        name, tick = declaration.schema[position].name, declaration.settings.tick_microseconds
        times_of(table.column(position), name, tick, where)


def as_ticks(time: Any, tick_microseconds: int, where: str) -> int:
    """A time that a program hands over: a number of ticks, or a moment in any form."""
    if isinstance(time, int | np.integer) and not isinstance(time, bool):
        if not EARLIEST <= time <= LATEST:
            raise InputError(f"{where}: {out_of_range(shown_value(time))}")
        return int(time)
    try:
        column = to_arrow([(time,)], Schema((Field("time", Type.TIMESTAMP),)), where).column(0)
    except InputError:
        column = None
    if column is None or column.null_count:
        raise InputError(
            f"{where}: {shown_value(time)} is not a time: give a number of ticks or a datetime"
        )
    return int(times_of(column, "time", tick_microseconds, lambda _: where)[0])


def out_of_range(time: str) -> str:
    """What is wrong with a time."""
    return f"the time {time} is out of range; times lie between {EARLIEST} and {LATEST} ticks"
