"""Calls that can fail, as Spark columns that do not: NULL stands where Spark would raise."""

from collections.abc import Callable

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F

from millpond.cql.expressions import Call, Literal, UserCall
from millpond.cql.failing import escape_of, is_pattern
from millpond.errors import MillpondError
from millpond.schema import Type
from millpond.spark import by_kernel, user_functions
from millpond.spark.types import SPARK

_LONG = SPARK[Type.BIGINT]
_WIDE = "decimal(20,0)"
"""Holds every BIGINT and its negation."""
BEYOND_BIGINT = 2.0**63
"""The first DOUBLE that no BIGINT holds; Spark itself casts it to the largest BIGINT."""


def attempt(call: Call, arguments: list[SparkColumn]) -> SparkColumn:
    """The value of a call, NULL where it fails; the arguments never raise."""
    if isinstance(call, UserCall):
        return user_functions.attempt(call, arguments)
    if by_kernel.is_by_kernel(call):
        return by_kernel.attempt(call, arguments)
    rule = _RULES.get(call.function)
    if rule is None:
        raise MillpondError(f"internal: the function {call.function} never fails")
    return rule(call, *arguments)


def succeeds(call: Call, arguments: list[SparkColumn]) -> SparkColumn:
    """Whether a call has a value; of a NULL that is NULL, and no failure."""
    if isinstance(call, UserCall):
        return user_functions.succeeds(call, arguments)
    if by_kernel.is_by_kernel(call):
        return by_kernel.succeeds(call, arguments)
    has_value = attempt(call, arguments).isNotNull()
    for argument in arguments:
        has_value = has_value | argument.isNull()
    return has_value


def _negated(call: Call, a: SparkColumn) -> SparkColumn:
    return F.try_subtract(F.lit(0).cast(_LONG), a)


def _absolute(call: Call, a: SparkColumn) -> SparkColumn:
    return F.abs(a.cast(_WIDE)).try_cast(_LONG)


def _rounded(call: Call, a: SparkColumn, digits: SparkColumn) -> SparkColumn:
    places = call.arguments[1].value  # type: ignore[union-attr]
    return F.round(a.cast(_WIDE), int(places)).try_cast(_LONG)  # type: ignore[arg-type]


def _sign(call: Call, a: SparkColumn) -> SparkColumn:
    return F.signum(a).try_cast(SPARK[Type.INT])


def _cast(call: Call, a: SparkColumn) -> SparkColumn:
    if (call.arguments[0].type, call.type) == (Type.DOUBLE, Type.BIGINT):
        return F.when(a < BEYOND_BIGINT, a.try_cast(_LONG))
    return a.try_cast(SPARK[call.type])


def _to_whole(
    function: Callable[[SparkColumn], SparkColumn],
) -> Callable[[Call, SparkColumn], SparkColumn]:
    """ceil or floor: of NaN they are zero, of what is outside BIGINT nothing."""

    def apply(call: Call, a: SparkColumn) -> SparkColumn:
        inside = (a >= -BEYOND_BIGINT) & (a < BEYOND_BIGINT)
        return F.when(inside | F.isnan(a), function(a)).cast(_LONG)

    return apply


def _like(call: Call, text: SparkColumn, pattern: SparkColumn, *escape: SparkColumn) -> SparkColumn:
    mark = escape_of(call)
    written = call.arguments[1]
    if isinstance(written, Literal) and not is_pattern(str(written.value), mark):
        return F.lit(None).cast(SPARK[Type.BOOLEAN])
    readable = pattern
    for quoted in (mark, "%", "_"):
        readable = F.replace(readable, F.lit(mark + quoted), F.lit("a"))
    return F.when(~F.contains(readable, F.lit(mark)), F.like(text, pattern, F.lit(mark)))


def _split_part(
    call: Call, text: SparkColumn, separator: SparkColumn, number: SparkColumn
) -> SparkColumn:
    return F.split_part(text, separator, F.nullif(number, F.lit(0)))


def _after_1970(microseconds: int) -> Callable[[Call, SparkColumn], SparkColumn]:
    def apply(call: Call, count: SparkColumn) -> SparkColumn:
        total = F.try_multiply(count, F.lit(microseconds).cast(_LONG))
        return F.timestamp_micros(total).cast(SPARK[Type.TIMESTAMP])

    return apply


def _truncated(call: Call, unit: SparkColumn, moment: SparkColumn) -> SparkColumn:
    name = str(call.arguments[0].value)  # type: ignore[union-attr]
    micros = F.unix_micros(moment.cast("timestamp"))
    first = F.lit(_FIRST[name]).cast(_LONG)
    return F.when(micros >= first, F.date_trunc(name, moment).cast(SPARK[Type.TIMESTAMP]))


def _first(step: int, offset: int = 0) -> int:
    """The first multiple of ``step``, counted from ``offset``, that TIMESTAMP holds."""
    return -((2**63 + offset) // step) * step + offset


_DAY = 86_400_000_000
_FIRST = {
    "second": _first(1_000_000),
    "minute": _first(60_000_000),
    "hour": _first(3_600_000_000),
    "day": _first(_DAY),
    "week": _first(7 * _DAY, 4 * _DAY),
    "month": _first(_DAY) + 10 * _DAY,
    "year": _first(_DAY) + 10 * _DAY,
}
"""Where each unit first begins within TIMESTAMP, whose first whole day is a 22 December."""

_RULES: dict[str, Callable[..., SparkColumn]] = {
    "+": lambda call, a, b: F.try_add(a, b),
    "-": lambda call, a, b: F.try_subtract(a, b),
    "*": lambda call, a, b: F.try_multiply(a, b),
    "neg": _negated,
    "abs": _absolute,
    "round": _rounded,
    "ceil": _to_whole(F.ceil),
    "floor": _to_whole(F.floor),
    "sign": _sign,
    "cast": _cast,
    "like": _like,
    "split_part": _split_part,
    "date_trunc": _truncated,
    "timestamp_seconds": _after_1970(1_000_000),
    "timestamp_millis": _after_1970(1_000),
}
