"""What Spark reads by the name of a format, batch by batch.

Spark notes in its checkpoint which batch has which data, and writes each as Parquet files into a
folder of its own, once. From there the batches are read in their order, as far as commits say, and
a batch that is behind all commits is removed: so nothing is lost and nothing comes twice, whoever
dies when.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st
from pyspark.sql.streaming.query import StreamingQuery

from millpond.connectors.arrow import arrow_schema, positions
from millpond.connectors.nested import outside_type
from millpond.connectors.parquet_files import ParquetSource
from millpond.connectors.sources import Declaration, OpenPages, Progress, SourcePage, Taken
from millpond.errors import InputError, OutputError
from millpond.schema import Schema
from millpond.spark.failures import plain_words
from millpond.spark.types import spark_schema

AHEAD = 2
"""So many batches are read by Spark before they are asked for."""

LOOK_SECONDS = 0.05

WRITTEN = frozenset({"csv", "json", "xml"})
"""Formats of text, that have the types which are declared; a value that has another is an error."""

_SAID = re.compile(r"\[[A-Z][A-Z0-9_.]+\] (.*?)\s*(?:SQLSTATE: \w+)?$", re.MULTILINE)
"""What one of Spark's errors says, of which the last one is the first cause."""

ERRORS = PySparkException, Py4JError

DONE = "_SUCCESS"
"""The file that Spark writes last."""


@dataclass(frozen=True)
class Format:
    """A format of Spark's, with where it is and its options, and who is told of its faults."""

    owner: str
    name: str
    path: str
    options: dict[str, str]
    error: type[InputError | OutputError]

    def fault(self, said: object) -> InputError | OutputError:
        """A fault that names the owner and the format."""
        if isinstance(said, ERRORS):
            causes = _SAID.findall(str(said))
            said = causes[-1] if causes else plain_words(said) or type(said).__name__
        return self.error(f"{self.owner}, {self.name} by Spark: {said}")

    def batch(self, session: SparkSession, schema: Schema) -> DataFrame:
        """All that is there."""
        return self._loaded(session.read, schema)

    def stream(self, session: SparkSession, schema: Schema) -> DataFrame:
        """What is there and what comes."""
        try:
            return self._loaded(session.readStream, schema)
        except ERRORS:
            known = self._loaded(session.read, schema).schema  # files say it to who reads them once
            return self._loaded(session.readStream.schema(known), schema)

    def _loaded(self, reader: Any, schema: Schema) -> DataFrame:
        options = self.options
        if self.name.lower() in WRITTEN:
            reader = reader.schema(_moments(schema))
            options = {"mode": "FAILFAST"} | options
        found: DataFrame = reader.format(self.name).options(**options).load(self.path or None)
        return found


def _moments(schema: Schema) -> st.StructType:
    """The declared columns, with times that text has with or without a zone."""
    fields = pa.schema([(each.name, outside_type(each.type)) for each in schema.fields])
    return st.StructType(
        [
            st.StructField(each.name, st.TimestampType())
            if each.dataType == st.TimestampNTZType()
            else each
            for each in spark_schema(fields)
        ]
    )


def _in_utc(column: SparkColumn, field: st.StructField) -> SparkColumn:
    """A column as pages have it: sessions are in UTC."""
    return column.cast(st.TimestampNTZType()) if field.dataType == st.TimestampType() else column


class FormatSource:
    """The batches of a format, each once."""

    def __init__(
        self, declaration: Declaration, form: Format, folder: Path | None, follows: bool
    ) -> None:
        self._declaration, self._form, self._follows = declaration, form, follows
        self.is_live, self.ends = follows, not follows
        self._folder = folder or self._passing_folder()
        self._batches = self._folder / "batches"
        self._is_closed = threading.Event()
        self._query: StreamingQuery | None = None
        self._next = 0
        self._done = 0

    def _passing_folder(self) -> Path:
        """A folder that is there as long as the source is."""
        folder = Path(tempfile.mkdtemp(prefix="millpond-spark-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder

    # -- what the engine asks --------------------------------------------------------------

    def pages(self) -> Iterator[SourcePage]:
        """The batches from the first one on."""
        if (self._folder / "spark").exists() and not self._is_there(0):
            raise self._form.fault(
                f"{self._folder} has notes of what was read by somebody else; name another "
                "directory, or remove it"
            )
        yield self._position(0)
        yield from self._from(0, Taken())

    def pages_from(self, position: dict[str, int]) -> Iterator[SourcePage]:
        """What follows a position."""
        taken = Taken(position["rows"], position["bad"])
        yield from self._from(position["batch"], taken)

    def progress(self) -> Progress:
        """Rows read."""
        return Progress(self._done, None, "rows")

    def committed(self, position: dict[str, int]) -> None:
        """Batches before a position are not needed any more."""
        for number in range(position["batch"] - 1, -1, -1):
            if not self._folder_of(number).exists():
                return
            shutil.rmtree(self._folder_of(number), ignore_errors=True)

    def close(self) -> None:
        """Nobody waits for a batch any more."""
        self._is_closed.set()
        if self._query is not None:
            with suppress(*ERRORS):
                self._query.stop()

    def forget(self) -> None:
        """Removes what Spark has noted."""
        for name in ("batches", "spark"):
            shutil.rmtree(self._folder / name, ignore_errors=True)

    # -- reading ---------------------------------------------------------------------------

    def _from(self, number: int, taken: Taken) -> Iterator[SourcePage]:
        self._next = number
        try:
            self._begin(number)
            while self._comes(number):
                yield from self._of_batch(number, taken)
                if not self._follows:
                    return
                number, taken = number + 1, Taken()
                self._next = number
                if not self._is_there(number):
                    yield self._position(number)
        except ERRORS as error:
            raise self._form.fault(error) from None

    def _begin(self, number: int) -> None:
        """Has Spark read."""
        if not self._follows:
            if not self._is_there(number):
                found = self._form.batch(self._session, self._declaration.schema)
                self._write(self._chosen(found), number)
        elif self._query is None:
            found = self._chosen(self._form.stream(self._session, self._declaration.schema))
            writer = found.writeStream.foreachBatch(self._take)
            self._query = writer.option("checkpointLocation", f"{self._folder}/spark").start()

    @property
    def _session(self) -> SparkSession:
        session: SparkSession = self._declaration.session()
        return session

    def _chosen(self, found: DataFrame) -> DataFrame:
        """The declared columns."""
        names = found.columns
        at = positions(names, self._declaration.schema, lambda _: str(self._form.fault("…")))
        return found.select([_in_utc(found[f"`{names[e]}`"], found.schema[e]) for e in at])

    def _take(self, batch: DataFrame, number: int) -> None:
        """Spark hands over a batch, perhaps again; what is ahead is waited for."""
        while number > self._next + AHEAD and not self._is_closed.wait(LOOK_SECONDS):
            pass
        if not (self._is_closed.is_set() or self._is_there(number)):
            self._write(batch, number)
        if self._is_closed.is_set() and not self._is_there(number):
            raise InterruptedError("closed")  # so that Spark does not take it for done

    def _write(self, batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(str(self._folder_of(number)))

    def _comes(self, number: int) -> bool:
        """Waits for a batch; False if it is not wanted any more."""
        while not self._is_closed.is_set():
            if self._is_there(number):
                return True
            query = self._query
            if query is not None and not query.isActive:
                self._query = None
                raise self._form.fault(query.exception() or "it has ended")
            self._is_closed.wait(LOOK_SECONDS)
        return False

    def _of_batch(self, number: int, taken: Taken) -> Iterator[SourcePage]:
        files = sorted(self._folder_of(number).glob("*.parquet"))
        pages = OpenPages.of(ParquetSource(self._declaration, files), taken)
        rows, bad = taken.rows, taken.bad
        while page := pages.behind(rows, bad):
            yield self._placed(page, number, rows, bad)
            rows, bad = rows + page.rows.num_rows, bad + len(page.bad)
            self._done += page.rows.num_rows

    def _placed(self, page: SourcePage, number: int, rows: int, bad: int) -> SourcePage:
        """A page behind so many rows of a batch."""

        def position_after(count: int) -> dict[str, int]:
            is_all = count == page.rows.num_rows
            before = sum(is_all or each.after < count for each in page.bad)
            return {"batch": number, "rows": rows + count, "bad": bad + before}

        return replace(page, position_after=position_after)

    def _position(self, number: int) -> SourcePage:
        rows = arrow_schema(self._declaration.schema).empty_table()
        return SourcePage(rows, (), lambda _: {"batch": number, "rows": 0, "bad": 0})

    def _folder_of(self, number: int) -> Path:
        return self._batches / f"{number:012}"

    def _is_there(self, number: int) -> bool:
        return (self._folder_of(number) / DONE).exists()
