"""Times and lengths of time: TIMESTAMP ± INTERVAL, differences, and widths to round down to.

An INTERVAL is a BIGINT, its microseconds; so is the difference of two TIMESTAMPs.
"""

from sqlglot import exp

from millpond.cql.coercion import cast
from millpond.cql.expressions import Call, Expression, Literal
from millpond.cql.text.durations import microseconds
from millpond.cql.text.from_clause import IntervalLiteral
from millpond.cql.text.places import StatementError
from millpond.cql.zones import instant_of, local_time
from millpond.schema import Type

MOMENTS = (Type.TIMESTAMP, Type.DATE)
HOUR_MICROSECONDS = 3_600_000_000


def of_moments(
    node: exp.Binary, symbol: str, left: Expression, right: Expression
) -> Expression | None:
    """A sum or difference with a time in it, or None if it is one of numbers."""
    if symbol not in ("+", "-"):
        return None
    if is_length(node.expression) and left.type in MOMENTS:
        return _shifted(left, right, symbol)
    if symbol == "+" and is_length(node.this) and right.type in MOMENTS:
        return _shifted(right, left, symbol)
    types = {left.type, right.type}
    if symbol == "-" and Type.TIMESTAMP in types and types <= {*MOMENTS, Type.NULL}:
        first, second = (
            _microseconds_of(cast(instant_of(v), Type.TIMESTAMP)) for v in (left, right)
        )
        return _number("-", first, second)
    _refuse_mixture(node.this, left, node.expression)
    _refuse_mixture(node.expression, right, node.this)
    return None


def _refuse_mixture(node: exp.Expr, value: Expression, other: exp.Expr) -> None:
    """Refuses a length of time beside a number that is none."""
    is_length_too = is_length(node) or _is_difference(value) or value.type is Type.NULL
    if is_length(other) and not is_length_too:
        message = f"an INTERVAL goes with a TIMESTAMP or DATE, not with {value.type}"
        raise StatementError(message, node)


def _is_difference(value: Expression) -> bool:
    """Whether a value is the difference of two TIMESTAMPs."""
    return (
        isinstance(value, Call)
        and value.function == "-"
        and all(
            isinstance(each, Call) and each.function == "unix_micros" for each in value.arguments
        )
    )


def is_length(node: exp.Expr) -> bool:
    """Whether an expression is written as a length of time."""
    while isinstance(node, (exp.Paren, exp.Neg)):
        node = node.this
    if isinstance(node, exp.Mul):
        return is_length(node.this) or is_length(node.expression)
    if isinstance(node, (exp.Add, exp.Sub)):
        return is_length(node.expression) and is_length(node.this)
    return isinstance(node, IntervalLiteral)


def rounded_down(moment: Expression, width_microseconds: int) -> Expression:
    """The last time at or before a TIMESTAMP that is a multiple of a width after 1970, as the
    clocks of the zone have it then."""
    width = Literal(width_microseconds, Type.BIGINT)
    shown = _microseconds_of(local_time(moment))
    rest = _number("%", _number("+", _number("%", shown, width), width), width)
    return _moment(_number("-", _microseconds_of(moment), rest))


def width_of(text: str, offset: int | None) -> int:
    """The microseconds of a width of date_trunc, such as '10 seconds'."""
    found = microseconds(text, None, offset or 0)
    if found <= 0:
        raise StatementError("the width of date_trunc must be above zero", offset)
    return found


def _shifted(moment: Expression, length: Expression, symbol: str) -> Expression:
    at = _microseconds_of(instant_of(moment))
    return _moment(_number(symbol, at, cast(length, Type.BIGINT)))


def _microseconds_of(moment: Expression) -> Expression:
    return Call("unix_micros", (moment,), Type.BIGINT)


def _moment(microseconds_: Expression) -> Expression:
    return Call("timestamp_micros", (microseconds_,), Type.TIMESTAMP)


def _number(symbol: str, left: Expression, right: Expression) -> Expression:
    return Call(symbol, (left, right), Type.BIGINT)
