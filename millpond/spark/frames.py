"""DataFrames that are analysed once and run in every step, over whatever pages it brings.

Each call into the JVM costs a fraction of a millisecond, each DataFrame operation an analysis and
each DataFrame over new files a listing of them: together more than the work of a small step. So a
plan reads *slots*, directories with links to the pages of the moment, and is built when its shape
occurs for the first time. A plan with its slots belongs to one step at a time: two steps of one
shape that run at once have a plan each.
"""

import errno
import itertools
import os
import shutil
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as st

from millpond.kernels.columns import is_bytes
from millpond.kernels.hashing import LONG_BYTES
from millpond.spark import internals
from millpond.spark.types import spark_schema, spark_type
from millpond.storage.faults import naming
from millpond.storage.files import ARROW, read_rows, write_parquet
from millpond.storage.pages import Span, concatenated, total_rows
from millpond.storage.store import Store

JOIN_PAGES_ROWS = 50_000
"""Several pages of so few rows together are read as one file: each file costs a task."""

MOST_SHAPES = 32
"""An operator remembers the plans of this many shapes of steps."""

AFTER, UNTIL = "after_", "until_"
"""The bounds of a part of a page, as columns: a literal that changes would be compiled anew."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Filling:
    """What a slot holds in one step: parts of pages."""

    schema: pa.Schema
    spans: tuple[Span, ...]

    @property
    def is_bounded(self) -> bool:
        """Whether Spark must be told which rows of a file are meant."""
        return any(not span.is_whole and not span.page.is_in_driver for span in self.spans)


@dataclass(frozen=True)
class Frame:
    """A DataFrame yet to be built; two with the same key differ only in what their slots hold."""

    key: Hashable
    build: Callable[[Mapping[Hashable, DataFrame]], DataFrame]
    fillings: Mapping[Hashable, Filling]


def leaf(place: Hashable, schema: pa.Schema, spans: Sequence[Span]) -> Frame | None:
    """A frame over parts of pages, or None if there are none."""
    if not spans:
        return None
    filling = Filling(schema, tuple(spans))
    key = (place, filling.is_bounded)
    if not filling.is_bounded:
        return Frame(key, lambda slots: slots[key], {key: filling})
    meant = _ending if spans[0].ends else _between
    return Frame(
        key, lambda slots: slots[key].filter(meant()).select(*schema.names), {key: filling}
    )


def _between() -> SparkColumn:
    return (F.col("_ts") > F.col(AFTER)) & (F.col("_ts") <= F.col(UNTIL))


def _ending() -> SparkColumn:
    ends = (F.col("_te") > F.col(AFTER)) & (F.col("_te") <= F.col(UNTIL))
    return ends & (F.col("_ts") <= F.col(AFTER))


class Slot:
    """A directory with links to the files that a plan reads, filled for one step."""

    def __init__(self, store: Store) -> None:
        self._directory = store.new_slot()
        self._names = itertools.count()

    def frame(self, session: SparkSession, filling: Filling) -> DataFrame:
        """What the slot holds, as a frame; fill it before, for Spark to find the bounds."""
        schema = spark_schema(filling.schema)
        if filling.is_bounded:
            for name in (AFTER, UNTIL):
                schema = schema.add(name, st.LongType())
        return session.read.schema(schema).parquet(str(self._directory))

    def fill(self, filling: Filling) -> None:
        """Puts the parts of pages there that one step reads."""
        with naming(self._directory):
            self._fill(filling)

    def _fill(self, filling: Filling) -> None:
        self.clear()
        here = [span for span in filling.spans if span.page.is_in_driver]
        if len(here) > 1 and total_rows(here) <= JOIN_PAGES_ROWS:
            first = here[0]
            table = concatenated(here, filling.schema)
            write_parquet(table, self._path(filling, first))
            there = [span for span in filling.spans if span not in here]
        else:
            there = list(filling.spans)
        for span in there:
            self._put(filling, span)

    def _put(self, filling: Filling, span: Span) -> None:
        if span.is_whole or not span.page.is_in_driver:
            for path in span.page.paths:
                _place(path, self._path(filling, span))
        else:
            write_parquet(span.table(), self._path(filling, span))

    def _path(self, filling: Filling, span: Span) -> str:
        name = f"{next(self._names)}.parquet"
        if not filling.is_bounded:
            return f"{self._directory}/{name}"
        folder = self._directory / f"{AFTER}={span.after}" / f"{UNTIL}={span.until}"
        folder.mkdir(parents=True, exist_ok=True)
        return f"{folder}/{name}"

    def clear(self) -> None:
        """Lets go of the pages."""
        for entry in os.scandir(self._directory):
            if entry.is_dir():
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)  # noqa: PTH108 (a step does this for every file)

    def close(self) -> None:
        """Removes the directory."""
        shutil.rmtree(self._directory, ignore_errors=True)


def _place(path: str, place: str) -> None:
    """Puts a file there, as Parquet, which Spark reads."""
    if path.endswith(ARROW):
        write_parquet(read_rows(Path(path)), place)
    else:
        _link(path, place)


def _link(path: str, place: str) -> None:
    """Puts a Parquet file there; what was spilled from memory to a disk by name only."""
    try:
        os.link(path, place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        os.symlink(path, place)  # noqa: PTH211 (a step does this for every file)


class SlotPlan:
    """A plan with slots of its own."""

    def __init__(self, session: SparkSession, store: Store, frame: Frame) -> None:
        self._session = session
        self._slots = {key: Slot(store) for key in frame.fillings}
        self._plan: internals.AnalysedPlan | None = None

    def run(self, frame: Frame, use: Callable[[DataFrame], Answer]) -> Answer:
        """What ``use`` makes of the frame over the pages it names."""
        for key, slot in self._slots.items():
            slot.fill(frame.fillings[key])
        if self._plan is None:
            self._plan = internals.plan(lambda: frame.build(self._frames(frame)))
        try:
            return use(self._plan.frame())
        finally:
            for slot in self._slots.values():
                slot.clear()

    def _frames(self, frame: Frame) -> dict[Hashable, DataFrame]:
        return {
            key: slot.frame(self._session, frame.fillings[key]) for key, slot in self._slots.items()
        }

    def close(self) -> None:
        """Removes the slots."""
        for slot in self._slots.values():
            slot.close()


class Frames:
    """Spark and the store, as plans need them; Spark is started when the first step asks for it."""

    def __init__(
        self,
        start: Callable[[], SparkSession],
        store: Store,
        mark: Callable[[SparkSession], None] = lambda session: None,
        is_there: Callable[[], bool] = lambda: True,
    ) -> None:
        self.store = store
        self._is_there = is_there
        self._start = start
        self._mark = mark
        self._session: SparkSession | None = None
        self._guard = threading.Lock()

    @property
    def session(self) -> SparkSession:
        """The session in which steps run; jobs of the thread that asks are marked as a step's."""
        with self._guard:
            if self._session is None:
                self._session = self._start()
            session = self._session
        self._mark(session)
        return session

    @property
    def started(self) -> SparkSession | None:
        """The session, if there is one yet."""
        return self._session

    @property
    def is_awaited(self) -> bool:
        """Whether asking for the session would mean to wait until it has started."""
        return self._session is None and not self._is_there()

    def forget_session(self) -> None:
        """Spark has died: the next step starts it again."""
        with self._guard:
            self._session = None


class Plans:
    """The plans of one operator that no step uses at the moment, by their shape."""

    def __init__(self, frames: Frames) -> None:
        self._frames = frames
        self._session: SparkSession | None = None
        self._idle: dict[Hashable, list[SlotPlan]] = {}
        self._guard = threading.Lock()
        self._is_closed = False

    def collect(self, frame: Frame | None, schema: pa.Schema) -> pa.Table:
        """The rows of a frame with exactly this schema's columns, in the driver."""
        if frame is None:
            return schema.empty_table()
        return self.run(frame, lambda rows: internals.collected(rows, schema))

    def run(self, frame: Frame, use: Callable[[DataFrame], Answer]) -> Answer:
        """What ``use`` makes of a frame."""
        plan = self._take(frame)
        try:
            return plan.run(frame, use)
        finally:
            self._put_back(frame.key, plan)

    def _take(self, frame: Frame) -> SlotPlan:
        session = self._frames.session
        with self._guard:
            if self._session is not session:  # Spark was started, perhaps not for the first time
                self._session = session
                self._close_idle()
            idle = self._idle.get(frame.key)
            if idle:
                return idle.pop()
        return SlotPlan(session, self._frames.store, frame)

    def _put_back(self, key: Hashable, plan: SlotPlan) -> None:
        with self._guard:
            if self._is_closed:
                plan.close()
                return
            plans = self._idle.pop(key, [])
            self._idle[key] = [*plans, plan]
            while len(self._idle) > MOST_SHAPES:
                for old in self._idle.pop(next(iter(self._idle))):
                    old.close()

    def close(self) -> None:
        """Gives all slots up."""
        with self._guard:
            self._is_closed = True
            self._close_idle()

    def _close_idle(self) -> None:
        for plans in self._idle.values():
            for plan in plans:
                plan.close()
        self._idle = {}


Columns = Callable[[], tuple[Sequence[SparkColumn], SparkColumn | None]]
"""Makes a select list and a condition; columns live in one JVM, which may have to be replaced."""


def dividing(keys: Sequence[str], schema: pa.Schema) -> list[SparkColumn]:
    """What rows are divided by, so that each is in the partition that ``buckets`` tells: keys, and
    of long texts their digests."""
    types = {field.name: field.type for field in schema if is_bytes(field.type)}
    return [_short(F.col(key), types[key]) if key in types else F.col(key) for key in keys]


def _short(value: SparkColumn, type_: pa.DataType) -> SparkColumn:
    digest = F.md5(value).cast(spark_type(type_))
    return F.when(F.octet_length(value) > LONG_BYTES, digest).otherwise(value)


class Selection:
    """A filter and a select list."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._session: SparkSession | None = None
        self._select: Callable[[DataFrame], DataFrame] | None = None
        self._condition: SparkColumn | None = None

    def of(self, frame: Frame) -> Frame:
        """The frame filtered and projected."""
        return Frame(
            (self, frame.key), lambda slots: self._applied(frame.build(slots)), frame.fillings
        )

    def _applied(self, frame: DataFrame) -> DataFrame:
        if self._select is None or self._session is not frame.sparkSession:
            columns, self._condition = self._columns()
            self._session = frame.sparkSession
            self._select = internals.select_prepared(self._session, columns)
        if self._condition is not None:
            frame = frame.filter(self._condition)
        return self._select(frame)


def union(*frames: Frame | None) -> Frame | None:
    """The union of the frames that exist."""
    present = [frame for frame in frames if frame is not None]
    if len(present) < 2:
        return present[0] if present else None
    return Frame(
        ("union", *(frame.key for frame in present)),
        lambda slots: reduce(DataFrame.unionAll, (frame.build(slots) for frame in present)),
        _together(*present),
    )


def _together(*frames: Frame) -> dict[Hashable, Filling]:
    return {key: filling for frame in frames for key, filling in frame.fillings.items()}
