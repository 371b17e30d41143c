"""Casts, written into the checked expression, so that execution coerces nothing."""

import itertools
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from millpond.cql import decimals
from millpond.cql.expressions import Call, Expression, Literal, Value
from millpond.cql.text.places import StatementError
from millpond.cql.zones import instant_in_zone, instant_of, instant_of_text, local_time
from millpond.schema import FAMILIES, MOST_DIGITS, NESTED, Field, Type

INT_RANGE = (-(2**31), 2**31 - 1)
BIGINT_RANGE = (-(2**63), 2**63 - 1)
_WIDTH = {Type.INT: 0, Type.BIGINT: 1, Type.DOUBLE: 2}
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]*")
TEMPORAL = (Type.DATE, Type.TIMESTAMP)

# What CAST may do beside casting a type to itself.
_CASTS = {
    Type.BOOLEAN: {Type.INT, Type.BIGINT, Type.STRING},
    Type.INT: {Type.BIGINT, Type.DECIMAL, Type.DOUBLE, Type.STRING},
    Type.BIGINT: {Type.INT, Type.DECIMAL, Type.DOUBLE, Type.STRING},
    Type.DECIMAL: {Type.INT, Type.BIGINT, Type.DECIMAL, Type.DOUBLE, Type.STRING},
    Type.DOUBLE: {Type.INT, Type.BIGINT, Type.DECIMAL, Type.STRING},
    Type.STRING: set(FAMILIES),
    Type.BINARY: {Type.STRING},
    Type.DATE: {Type.TIMESTAMP, Type.STRING},
    Type.TIMESTAMP: {Type.DATE, Type.STRING},
    **{family: {Type.STRING} for family in NESTED},
    Type.NULL: {*FAMILIES, Type.NULL},
}


def with_article(of: Type) -> str:
    """The type with its article."""
    return f"an {of}" if str(of)[0] in "AI" else f"a {of}"


def cast(expression: Expression, to: Type) -> Expression:
    """The expression as a value of type ``to``; constants are converted at once."""
    if expression.type is to:
        return expression
    if isinstance(expression, Literal):
        if expression.value is None:
            return Literal(None, to)
        if expression.type.is_number and to.is_number:
            return _cast_number(expression, to)
    return _rebuilt(expression, to, cast) or Call("cast", (expression,), to)


def widens_to(source: Type, to: Type) -> bool:
    """Whether values within others become those of a type that holds each of them."""
    if source.is_nested and source.family is to.family and source is not to:
        inner, outer = _parts(source), _parts(to)
        is_alike = len(inner) == len(outer) and (not source.is_map or source.key is to.key)
        return is_alike and all(map(widens_to, inner, outer))
    both = source.is_number and to.is_number
    return source is to or (both and widest((source, to)) is to)


def _parts(type_: Type) -> tuple[Type, ...]:
    """The types of what values of a type have in them, but keys."""
    return tuple(field.type for field in type_.fields) if type_.is_struct else (type_.element,)


def _rebuilt(
    expression: Expression, to: Type, cast_to: Callable[[Expression, Type], Expression]
) -> Expression | None:
    """ARRAY[…], STRUCT(…) or MAP[…] with each part cast to what the type has; None of others."""
    made = _constructed(expression)
    if made is None or expression.type.family is not to.family:
        return None
    if to.is_struct and len(made) != len(to.fields):
        return None
    types = itertools.cycle([to.key, to.element]) if to.is_map else itertools.cycle(_parts(to))
    parts = tuple(cast_to(part, type_) for part, type_ in zip(made, types, strict=False))
    return Call(to.family.value.lower(), parts, to)


def as_text(expression: Expression) -> Expression:
    """The expression as a text that no other value has: of a BINARY its hexadecimal digits."""
    if expression.type is Type.BINARY:
        return Call("hex", (expression,), Type.STRING)
    return cast(expression, Type.STRING)


def _cast_number(literal: Literal, to: Type) -> Expression:
    value = literal.value
    if not isinstance(value, (int, float, Decimal)):
        return Literal(value, to)
    if to.is_decimal:
        return _cast_decimal(literal, to)
    if to is Type.DOUBLE:
        return Literal(float(value), to)
    low, high = INT_RANGE if to is Type.INT else BIGINT_RANGE
    if value == value and low <= value <= high:
        return Literal(int(value), to)
    return Call("cast", (literal,), to)


def _cast_decimal(literal: Literal, to: Type) -> Expression:
    value = literal.value
    made = decimals.fitted(value, to) if isinstance(value, (int, float, Decimal)) else None
    return Call("cast", (literal,), to) if made is None else Literal(made, to)


def explicit_cast(expression: Expression, to: Type, offset: int | None) -> Expression:
    """CAST(expression AS to)."""
    source = expression.type
    if rebuilt := _rebuilt(expression, to, lambda part, of: explicit_cast(part, of, offset)):
        return rebuilt
    if source is not to and to.family not in _CASTS[source.family] and not widens_to(source, to):
        advice = "; numbers widen, and CAST AS STRING gives its JSON" if source.is_nested else ""
        raise StatementError(f"{with_article(source)} cannot be cast to {to}{advice}", offset)
    if isinstance(expression, Literal) and isinstance(expression.value, str) and to in TEMPORAL:
        return temporal_literal(expression.value, to, offset)
    if source is Type.TIMESTAMP and to in (Type.DATE, Type.STRING):
        return cast(local_time(expression), to)
    if source is Type.DATE and to is Type.TIMESTAMP:
        return instant_of(expression)
    if source is Type.STRING and to is Type.TIMESTAMP:
        return instant_of_text(expression)
    return cast(expression, to)


def _constructed(expression: Expression) -> tuple[Expression, ...] | None:
    """The parts of ARRAY[…], STRUCT(…) or MAP[…]; None of another expression."""
    is_made = isinstance(expression, Call) and expression.function in ("array", "struct", "map")
    return expression.arguments if is_made and isinstance(expression, Call) else None


def _has_only_nulls(expression: Expression) -> bool:
    """Whether it is ARRAY[NULL], or with more of them."""
    made = _constructed(expression) if expression.type.is_array else None
    return made is not None and all(isinstance(e, Literal) and e.value is None for e in made)


def temporal_literal(text: str, to: Type, offset: int | None) -> Literal:
    """A string literal read as a DATE or TIMESTAMP."""
    try:
        value = read_date(text) if to is Type.DATE else read_timestamp(text)
    except ValueError:
        form = "'2024-01-31'" if to is Type.DATE else "'2024-01-31 12:00:00'"
        raise StatementError(f"'{text}' is not {with_article(to)}; write {form}", offset) from None
    return Literal(value, to)


def binary_literal(text: str, offset: int | None) -> Literal:
    """The hexadecimal digits behind X, two for each byte."""
    if len(text) % 2 or not _HEXADECIMAL.fullmatch(text):
        raise StatementError(
            f"X'{text}' is no BINARY: a byte is two hexadecimal digits, as in X'CAFE'", offset
        )
    return Literal(bytes.fromhex(text), Type.BINARY)


def decimal_literal(text: str, offset: int | None) -> Literal:
    """A number in quotes behind DECIMAL, with the digits that it is written with."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    number = decimals.of_number(value)
    type_ = None if number is None else decimals.type_of(number)
    if number is None or type_ is None:
        raise StatementError(
            f"'{text}' is not a DECIMAL of at most {MOST_DIGITS} digits; write '12.50'", offset
        )
    return Literal(number, type_)


def read_date(text: str) -> date:
    """A date in ISO form."""
    return date.fromisoformat(text.strip())


def read_timestamp(text: str) -> datetime:
    """A timestamp in ISO form, by the clocks of the zone unless it has an offset; the result is in
    UTC, and naive."""
    moment = datetime.fromisoformat(text.strip())
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else instant_in_zone(moment)


def widest(types: Sequence[Type]) -> Type | None:
    """The widest of some number types; None if DECIMALs have too different digits."""
    if Type.DOUBLE in types or not any(type_.is_decimal for type_ in types):
        return max((t for t in types if not t.is_decimal), key=_WIDTH.__getitem__)
    return decimals.widest(types)


def arithmetic_type(types: Sequence[Type]) -> Type:
    """The type in which numbers are computed: BIGINT, DOUBLE or a DECIMAL."""
    if Type.DOUBLE in types:
        return Type.DOUBLE
    return next((type_ for type_ in types if type_.is_decimal), Type.BIGINT)


def exact_types(expressions: Sequence[Expression]) -> list[Type]:
    """The types of numbers; beside a DECIMAL those written out are DECIMALs with their digits."""
    types = [each.type for each in expressions]
    if not [type_ for type_ in types if type_.is_decimal]:
        return types
    return [_exact_type(each) for each in expressions]


def _exact_type(expression: Expression) -> Type:
    value = expression.value if isinstance(expression, Literal) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return expression.type
    number = decimals.of_number(value)
    return expression.type if number is None else decimals.type_of(number) or expression.type


def common_type(expressions: Sequence[Expression]) -> Type | None:
    """The type all the expressions can take, or None; a bare NULL, and ARRAY[NULL], take any."""
    known = [each for each in expressions if not _has_only_nulls(each)]
    if any(each.type.is_array for each in known):
        expressions = known
    types = {e.type for e in expressions} - {Type.NULL}
    if len(types) > 1:
        types = set(exact_types(expressions)) - {Type.NULL}
    if not types:
        return Type.STRING
    if len(types) == 1:
        return types.pop()
    if all(t.is_number for t in types):
        return widest(tuple(types))
    if all(t.is_nested for t in types):
        return _common_nested(list(dict.fromkeys(e.type for e in expressions if e.type in types)))
    temporal = types & set(TEMPORAL)
    strings = [e for e in expressions if e.type is Type.STRING]
    if len(temporal) == 1 and types <= temporal | {Type.STRING} and all(map(_is_text, strings)):
        return temporal.pop()
    return None


def _common_nested(types: Sequence[Type]) -> Type | None:
    """The type all values with others in them can take: names of fields are those of the first."""
    first = types[0]
    if len({(t.family, t.key if t.is_map else None, _names(t)) for t in types}) > 1:
        return None
    columns = zip(*map(_parts, types), strict=True)
    parts = [common_type([Literal(None, type_) for type_ in column]) for column in columns]
    if None in parts:
        return None
    known = [part for part in parts if part is not None]
    if first.is_struct:
        pairs = zip(first.fields, known, strict=True)
        return Type.struct(tuple(Field(field.name, type_) for field, type_ in pairs))
    return Type.array(known[0]) if first.is_array else Type.map(first.key, known[0])


def _names(type_: Type) -> tuple[str, ...]:
    return tuple(field.name.lower() for field in type_.fields)


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
    if _has_only_nulls(expression) and to.is_array:
        return cast(expression, to)
    if rebuilt := _rebuilt(expression, to, lambda part, of: _assigned(part, of, target, offset)):
        return rebuilt
    if to.is_nested and widens_to(source, to):
        return cast(expression, to)
    is_read = _is_text(expression) and (to in TEMPORAL or to.is_nested)
    if source in (to, Type.NULL) or is_read:
        return implicit_cast(expression, to, offset)
    raise StatementError(
        f"{target} is {with_article(to)}, the value is {with_article(source)}; CAST it", offset
    )


def _assigned(part: Expression, to: Type, target: str, offset: int | None) -> Expression:
    """What is in a new value; a bare NULL has taken a type of its surroundings."""
    is_null = isinstance(part, Literal) and part.value is None
    return cast(part, to) if is_null else assign(part, to, target, offset)


def literal_of(value: Value) -> Literal:
    """A literal of the narrowest type that holds a Python value."""
    if value is None:
        return Literal(None, Type.NULL)
    if isinstance(value, bool):
        return Literal(value, Type.BOOLEAN)
    if isinstance(value, int):
        return Literal(value, Type.INT if INT_RANGE[0] <= value <= INT_RANGE[1] else Type.BIGINT)
    if isinstance(value, Decimal):
        return Literal(value, decimals.type_of(value) or Type.decimal(MOST_DIGITS, 0))
    kinds = {
        float: Type.DOUBLE,
        str: Type.STRING,
        bytes: Type.BINARY,
        datetime: Type.TIMESTAMP,
        date: Type.DATE,
    }
    return Literal(value, kinds[type(value)])


def widens(call: Call) -> bool:
    """Whether a call casts numbers to a type that has them all, in their order."""
    return (
        call.function == "cast"
        and call.type.is_number
        and call.arguments[0].type.is_number
        and widest((call.type, call.arguments[0].type)) is call.type
    )
