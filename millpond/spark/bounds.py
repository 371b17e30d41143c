"""``bound`` on Spark: the same function of Arrow arrays as in the driver."""

from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql.pandas.functions import arrow_udf

from millpond.cql.expressions import Call
from millpond.kernels.expressions.bounds import bound_of
from millpond.spark.types import SPARK
from millpond.spark.worker_process import make_ready

_arrow_udf: Any = arrow_udf  # has types for plain results only


def value(call: Call, arguments: list[SparkColumn]) -> SparkColumn:
    """The column of a call, whose constants are not sent."""
    constants = len(call.arguments) - _sums(call)

    def called(*columns: pa.Array) -> pa.Array:
        make_ready()
        return bound_of(call, list(columns))

    sums = arguments[constants:]
    return cast("SparkColumn", _arrow_udf(called, SPARK[call.type])(*sums))


def _sums(call: Call) -> int:
    return len(call.arguments) - 3
