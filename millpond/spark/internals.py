"""The interfaces of Spark that are not public, all in this file, each with a plain way beside it.

The private ways save 10 to 30 ms a step. The plain ones serve where a version of Spark lacks a
private one, and in tests that set ``MILLPOND_PLAIN_SPARK=1``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.classic import column as classic

PLAIN_VARIABLE = "MILLPOND_PLAIN_SPARK"
"""Set to 1 in the environment, only public interfaces are used."""


class Plan(Protocol):
    """A query over files that is run again and again, whenever the files have changed."""

    def frame(self) -> DataFrame:
        """The query over the files that there are now."""
        ...


class PlainPlan:
    """A plan that is built and analysed anew whenever it runs."""

    def __init__(self, build: Callable[[], DataFrame]) -> None:
        self._build = build

    def frame(self) -> DataFrame:
        return self._build()


class ReusedPlan:
    """A plan that is built and analysed once; running it lists its files anew, and nothing else."""

    def __init__(self, frame: DataFrame) -> None:
        self._session = frame.sparkSession
        self._analysed = analysed_of(frame)
        self._listings = listings(self._analysed)
        rerun(self._session, self._analysed)  # fails here if it can not be done

    def frame(self) -> DataFrame:
        for listing in self._listings:
            listing.refresh()
        self._analysed.invalidateStatsCache()
        return rerun(self._session, self._analysed)


def plan(build: Callable[[], DataFrame]) -> Plan:
    """A plan for a query over files, reused if this Spark can do that."""
    if is_plain():
        return PlainPlan(build)
    frame = build()
    try:
        return ReusedPlan(frame)
    except Py4JNetworkError:
        raise
    except _MISSING as error:
        _warn_of_the_plain_way(frame.sparkSession, error)
        return PlainPlan(build)


def is_plain() -> bool:
    """Whether only public interfaces are to be used."""
    return os.environ.get(PLAIN_VARIABLE) == "1"


def analysed_of(frame: DataFrame) -> Any:
    """The analysed logical plan of a frame, in the JVM."""
    return frame._jdf.queryExecution().analyzed()


def listings(analysed: Any) -> list[Any]:
    """The lists of files that an analysed plan reads."""
    leaves = analysed.collectLeaves()
    return [leaves.apply(i).relation().location() for i in range(leaves.size())]


def rerun(session: SparkSession, analysed: Any) -> DataFrame:
    """A frame over an analysed plan: planned anew, not analysed."""
    jvm: Any = session._jvm
    java = jvm.org.apache.spark.sql.classic.Dataset
    inner: Any = session._jsparkSession
    return DataFrame(java.ofRows(inner, analysed), session)


def select_prepared(
    session: SparkSession, columns: Sequence[Column]
) -> Callable[[DataFrame], DataFrame]:
    """``select`` of these columns, which are handed to the JVM once and not with every use."""
    if is_plain():
        return lambda frame: frame.select(*columns)
    try:
        prepared = classic._to_seq(session.sparkContext, [column._jc for column in columns])
    except AttributeError as error:
        _warn_of_the_plain_way(session, error)
        return lambda frame: frame.select(*columns)
    return lambda frame: DataFrame(frame._jdf.select(prepared), session)


def collected(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """The rows of a frame in the driver, cast to a schema where Spark's differs."""
    collect: Any = getattr(type(frame), "_collect_as_arrow", None)
    if is_plain() or collect is None:
        table = frame.toArrow()
    else:
        batches = collect(frame)
        if not batches:
            return schema.empty_table()
        table = pa.Table.from_batches(batches)
    return table if table.schema == schema else table.cast(schema)


_MISSING = (Py4JError, AttributeError, TypeError)
"""What is raised where a private interface is not there or looks different."""


def _warn_of_the_plain_way(session: SparkSession, error: Exception) -> None:
    first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
    warnings.warn(
        f"Spark {session.version} lacks an interface that makes steps quick ({first_line}): "
        "plans are built anew in each step",
        RuntimeWarning,
        stacklevel=3,
    )
