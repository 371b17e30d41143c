"""Functions by regular expressions on Spark: by the same code as elsewhere, not by Java's."""

from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql.pandas.functions import arrow_udf

from millpond.cql.expressions import Call
from millpond.cql.regular_expressions import function_of
from millpond.spark.types import SPARK
from millpond.spark.worker_process import make_ready

_arrow_udf: Any = arrow_udf  # has types for plain results only


def value(call: Call, text: SparkColumn) -> SparkColumn:
    """The value of a call for each text."""

    def called(texts: pa.Array) -> pa.Array:
        make_ready()
        return function_of(call)(texts)

    return cast("SparkColumn", _arrow_udf(called, SPARK[call.type])(text))
