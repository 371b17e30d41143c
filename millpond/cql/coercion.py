"""Casts, written into the checked expression, so that execution coerces nothing."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from millpond.cql.expressions import Call, Expression, Literal, Value
from millpond.cql.text.places import StatementError
from millpond.schema import Type
from millpond.spelling import nearest

TYPE_NAMES = {
    "BOOLEAN": Type.BOOLEAN,
    "BOOL": Type.BOOLEAN,
    "INT": Type.INT,
    "INTEGER": Type.INT,
    "SMALLINT": Type.INT,
    "TINYINT": Type.INT,
    "BIGINT": Type.BIGINT,
    "LONG": Type.BIGINT,
    "DOUBLE": Type.DOUBLE,
    "FLOAT": Type.DOUBLE,
    "REAL": Type.DOUBLE,
    "STRING": Type.STRING,
    "TEXT": Type.STRING,
    "VARCHAR": Type.STRING,
    "CHAR": Type.STRING,
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
}
_INSTEAD = {
    "DECIMAL": "DOUBLE, or BIGINT counting the smallest unit",
    "NUMERIC": "DOUBLE, or BIGINT counting the smallest unit",
    "NUMBER": "DOUBLE or BIGINT",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP (in UTC)",
    "TIME": "TIMESTAMP, or BIGINT",
    "UUID": "STRING",
    "JSON": "STRING",
}
INT_RANGE = (-(2**31), 2**31 - 1)
BIGINT_RANGE = (-(2**63), 2**63 - 1)
_WIDTH = {Type.INT: 0, Type.BIGINT: 1, Type.DOUBLE: 2}
TEMPORAL = (Type.DATE, Type.TIMESTAMP)

# What CAST may do beside casting a type to itself.
_CASTS = {
    Type.BOOLEAN: {Type.INT, Type.BIGINT, Type.STRING},
    Type.INT: {Type.BIGINT, Type.DOUBLE, Type.STRING},
    Type.BIGINT: {Type.INT, Type.DOUBLE, Type.STRING},
    Type.DOUBLE: {Type.INT, Type.BIGINT, Type.STRING},
    Type.STRING: set(Type) - {Type.NULL},
    Type.DATE: {Type.TIMESTAMP, Type.STRING},
    Type.TIMESTAMP: {Type.DATE, Type.STRING},
    Type.NULL: set(Type),
}


def named_type(name: str, offset: int | None) -> Type:
    """The type a name such as VARCHAR stands for."""
    word = name.upper()
    if word in TYPE_NAMES:
        return TYPE_NAMES[word]
    if word in _INSTEAD:
        raise StatementError(f"the type {word} is not supported; use {_INSTEAD[word]}", offset)
    hint = nearest(word, TYPE_NAMES) or ";"
    known = ", ".join(str(t) for t in Type if t is not Type.NULL)
    raise StatementError(f'no type is called "{name}"{hint} known: {known}', offset)


def with_article(of: Type) -> str:
    """The type with its article."""
    return f"an {of}" if of is Type.INT else f"a {of}"


def cast(expression: Expression, to: Type) -> Expression:
    """The expression as a value of type ``to``; constants are converted at once."""
    if expression.type is to:
        return expression
    if isinstance(expression, Literal):
        if expression.value is None:
            return Literal(None, to)
        if expression.type.is_number and to.is_number:
            return _cast_number(expression, to)
    return Call("cast", (expression,), to)


def _cast_number(literal: Literal, to: Type) -> Expression:
    value = literal.value
    if not isinstance(value, (int, float)):
        return Literal(value, to)
    if to is Type.DOUBLE:
        return Literal(float(value), to)
    low, high = INT_RANGE if to is Type.INT else BIGINT_RANGE
    if value == value and low <= value <= high:
        return Literal(int(value), to)
    return Call("cast", (literal,), to)


def explicit_cast(expression: Expression, to: Type, offset: int | None) -> Expression:
    """CAST(expression AS to)."""
    source = expression.type
    if source is not to and to not in _CASTS[source]:
        raise StatementError(f"{with_article(source)} cannot be cast to {to}", offset)
    if isinstance(expression, Literal) and isinstance(expression.value, str) and to in TEMPORAL:
        return temporal_literal(expression.value, to, offset)
    return cast(expression, to)


def temporal_literal(text: str, to: Type, offset: int | None) -> Literal:
    """A string literal read as a DATE or TIMESTAMP."""
    try:
        value = read_date(text) if to is Type.DATE else read_timestamp(text)
    except ValueError:
        form = "'2024-01-31'" if to is Type.DATE else "'2024-01-31 12:00:00'"
        raise StatementError(f"'{text}' is not {with_article(to)}; write {form}", offset) from None
    return Literal(value, to)


def read_date(text: str) -> date:
    """A date in ISO form."""
    return date.fromisoformat(text.strip())


def read_timestamp(text: str) -> datetime:
    """A timestamp in ISO form; an offset is converted to UTC, and the result is naive."""
    moment = datetime.fromisoformat(text.strip())
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def widest(types: Sequence[Type]) -> Type:
    """The widest of some number types."""
    return max(types, key=_WIDTH.__getitem__)


def arithmetic_type(types: Sequence[Type]) -> Type:
    """The type in which numbers are computed: BIGINT or DOUBLE."""
    return Type.DOUBLE if Type.DOUBLE in types else Type.BIGINT


def common_type(expressions: Sequence[Expression]) -> Type | None:
    """The type all the expressions can take, or None; a bare NULL takes any."""
    types = {e.type for e in expressions} - {Type.NULL}
    if not types:
        return Type.STRING
    if len(types) == 1:
        return types.pop()
    if all(t.is_number for t in types):
        return widest(tuple(types))
    temporal = types & set(TEMPORAL)
    strings = [e for e in expressions if e.type is Type.STRING]
    if len(temporal) == 1 and types <= temporal | {Type.STRING} and all(map(_is_text, strings)):
        return temporal.pop()
    return None


def _is_text(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, str)


def implicit_cast(expression: Expression, to: Type, offset: int | None) -> Expression:
    """The expression as ``to``, where ``common_type`` said that it can be."""
    if isinstance(expression, Literal) and isinstance(expression.value, str) and to in TEMPORAL:
        return temporal_literal(expression.value, to, offset)
    return cast(expression, to)


def unify(
    expressions: Sequence[Expression], offsets: Sequence[int | None], complaint: str
) -> tuple[Expression, ...]:
    """All expressions cast to their common type; ``complaint`` begins the error."""
    to = common_type(expressions)
    if to is None:
        types = dict.fromkeys(str(e.type) for e in expressions if e.type is not Type.NULL)
        raise StatementError(f"{complaint} {' and '.join(types)}; CAST one of them", offsets[0])
    return tuple(implicit_cast(e, to, o) for e, o in zip(expressions, offsets, strict=True))


def typed(expression: Expression) -> Expression:
    """The expression with a definite type: a bare NULL becomes a STRING."""
    return cast(expression, Type.STRING) if expression.type is Type.NULL else expression


def assign(expression: Expression, to: Type, target: str, offset: int | None) -> Expression:
    """The expression as a new value of a column of type ``to``; numbers may be narrowed."""
    source = expression.type
    if source.is_number and to.is_number:
        return cast(expression, to)
    if source in (to, Type.NULL) or (_is_text(expression) and to in TEMPORAL):
        return implicit_cast(expression, to, offset)
    raise StatementError(
        f"{target} is {with_article(to)}, the value is {with_article(source)}; CAST it", offset
    )


def literal_of(value: Value) -> Literal:
    """A literal of the narrowest type that holds a Python value."""
    if value is None:
        return Literal(None, Type.NULL)
    if isinstance(value, bool):
        return Literal(value, Type.BOOLEAN)
    if isinstance(value, int):
        return Literal(value, Type.INT if INT_RANGE[0] <= value <= INT_RANGE[1] else Type.BIGINT)
    kinds = {float: Type.DOUBLE, str: Type.STRING, datetime: Type.TIMESTAMP, date: Type.DATE}
    return Literal(value, kinds[type(value)])


def widens(call: Call) -> bool:
    """Whether a call casts numbers to a type that has them all, in their order."""
    return (
        call.function == "cast"
        and call.type.is_number
        and call.arguments[0].type.is_number
        and widest((call.type, call.arguments[0].type)) is call.type
    )
