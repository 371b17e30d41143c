"""The aggregate functions of CQL: an allow-list with argument and result types."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from millpond.cql import decimals
from millpond.cql.coercion import arithmetic_type, cast, typed
from millpond.cql.expressions import JOINING, AggregateCall, Expression, Literal
from millpond.cql.text.places import StatementError
from millpond.functions.user_function import UserFunction
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
    form: str = ""
    """How it is called, unless it has one argument."""

    @property
    def called(self) -> str:
        """How it is called."""
        return self.form or f"{self.name}(x)"


def _number(given: Type) -> Type | None:
    return arithmetic_type([given]) if given.is_number or given is Type.NULL else None


def _double(given: Type) -> Type | None:
    return Type.DOUBLE if given.is_number or given is Type.NULL else None


def _any(given: Type) -> Type | None:
    return given


def _text(given: Type) -> Type | None:
    return Type.STRING if given in (Type.STRING, Type.NULL) else None


def _same(argument: Type) -> Type:
    return argument


def _total(argument: Type) -> Type:
    return decimals.total(argument) if argument.is_decimal else argument


def _mean(argument: Type) -> Type:
    return decimals.mean(argument) if argument.is_decimal else Type.DOUBLE


def _bigint(argument: Type) -> Type:
    return Type.BIGINT


def _real(argument: Type) -> Type:
    return Type.DOUBLE


_LIST = (
    AggregateFunction("count", _any, _bigint, "the number of rows (*) or of values not NULL", True),
    AggregateFunction(
        "sum", _number, _total, "the sum: BIGINT, or DECIMAL or DOUBLE of those", True
    ),
    AggregateFunction("avg", _number, _mean, "the mean: DOUBLE, or DECIMAL of DECIMALs", True),
    AggregateFunction("min", _any, _same, "the smallest value", True),
    AggregateFunction("max", _any, _same, "the largest value", True),
    AggregateFunction("stddev", _double, _real, "the sample standard deviation"),
    AggregateFunction("variance", _double, _real, "the sample variance"),
    AggregateFunction(
        "approx_count_distinct", _any, _bigint, "about the number of different values"
    ),
    AggregateFunction(
        "percentile",
        _double,
        _real,
        "percentile(x, f), 0 ≤ f ≤ 1, interpolated linearly",
        form="percentile(x, fraction)",
    ),
    AggregateFunction(
        "max_by", _any, _same, "max_by(x, y): the x of the largest y", form="max_by(x, y)"
    ),
    AggregateFunction(
        "min_by", _any, _same, "min_by(x, y): the x of the smallest y", form="min_by(x, y)"
    ),
    AggregateFunction("first", _any, _same, "the first value that came"),
    AggregateFunction("last", _any, _same, "the last value that came"),
    AggregateFunction(
        "string_agg",
        _text,
        _same,
        "string_agg(x, ', '): the texts in order, with ', ' between them",
        wanted="a STRING",
        form="string_agg(x, ', ')",
    ),
    AggregateFunction("array_agg", _any, Type.array, "the ARRAY of the values, in order"),
)
AGGREGATES = {aggregate.name: aggregate for aggregate in _LIST}
BY = ("max_by", "min_by")
IN_ORDER = (*BY, "first", "last", *JOINING)
"""Those that go by the order in which rows came, where others do not tell them apart."""
AGGREGATE_ALIASES = {
    "arg_max": "max_by",
    "arg_min": "min_by",
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


def call_in_order(
    name: str,
    values: Sequence[Expression],
    parameter: str | None,
    arrival: Sequence[Expression],
    offset: int | None,
) -> AggregateCall:
    """A checked aggregate of rows in order, ``arrival`` telling when they came."""
    value, *by = map(typed, values)
    if name in ("first", "last") and not arrival:
        other = "min_by" if name == "first" else "max_by"
        raise StatementError(
            f"{name} goes by the order in which elements of a stream come, so FROM is one stream "
            f"alone; say the order elsewhere: {other}(x, y)",
            offset,
        )
    made = aggregate_call(name, by[0] if by else value, False, None, offset)
    more = (*((value,) if by else ()), *arrival)
    type_ = value.type if by else made.type
    return replace(made, type=type_, parameter=parameter, more=more)


def user_aggregate(
    own: UserFunction, values: Sequence[Expression], arrival: Sequence[Expression]
) -> AggregateCall:
    """A checked aggregate of the user."""
    first, *others = values
    return AggregateCall(own.name, first, own.result, more=(*others, *arrival), definition=own)


def separator(argument: Expression, offset: int | None) -> str:
    """The second argument of string_agg."""
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise StatementError("the second argument of string_agg is a text written out", offset)
    return argument.value


def fraction(argument: Expression, offset: int | None) -> float:
    """The second argument of percentile."""
    value = argument.value if isinstance(argument, Literal) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise StatementError(
            "the second argument of percentile is a number from 0 to 1 written out", offset
        )
    return float(value)
