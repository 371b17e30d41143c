"""Files read on the executors: a task parses the next page and writes it, the driver gets counts.

The code is the one that reads in the driver, so sequence numbers, lateness and the lines that
errors name are the same.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from millpond.connectors import Source, open_source
from millpond.connectors.admission import Admission
from millpond.connectors.sources import OpenPages, Taken
from millpond.execution.answers import Answer
from millpond.execution.work import NOTHING, AnswerAndOutput, Destination
from millpond.settings import Settings
from millpond.spark.workers import answers_of_tasks
from millpond.storage.store import Store


@dataclass(frozen=True)
class ReadPage:
    """Reads the page of a stream's source behind so many rows."""

    destination: Destination
    admission: Admission
    settings: Settings
    directory: str
    rows: int
    now: int

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows it takes: none."""
        return pa.schema([])

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """The page, what is late, and how far the source is."""
        source, table = _next_page(self)
        progress = source.progress()
        answer: Answer = {"progress": [progress.done, progress.total, progress.unit]}
        if table is None:
            return answer | {"taken": -1}, NOTHING
        admitted = self.admission.admit(table, self.now)
        if admitted.page is not None:
            answer |= self.destination.write_page(admitted.page, bucket, attempt)
        if admitted.late is not None:
            answer["late"] = f"{self.destination.page}-{attempt}.late.parquet"
            answer["late_rows"] = admitted.late.num_rows
            answer |= self.destination.write_file(admitted.late, answer["late"], "late_sum")
        answer |= {
            "taken": self.rows + table.num_rows,
            "largest": admitted.largest,
            "arrived": admitted.arrived,
            "heartbeat": admitted.heartbeat,
        }
        return answer, NOTHING


_open: dict[tuple[str, str], tuple[Source, OpenPages]] = {}
"""The sources this process, one of Spark's Python workers, has open: it may be asked to go on."""

MOST_OPEN = 16
"""A worker keeps so many sources open."""


def _next_page(work: ReadPage) -> tuple[Source, pa.Table | None]:
    key = (work.destination.directory, work.admission.entry.name)
    source, pages = _open.pop(key, (None, None))
    if source is None or pages is None or pages.rows > work.rows:
        source = open_source(work.admission.entry, work.settings, Path(work.directory))
        pages = OpenPages.of(source, Taken(work.rows))
    page = pages.behind(work.rows)
    _open[key] = source, pages
    while len(_open) > MOST_OPEN:
        del _open[next(iter(_open))]
    return source, None if page is None else page.rows


def read_page(session: SparkSession, store: Store, reading: dict[str, Any]) -> Answer:
    """The answer of one task that reads the next page."""
    work = ReadPage(Destination.of(store), **reading)
    (answer,) = answers_of_tasks(session, 1, work)
    return answer
