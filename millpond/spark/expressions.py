"""Checked expressions as Spark columns, built function by function, never from text."""

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from millpond.cql.expressions import Call, Column, Expression, Literal, UserCall
from millpond.cql.failing import can_fail
from millpond.cql.functions import REGULAR
from millpond.cql.moments import TIMESTAMP_TEXT
from millpond.errors import MillpondError
from millpond.planning.attempts import FORMS
from millpond.schema import Type
from millpond.spark import bounds, by_kernel, regular_expressions, user_functions
from millpond.spark.attempts import BEYOND_BIGINT, attempt, succeeds
from millpond.spark.taken_in import has_to_take_in, taken_in
from millpond.spark.types import SPARK

_TIMESTAMP_TEXT = rf"\A(?:{TIMESTAMP_TEXT})\z"


def lower(expression: Expression, columns: Sequence[SparkColumn]) -> SparkColumn:
    """The Spark column for an expression over the given input columns."""
    if isinstance(expression, Column):
        return columns[expression.position]
    if isinstance(expression, Literal):
        return literal(expression)
    if not isinstance(expression, Call):
        raise MillpondError(f"internal: {expression} was not unnested")
    if expression.function in FORMS:
        return _guarded(expression, columns)
    if has_to_take_in(expression):
        made, sent = taken_in(expression)
        return by_kernel.over_columns(made, [lower(each, columns) for each in sent])
    if by_kernel.is_by_kernel(expression):
        return by_kernel.value(expression, [lower(each, columns) for each in expression.arguments])
    if expression.function == "cast":
        return _cast(expression, lower(expression.arguments[0], columns))
    if expression.function == "date_trunc":
        unit, value = expression.arguments
        return F.date_trunc(_text(unit), lower(value, columns)).cast(SPARK[Type.TIMESTAMP])
    if expression.function == "round":
        return _round(expression, columns)
    if expression.function == "like":
        return _like(expression, columns)
    if expression.function in REGULAR:
        return regular_expressions.value(expression, lower(expression.arguments[0], columns))
    arguments = [lower(argument, columns) for argument in expression.arguments]
    if isinstance(expression, UserCall):
        return user_functions.value(expression, arguments)
    if expression.function == "bound":
        return bounds.value(expression, arguments)
    function = _FUNCTIONS.get(expression.function)
    if function is None:
        raise MillpondError(f"internal: no execution for the function {expression.function}")
    result = function(*arguments)
    return result.cast(SPARK[expression.type]) if expression.function in _RECAST else result


def _guarded(form: Call, columns: Sequence[SparkColumn]) -> SparkColumn:
    """attempt and succeeds of a call; what cannot fail needs no attempt."""
    (inner,) = form.arguments
    is_attempt = form.function == "attempt"
    if not isinstance(inner, Call) or not can_fail(inner):
        return lower(inner, columns) if is_attempt else F.lit(True)
    arguments = [lower(argument, columns) for argument in inner.arguments]
    return attempt(inner, arguments) if is_attempt else succeeds(inner, arguments)


def literal(expression: Literal) -> SparkColumn:
    """A constant column of the literal's type."""
    return F.lit(expression.value).cast(SPARK[expression.type])


def _text(expression: Expression) -> str:
    if not isinstance(expression, Literal) or not isinstance(expression.value, str):
        raise MillpondError("internal: a constant text was expected")
    return expression.value


def _cast(call: Call, value: SparkColumn) -> SparkColumn:
    """Text that cannot be read becomes NULL; numbers out of range are an error."""
    source, target = call.arguments[0].type, call.type
    if source is target:
        return value
    if target is Type.BINARY:
        return value.cast(SPARK[target])
    if source is Type.BINARY:
        return F.try_validate_utf8(value.cast(SPARK[target]))
    if source is Type.STRING and target is Type.TIMESTAMP:
        return F.when(
            value.rlike(_TIMESTAMP_TEXT), value.try_cast(TimestampType()).cast(SPARK[target])
        )
    if source is Type.STRING:
        return value.try_cast(SPARK[target])
    if source is Type.BOOLEAN and target.is_number:
        return value.cast(SPARK[Type.INT]).cast(SPARK[target])
    if source is Type.DOUBLE and target is Type.BIGINT:
        value = F.when(value >= BEYOND_BIGINT, value * 2).otherwise(value)  # which Spark refuses
    return value.cast(SPARK[target])


def _round(call: Call, columns: Sequence[SparkColumn]) -> SparkColumn:
    value = lower(call.arguments[0], columns)
    digits = call.arguments[1].value if len(call.arguments) > 1 else 0  # type: ignore[union-attr]
    return F.round(value, int(digits)).cast(SPARK[call.type])  # type: ignore[arg-type]


def _like(call: Call, columns: Sequence[SparkColumn]) -> SparkColumn:
    value, pattern = (lower(argument, columns) for argument in call.arguments[:2])
    if len(call.arguments) > 2:
        return F.like(value, pattern, F.lit(call.arguments[2].value))  # type: ignore[union-attr]
    return F.like(value, pattern)


def _case(*parts: SparkColumn) -> SparkColumn:
    pairs, otherwise = len(parts) // 2, len(parts) % 2
    result = F.when(parts[0], parts[1])
    for i in range(1, pairs):
        result = result.when(parts[2 * i], parts[2 * i + 1])
    return result.otherwise(parts[-1]) if otherwise else result


def _in(value: SparkColumn, *others: SparkColumn) -> SparkColumn:
    return reduce(lambda a, b: a | b, [value == other for other in others])


def _greatest(*values: SparkColumn) -> SparkColumn:
    return F.greatest(*values) if len(values) > 1 else values[0]


def _least(*values: SparkColumn) -> SparkColumn:
    return F.least(*values) if len(values) > 1 else values[0]


def _positive(
    function: Callable[[SparkColumn], SparkColumn],
) -> Callable[[SparkColumn], SparkColumn]:
    return lambda value: F.when(value > 0, function(value))


def _divide(a: SparkColumn, b: SparkColumn) -> SparkColumn:
    return F.when(b != 0, a / F.nullif(b, F.lit(0.0)))


def _remainder(a: SparkColumn, b: SparkColumn) -> SparkColumn:
    return F.when(b != 0, a % F.nullif(b, F.lit(0)))


def _aligned(
    time: SparkColumn,
    slide: SparkColumn,
    offset: SparkColumn,
    shift: SparkColumn,
    unit: SparkColumn,
) -> SparkColumn:
    return (time - F.pmod(time - offset, slide) + shift) * unit


_FUNCTIONS: dict[str, Callable[..., SparkColumn]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _remainder,
    "neg": lambda a: -a,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "is_not_distinct": lambda a, b: a.eqNullSafe(b),
    "and": lambda *a: reduce(lambda x, y: x & y, a),
    "or": lambda *a: reduce(lambda x, y: x | y, a),
    "not": lambda a: ~a,
    "is_null": lambda a: a.isNull(),
    "in": _in,
    "case": _case,
    "coalesce": F.coalesce,
    "nullif": F.nullif,
    "greatest": _greatest,
    "least": _least,
    "abs": F.abs,
    "ceil": F.ceil,
    "floor": F.floor,
    "sqrt": lambda a: F.when(a >= 0, F.sqrt(a)),
    "exp": F.exp,
    "ln": _positive(F.ln),
    "log10": _positive(F.log10),
    "power": F.pow,
    "sign": F.signum,
    "upper": F.upper,
    "lower": F.lower,
    "length": F.length,
    "octet_length": F.octet_length,
    "trim": F.trim,
    "ltrim": F.ltrim,
    "rtrim": F.rtrim,
    "substring": F.substr,
    "concat": F.concat,
    "replace": F.replace,
    "strpos": lambda s, part: F.position(part, s),
    "left": F.left,
    "right": F.right,
    "lpad": F.lpad,
    "rpad": F.rpad,
    "reverse": F.reverse,
    "md5": F.md5,
    "sha1": F.sha1,
    "sha256": lambda s: F.sha2(s, 256),
    "starts_with": F.startswith,
    "ends_with": F.endswith,
    "contains": F.contains,
    "split_part": F.split_part,
    "year": F.year,
    "month": F.month,
    "day": F.dayofmonth,
    "dayofweek": F.dayofweek,
    "hour": F.hour,
    "minute": F.minute,
    "second": F.second,
    "date_add": F.date_add,
    "date_sub": F.date_sub,
    "datediff": F.datediff,
    "unix_seconds": lambda t: F.unix_seconds(t.cast("timestamp")),
    "unix_millis": lambda t: F.unix_millis(t.cast("timestamp")),
    "unix_micros": lambda t: F.unix_micros(t.cast("timestamp")),
    "timestamp_seconds": F.timestamp_seconds,
    "timestamp_millis": F.timestamp_millis,
    "timestamp_micros": F.timestamp_micros,
    "aligned": _aligned,
}

_RECAST = {
    "abs",
    "ceil",
    "floor",
    "sign",
    "length",
    "octet_length",
    "strpos",
    "year",
    "month",
    "day",
    "dayofweek",
    "hour",
    "minute",
    "second",
    "datediff",
    "timestamp_seconds",
    "timestamp_millis",
    "timestamp_micros",
    "%",
    "/",
}
"""Functions whose Spark result may have another width than CQL's."""
