"""Calls on Spark by the same function of Arrow arrays as in the driver, where Spark has none that
gives the same bits."""

from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql import types as st
from pyspark.sql.pandas.functions import arrow_udf

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.cql import decimals
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.cql.failing import can_fail
from millpond.cql.functions import BY_ROW
from millpond.kernels.expressions import Program
from millpond.kernels.expressions.attempts import attempt as kernel_attempt
from millpond.kernels.expressions.faults import words_of
from millpond.kernels.expressions.operand import Value, over_rows, to_array
from millpond.schema import Type
from millpond.spark.types import SPARK
from millpond.spark.worker_process import make_ready

_arrow_udf: Any = arrow_udf  # has types for plain results only

_ROUNDED = ("/", "%", "round", "ceil", "floor", "sign")
_EXACT = ("+", "-", "*")
_SIGNS = ("neg", "abs")
_SPARK_DIGITS = 34
"""So many digits keeps Spark of what it negates; it rounds others away."""


def is_by_kernel(call: Call) -> bool:
    """Whether a call is made so: of DECIMALs all that Spark rounds or refuses in its own way."""
    if call.function in BY_ROW or call.function == "div":
        return True
    types = [call.type, *(argument.type for argument in call.arguments)]
    if call.function == "cast" and any(type_.is_nested for type_ in types):
        return True
    if not any(type_.is_decimal for type_ in types):
        return False
    if call.function == "cast":
        source = call.arguments[0].type
        is_wider = decimals.digits_of(source)[1] <= call.type.scale and not can_fail(call)
        is_exact = source.is_decimal or source in (Type.INT, Type.BIGINT)
        return not (call.type.is_decimal and is_exact and is_wider)
    if call.function in _SIGNS:
        return call.type.precision > _SPARK_DIGITS
    return call.function in _ROUNDED or (call.function in _EXACT and can_fail(call))


def value(call: Call, arguments: list[SparkColumn]) -> SparkColumn:
    """The value of a call; what fails is an error only where the value is needed."""
    if not can_fail(call):
        return attempt(call, arguments)
    return _needed(_answer(call, arguments), call)


def over_columns(call: Call, columns: list[SparkColumn]) -> SparkColumn:
    """The same of a call whose arguments are computed with it, over columns that never fail."""
    return _needed(_computed(call, columns or [F.lit(True)]), call)


def _needed(answer: SparkColumn, call: Call) -> SparkColumn:
    error = answer.getField("error")
    failed = F.raise_error(error).cast(SPARK[call.type])
    return F.when(error.isNotNull(), failed).otherwise(answer.getField("value"))


def attempt(call: Call, arguments: list[SparkColumn]) -> SparkColumn:
    """The value of a call, NULL where it fails."""
    return _answer(call, arguments).getField("value")


def succeeds(call: Call, arguments: list[SparkColumn]) -> SparkColumn:
    """Whether a call has a value, or is NULL."""
    return _answer(call, arguments).getField("error").isNull()


def _answer(call: Call, arguments: list[SparkColumn]) -> SparkColumn:
    """A value and the words of a fault; constants are not sent."""
    places = [n for n, each in enumerate(call.arguments) if n == 0 or not isinstance(each, Literal)]
    inner = Call(
        call.function, tuple(_inner(call, n, places) for n in range(len(arguments))), call.type
    )
    return _computed(inner, [arguments[n] for n in places])


def _computed(call: Call, arguments: list[SparkColumn]) -> SparkColumn:
    """A value and the words of a fault, of a call over columns."""

    def called(*columns: pa.Array) -> pa.Array:
        make_ready()
        rows = len(columns[0])
        if rows == 0:  # a constant has one row, and so has no place among none
            return pa.array([], pa.struct({"value": ARROW_TYPES[call.type], "error": pa.string()}))
        (found,) = Program([call]).run(columns)
        values = to_array(kernel_attempt(found), call.type, rows)
        return pa.StructArray.from_arrays([values, _words(found, rows)], ["value", "error"])

    shape = st.StructType(
        [st.StructField("value", SPARK[call.type]), st.StructField("error", st.StringType())]
    )
    return cast("SparkColumn", _arrow_udf(called, shape)(*arguments))


def _inner(call: Call, number: int, places: list[int]) -> Expression:
    argument = call.arguments[number]
    return Column(places.index(number), argument.type) if number in places else argument


def _words(found: Value, rows: int) -> pa.Array:
    if found.faults is None:
        return pa.nulls(rows, pa.string())
    faults = over_rows(found.faults, rows)
    words = [words_of(fault) if fault else None for fault in faults.tolist()]
    return pa.array(words, pa.string())
