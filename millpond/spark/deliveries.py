"""Results that do not pass the driver: as DataFrames, and as files of a Parquet sink."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millpond.execution.work import NOTHING, AnswerAndOutput, Destination
from millpond.kernels.results import named
from millpond.schema import BEGINNING
from millpond.spark.types import spark_schema
from millpond.spark.workers import answers_of_tasks
from millpond.storage.files import read_rows
from millpond.storage.pages import Page


def result_frame(
    session: SparkSession, schema: pa.Schema, names: list[str], pages: list[Page]
) -> DataFrame:
    """The rows of result pages, read where they lie: ts, weight and the query's columns."""
    wanted = spark_schema(schema)
    if not pages:
        frame = session.createDataFrame([], wanted)
    else:
        frame = session.read.schema(wanted).parquet(
            *(path for page in pages for path in page.parquet_paths())
        )
    data = schema.names[2:]
    summed = frame.groupBy("_ts", *data).agg(F.sum("_w").alias("_w")).filter("_w <> 0")
    ts = F.when(F.col("_ts") != F.lit(BEGINNING), F.col("_ts"))
    columns = [ts, F.col("_w"), *map(F.col, data)]
    return summed.sort("_ts").select(
        *(column.alias(name) for column, name in zip(columns, names, strict=True))
    )


@dataclass(frozen=True)
class WritePart:
    """Writes the rows of a result page, which lie in these files, as one of a Parquet sink."""

    destination: Destination
    schema: pa.Schema
    files: tuple[str, ...]
    names: tuple[str, ...]
    path: str

    def run(self, rows: pa.Table, bucket: int, attempt: int) -> AnswerAndOutput:
        """Writes the page: one task has all the rows."""
        parts = [
            read_rows(self.destination.path(name)).select(self.schema.names).cast(self.schema)
            for name in self.files
        ]
        pq.write_table(named(pa.concat_tables(parts), list(self.names)), self.path)
        return {}, NOTHING


def write_part(session: SparkSession, work: WritePart) -> None:
    """Writes a page's part on an executor."""
    answers_of_tasks(session, 1, work)
