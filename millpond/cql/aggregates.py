"""The aggregate functions of CQL: an allow-list with argument and result types."""

from collections.abc import Callable
from dataclasses import dataclass

from millpond.cql.coercion import arithmetic_type, cast, typed
from millpond.cql.expressions import AggregateCall, Expression, Literal
from millpond.cql.text.places import StatementError
from millpond.schema import Type


@dataclass(frozen=True)
class AggregateFunction:
    """One aggregate. ``argument`` maps the argument's type to the type it is cast to, or None."""

    name: str
    argument: Callable[[Type], Type | None]
    result: Callable[[Type], Type]
    doc: str
    distinct: bool = False
    wanted: str = "a number"


def _number(given: Type) -> Type | None:
    return arithmetic_type([given]) if given.is_number or given is Type.NULL else None


def _double(given: Type) -> Type | None:
    return Type.DOUBLE if given.is_number or given is Type.NULL else None


def _any(given: Type) -> Type | None:
    return given


def _same(argument: Type) -> Type:
    return argument


def _bigint(argument: Type) -> Type:
    return Type.BIGINT


def _real(argument: Type) -> Type:
    return Type.DOUBLE


_LIST = (
    AggregateFunction("count", _any, _bigint, "the number of rows (*) or of values not NULL", True),
    AggregateFunction("sum", _number, _same, "the sum: BIGINT, or DOUBLE for DOUBLE", True),
    AggregateFunction("avg", _number, _real, "the mean, DOUBLE", True),
    AggregateFunction("min", _any, _same, "the smallest value", True),
    AggregateFunction("max", _any, _same, "the largest value", True),
    AggregateFunction("stddev", _double, _real, "the sample standard deviation"),
    AggregateFunction("variance", _double, _real, "the sample variance"),
    AggregateFunction(
        "approx_count_distinct", _any, _bigint, "about the number of different values"
    ),
    AggregateFunction(
        "percentile", _double, _real, "percentile(x, f), 0 ≤ f ≤ 1, interpolated linearly"
    ),
)
AGGREGATES = {aggregate.name: aggregate for aggregate in _LIST}
AGGREGATE_ALIASES = {
    "mean": "avg",
    "stddev_samp": "stddev",
    "var_samp": "variance",
    "median": "percentile",
}


def aggregate_call(
    name: str, argument: Expression, distinct: bool, parameter: float | None, offset: int | None
) -> AggregateCall:
    """A checked aggregate of one argument."""
    aggregate = AGGREGATES[name]
    to = aggregate.argument(argument.type)
    if to is None:
        raise StatementError(f"{name} needs {aggregate.wanted}, not {argument.type}", offset)
    if distinct and not aggregate.distinct:
        raise StatementError(f"{name} does not take DISTINCT", offset)
    value = typed(argument) if to is Type.NULL else cast(argument, to)
    keeps = distinct and name not in ("min", "max")
    return AggregateCall(name, value, aggregate.result(value.type), keeps, parameter, offset)


def fraction(argument: Expression, offset: int | None) -> float:
    """The second argument of percentile."""
    value = argument.value if isinstance(argument, Literal) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise StatementError(
            "the second argument of percentile is a number from 0 to 1 written out", offset
        )
    return float(value)
