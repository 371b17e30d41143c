"""Streams made up by an arrival process: what the sources `rate` and `burst` have in common."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.sources import Declaration, Progress, cut_pages
from millpond.connectors.times import LATEST, as_ticks, out_of_range
from millpond.connectors.values import ValueGenerator
from millpond.errors import InputError
from millpond.schema import Type
from millpond.workloads import ArrivalProcess, FloatArray, Trace

DEFAULT_START = datetime(2026, 1, 1)
PAGE_SECONDS = 0.05
"""At the pace of the wall clock a page comes so long after the one before, at the earliest."""

_LARGEST_INT = 2**31 - 1
_LARGEST_BIGINT = 2**63 - 1


@dataclass(frozen=True)
class Extent:
    """Where generated time starts, and how many rows or seconds of it there are."""

    start: Any = None
    rows: int | None = None
    seconds: float | None = None

    @property
    def ends(self) -> bool:
        """Whether the stream is finite."""
        return self.rows is not None or self.seconds is not None

    def cut(self, rows_before: int, times: FloatArray) -> FloatArray:
        """What of these arrivals is still within the extent."""
        if self.seconds is not None:
            times = times[: np.searchsorted(times, self.seconds)]
        return times if self.rows is None else times[: max(0, self.rows - rows_before)]


class GeneratedSource:
    """Rows whose time comes from an arrival process and whose values from a generator."""

    def __init__(
        self,
        declaration: Declaration,
        process: ArrivalProcess,
        values: ValueGenerator,
        extent: Extent,
        *,
        counting: bool = False,
    ) -> None:
        _check(declaration, extent)
        self._declaration, self._process = declaration, process
        self._values, self._extent, self._counting = values, extent, counting
        self._start_microseconds = _start_microseconds(declaration, extent.start)
        self._done_rows = 0
        self.ends = extent.ends or isinstance(process, Trace)
        self.is_live = declaration.settings.pace == "wall"
        self._next_seconds: float | None = None
        """When the first row comes that was not yielded, once that is known."""

    def pages(self) -> Iterator[pa.Table]:
        """The rows in order of their time; if live, when that has come."""
        return self.pages_after(0)

    def pages_after(self, rows: int) -> Iterator[pa.Table]:
        """The pages without so many rows at the beginning; their time is not waited for."""
        page_rows = self._declaration.settings.page_rows
        tables = _without_first(self._tables(), rows)
        if self.is_live:
            return self._at_their_time(tables, page_rows, goes_on=rows > 0)
        return cut_pages((table for _, table in tables), self._declaration.schema, page_rows)

    def nothing_until(self) -> int | None:
        """The tick before the next row's: at the pace of the wall clock it is known beforehand.

        The rows of a page that somebody has and has not taken count as rows to come: the next one
        is only made when it is asked for.
        """
        if self._next_seconds is None or self._declaration.timestamp_column is None:
            return None
        following = self._start_microseconds + math.floor(self._next_seconds * 1e6)
        return following // self._declaration.settings.tick_microseconds - 1

    def progress(self) -> Progress:
        """Rows made, of those expected."""
        total = self._extent.rows
        if total is None and self._expected_rows is not None:
            total = max(self._expected_rows, self._done_rows)
        return Progress(self._done_rows, total, "rows")

    @cached_property
    def _expected_rows(self) -> int | None:
        """How many rows there are on the average; working that out for every page would cost."""
        seconds = self._extent.seconds
        if seconds is None:
            return None
        return math.ceil(seconds * self._process.mean_arrivals_per_second)

    def _tables(self) -> Iterator[tuple[FloatArray, pa.Table]]:
        """Rows with the seconds at which they come."""
        for times in self._process.arrivals(self._values.seed):
            within = self._extent.cut(self._done_rows, times)
            if len(within):
                yield within, self._table(within)
            self._done_rows += len(within)
            if len(within) < len(times):
                return

    def _at_their_time(
        self, tables: Iterator[tuple[FloatArray, pa.Table]], page_rows: int, goes_on: bool
    ) -> Iterator[pa.Table]:
        """All rows whose time has come, whenever a page is asked for, but not in ever smaller
        pages.

        The clock starts with the first page that is asked for: at zero, or if this ``goes_on`` with
        an earlier run at the time of its first row.
        """
        began: float | None = None
        before = -math.inf
        for times, table in tables:
            if began is None:
                began = time.monotonic() - (float(times[0]) if goes_on else 0.0)
            handed = 0
            while handed < len(times):
                self._next_seconds = float(times[handed])
                next_page = max(began + self._next_seconds, before + PAGE_SECONDS)
                time.sleep(max(0.0, next_page - time.monotonic()))
                due = int(np.searchsorted(times, time.monotonic() - began, side="right"))
                until = min(max(due, handed + 1), handed + page_rows)
                has_more = until < due or due == len(times)
                before = -math.inf if has_more else time.monotonic()
                yield table.slice(handed, until - handed)
                handed = until

    def _table(self, times: FloatArray) -> pa.Table:
        rows = np.arange(self._done_rows, self._done_rows + len(times))
        schema = self._declaration.schema
        columns = [self._column(position, rows, times) for position in range(len(schema))]
        return pa.table(columns, schema=arrow_schema(schema))

    def _column(self, position: int, rows: npt.NDArray[np.int64], times: FloatArray) -> pa.Array:
        kind = self._declaration.schema[position].type
        if position == self._declaration.timestamp_column:
            return self._times(position, times)
        if self._counting and kind in (Type.INT, Type.BIGINT):
            return self._whole_numbers(position, rows)
        return self._values.column(position, rows)

    def _times(self, position: int, times: FloatArray) -> pa.Array:
        if len(times) and times[-1] * 1e6 > LATEST:
            raise InputError(
                f"{self._declaration.name}: row {self._done_rows + len(times)} would come after "
                f"{times[-1]:g} seconds; {out_of_range('of that')}"
            )
        microseconds = self._start_microseconds + np.floor(times * 1e6).astype(np.int64)
        if self._declaration.schema[position].type is Type.TIMESTAMP:
            return pa.array(microseconds.astype("datetime64[us]"))
        return self._whole_numbers(
            position, microseconds // self._declaration.settings.tick_microseconds
        )

    def _whole_numbers(self, position: int, numbers: npt.NDArray[np.int64]) -> pa.Array:
        field = self._declaration.schema[position]
        if field.type is not Type.INT:
            return pa.array(numbers)
        if len(numbers) and numbers[-1] > _LARGEST_INT:
            raise InputError(
                f"{self._declaration.name}, column {field.name}: {numbers[-1]} is not an INT; "
                "declare it BIGINT"
            )
        return pa.array(numbers.astype(np.int32))


def _without_first(
    tables: Iterator[tuple[FloatArray, pa.Table]], rows: int
) -> Iterator[tuple[FloatArray, pa.Table]]:
    for times, table in tables:
        if len(times) > rows:
            yield times[rows:], table.slice(rows)
        rows = max(0, rows - len(times))


def value_generator(declaration: Declaration, seed: int | None, keys: int) -> ValueGenerator:
    """Values for a stream; without a seed of its own it takes the engine's."""
    for name, value, low in (("seed", seed, 0), ("keys", keys, 1)):
        if value is not None and not _is_whole(value, low):
            raise InputError(f"{declaration.name}: {name} must be a whole number from {low}")
    own_seed = declaration.settings.seed if seed is None else seed
    return ValueGenerator(declaration.schema, own_seed, keys)


def _check(declaration: Declaration, extent: Extent) -> None:
    if extent.rows is not None and not _is_whole(extent.rows, 0):
        raise InputError(
            f"{declaration.name}: rows must be a whole number from 0, not {extent.rows!r}"
        )
    seconds = extent.seconds
    if seconds is not None and not (isinstance(seconds, int | float) and 0 <= seconds < math.inf):
        raise InputError(f"{declaration.name}: seconds must be a number from 0, not {seconds!r}")
    if declaration.timestamp_column is not None:
        kind = declaration.schema[declaration.timestamp_column].type
        if kind not in (Type.TIMESTAMP, Type.BIGINT, Type.INT):
            raise InputError(f"{declaration.name}: generated times cannot be {kind}")


def _is_whole(value: Any, low: int) -> bool:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and low <= value <= _LARGEST_BIGINT


def _start_microseconds(declaration: Declaration, start: Any) -> int:
    """Where time starts: a whole number counts ticks, text is a TIMESTAMP."""
    position = declaration.timestamp_column
    counts_ticks = position is not None and declaration.schema[position].type.is_number
    if start is None:
        start = 0 if counts_ticks else DEFAULT_START
    place = f"{declaration.name}, start"
    if isinstance(start, int):
        return as_ticks(start, 1, place) * declaration.settings.tick_microseconds
    return as_ticks(start, 1, place)
