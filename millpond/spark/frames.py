"""DataFrames that are analysed once and run in every step, over whatever pages it brings.

Each call into the JVM costs a fraction of a millisecond, each DataFrame operation an analysis and
each DataFrame over new files a listing of them: together more than the work of a small step. So a
plan reads *slots*, directories with links to the pages of the moment, and is built when its shape
occurs for the first time.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F

from millpond.spark.internals import Plan, collected, plan, select_prepared
from millpond.spark.types import spark_schema
from millpond.storage.pages import Page, PageStore, concatenated, total_rows

JOIN_PAGES_ROWS = 50_000
"""Several pages of so few rows together are read as one file: each file costs a task."""

MOST_SHAPES = 32
"""An operator remembers the plans of this many shapes of steps."""


@dataclass(frozen=True)
class Frame:
    """A DataFrame yet to be built; two with the same key differ only in what their slots hold."""

    key: Hashable
    build: Callable[[], DataFrame]


class Slot:
    """A place in plans for pages: a directory with links to their files, filled for one step."""

    def __init__(self, frames: Frames, schema: pa.Schema) -> None:
        self._frames = frames
        self._schema = schema
        self._directory = frames.store.new_directory()
        self._names = itertools.count()

    @cached_property
    def _reader(self) -> DataFrameReader:
        return self._frames.session.read.schema(spark_schema(self._schema))

    def pages(self, pages: list[Page]) -> Frame | None:
        """A frame over some pages, or None if there are none."""
        if len(pages) > 1 and total_rows(pages) <= JOIN_PAGES_ROWS:
            return self.table(concatenated(pages, self._schema))
        self.clear()
        for page in pages:
            os.link(page.path, self._new_path())
        return self._frame() if pages else None

    def table(self, table: pa.Table) -> Frame | None:
        """A frame over a table that lives for this step only, or None if it is empty."""
        if table.num_rows == 0:
            return None
        self.clear()
        self._frames.store.write(table, self._new_path())
        return self._frame()

    def _new_path(self) -> str:
        return f"{self._directory}/{next(self._names)}.parquet"

    def _frame(self) -> Frame:
        self._frames.filled.append(self)
        return Frame(self, lambda: self._reader.parquet(str(self._directory)))

    def clear(self) -> None:
        """Lets go of the pages."""
        for link in self._directory.iterdir():
            link.unlink()

    def close(self) -> None:
        """Removes the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)


class Frames:
    """Where the slots of all operators are made, and emptied after each step."""

    def __init__(self, session: SparkSession, store: PageStore) -> None:
        self.session = session
        self.store = store
        self.filled: list[Slot] = []

    def slot(self, schema: pa.Schema) -> Slot:
        """A new place for pages of a schema."""
        return Slot(self, schema)

    def release(self) -> None:
        """Empties the slots that a step has filled."""
        for slot in self.filled:
            slot.clear()
        self.filled = []


class Selection:
    """A filter and a select list."""

    def __init__(
        self, session: SparkSession, columns: Sequence[SparkColumn], condition: SparkColumn | None
    ) -> None:
        self._select = select_prepared(session, columns)
        self._condition = condition

    def of(self, frame: Frame) -> Frame:
        """The frame filtered and projected."""
        return Frame((self, frame.key), lambda: self._applied(frame.build()))

    def _applied(self, frame: DataFrame) -> DataFrame:
        if self._condition is not None:
            frame = frame.filter(self._condition)
        return self._select(frame)


def union(*frames: Frame | None) -> Frame | None:
    """The union of the frames that exist."""
    present = [frame for frame in frames if frame is not None]
    if len(present) < 2:
        return present[0] if present else None
    key = ("union", *(frame.key for frame in present))
    return Frame(key, lambda: reduce(DataFrame.unionAll, (frame.build() for frame in present)))


def broadcast(frame: Frame) -> Frame:
    """The frame, marked as small."""
    return Frame(("broadcast", frame.key), lambda: F.broadcast(frame.build()))


def joined(left: Frame, right: Frame, on: SparkColumn) -> Frame:
    """The inner join of two frames."""
    key = ("join", left.key, right.key)
    return Frame(key, lambda: left.build().join(right.build(), on, "inner"))


class Plans:
    """The plans of one operator, one for each shape of a step."""

    def __init__(self) -> None:
        self._plans: dict[Hashable, Plan] = {}

    def collect(self, frame: Frame | None, schema: pa.Schema) -> pa.Table:
        """The rows of a frame with exactly this schema's columns, in the driver."""
        if frame is None:
            return schema.empty_table()
        reused = self._plans.pop(frame.key, None) or plan(frame.build)
        self._plans[frame.key] = reused
        if len(self._plans) > MOST_SHAPES:
            del self._plans[next(iter(self._plans))]
        return collected(reused.frame(), schema)
