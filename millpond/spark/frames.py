"""DataFrames over pages, with everything that does not change from step to step built once.

Each call into the JVM costs a fraction of a millisecond and each DataFrame operation an analysis:
readers, conditions and select lists are prepared when an operator starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.classic.column import _to_seq

from millpond.spark.pages import Page, PageStore, concatenated, total_rows
from millpond.spark.queues import Queue
from millpond.spark.types import spark_schema

JOIN_PAGES_ROWS = 50_000
"""Several pages of so few rows together are read as one file: each file costs a task."""


class Frames:
    """Makes DataFrames of pages, and of tables that live for one step only."""

    def __init__(self, session: SparkSession, store: PageStore) -> None:
        self.session = session
        self.store = store
        self._readers: dict[str, DataFrameReader] = {}

    def of_pages(self, queue: Queue, pages: list[Page]) -> DataFrame | None:
        """One DataFrame over some of a queue's pages, or None if there are none."""
        if not pages:
            return None
        if len(pages) > 1 and total_rows(pages) <= JOIN_PAGES_ROWS:
            return self.of_table(queue.name, concatenated(pages, queue.schema))
        return self._reader(queue.name, queue.schema).parquet(*(page.path for page in pages))

    def of_table(self, name: str, table: pa.Table) -> DataFrame | None:
        """A DataFrame over a table that lives for this step only."""
        if table.num_rows == 0:
            return None
        path = self.store.write(table)
        self.store.discard(path)
        return self._reader(name, table.schema).parquet(str(path))

    def _reader(self, name: str, schema: pa.Schema) -> DataFrameReader:
        if name not in self._readers:
            self._readers[name] = self.session.read.schema(spark_schema(schema))
        return self._readers[name]

    def forget(self, name: str) -> None:
        """Drops what was prepared for a queue."""
        self._readers.pop(name, None)

    def release(self) -> None:
        """Removes the files that this step was the last to read."""
        self.store.sweep()


class Selection:
    """A filter and a select list, handed to the JVM once and applied to many frames."""

    def __init__(
        self, session: SparkSession, columns: Sequence[SparkColumn], condition: SparkColumn | None
    ) -> None:
        self._session = session
        self._columns = _to_seq(session.sparkContext, [column._jc for column in columns])
        self._condition = None if condition is None else condition._jc

    def of(self, frame: DataFrame) -> DataFrame:
        """The frame filtered and projected."""
        java = frame._jdf
        if self._condition is not None:
            java = java.filter(self._condition)
        return DataFrame(java.select(self._columns), self._session)


def union(*frames: DataFrame | None) -> DataFrame | None:
    """The union of the frames that exist."""
    present = [frame for frame in frames if frame is not None]
    return reduce(DataFrame.unionAll, present) if present else None


def collect(frame: DataFrame | None, schema: pa.Schema) -> pa.Table:
    """The rows of a frame with exactly this schema's columns, in the driver."""
    if frame is None:
        return schema.empty_table()
    table = frame.toArrow()
    return table if table.schema == schema else table.cast(schema)
