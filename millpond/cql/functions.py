"""The scalar functions of CQL: the allow-list, with argument types, result type and one line each.

Operators have their own syntax and are listed for execution and documentation only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Union

from millpond.cql import decimals, regular_expressions
from millpond.cql.coercion import (
    TEMPORAL,
    arithmetic_type,
    cast,
    common_type,
    implicit_cast,
    widest,
    with_article,
)
from millpond.cql.expressions import Call, Expression, Literal, UserCall
from millpond.cql.json_paths import steps_of
from millpond.cql.text.places import StatementError
from millpond.cql.zones import LOCAL_TIME, ZONED_TEXT, ZONED_TIME, instant_shown, local_time
from millpond.functions.user_function import UserFunction
from millpond.schema import Type


class Kind(Enum):
    """Parameters that take more than one type."""

    NUMBER = "a number"
    """Computed as BIGINT, DECIMAL or DOUBLE."""
    MOMENT = "a DATE or TIMESTAMP"
    VALUE = "a value of the same type as the others"
    BYTES = "a STRING or BINARY"
    """The same for all arguments."""
    DIGITS = "a whole number written out"
    UNIT = "a unit of time in quotes"
    PATTERN = "a regular expression in quotes"
    TEXT = "a text in quotes"
    GROUP = "the number of a group written out"
    ARRAY = "an ARRAY"
    MAP = "a MAP"
    MANY = "an ARRAY or MAP"
    ELEMENT = "a value of the type of its elements"
    PATH = "a path in quotes, such as '$.items[0].price'"


Parameter = Union[Type, Kind]


@dataclass(frozen=True)
class Function:
    """One scalar function. ``optional`` trailing parameters may be left out; ``variadic``: the
    last one repeats. ``result`` None means the type of the arguments."""

    name: str
    parameters: tuple[Parameter, ...]
    result: Type | None
    doc: str
    optional: int = 0
    variadic: bool = False

    @property
    def signature(self) -> str:
        """The function as documentation shows it."""
        shown = [str(p) if isinstance(p, Type) else p.name.lower() for p in self.parameters]
        first = len(shown) - self.optional
        text = ", ".join(shown[:first]) + "".join(f"[, {p}]" for p in shown[first:])
        return f"{self.name}({text}{', …' if self.variadic else ''})"

    def accepts(self, count: int) -> bool:
        """Whether the function can be called with ``count`` arguments."""
        least = len(self.parameters) - self.optional
        return least <= count and (self.variadic or count <= len(self.parameters))

    def parameter(self, position: int) -> Parameter:
        """The parameter that an argument's position stands for."""
        return self.parameters[min(position, len(self.parameters) - 1)]


_S, _I, _B, _D = Type.STRING, Type.INT, Type.BIGINT, Type.DOUBLE
_T, _DAY, _TRUTH = Type.TIMESTAMP, Type.DATE, Type.BOOLEAN
_N, _M, _SAME, _BYTES = Kind.NUMBER, Kind.MOMENT, Kind.VALUE, Kind.BYTES

_LIST = (
    Function("abs", (_N,), None, "the absolute value"),
    Function("ceil", (_N,), _B, "the smallest whole number not below"),
    Function("floor", (_N,), _B, "the largest whole number not above"),
    Function("round", (_N, Kind.DIGITS), None, "rounded, half away from zero", 1),
    Function("sqrt", (_D,), _D, "the square root; NULL below zero"),
    Function("exp", (_D,), _D, "e to the power of the argument"),
    Function("ln", (_D,), _D, "the natural logarithm; NULL unless above zero"),
    Function("log10", (_D,), _D, "the logarithm to base 10; NULL unless above zero"),
    Function("power", (_D, _D), _D, "the first argument to the power of the second"),
    Function("sign", (_N,), _I, "-1, 0 or 1"),
    Function("div", (_B, _B), _B, "the quotient without its fraction; NULL for a zero divisor"),
    Function("sin", (_D,), _D, "the sine of an angle in radians; NULL of an infinite one"),
    Function("cos", (_D,), _D, "the cosine of an angle in radians; NULL of an infinite one"),
    Function("tan", (_D,), _D, "the tangent of an angle in radians; NULL of an infinite one"),
    Function("asin", (_D,), _D, "the angle of a sine; NULL outside -1 to 1"),
    Function("acos", (_D,), _D, "the angle of a cosine; NULL outside -1 to 1"),
    Function("atan", (_D,), _D, "the angle of a tangent"),
    Function("atan2", (_D, _D), _D, "the angle of a point by its y and its x"),
    Function("sinh", (_D,), _D, "the hyperbolic sine"),
    Function("cosh", (_D,), _D, "the hyperbolic cosine"),
    Function("tanh", (_D,), _D, "the hyperbolic tangent"),
    Function("degrees", (_D,), _D, "an angle in radians as degrees"),
    Function("radians", (_D,), _D, "an angle in degrees as radians"),
    Function("cbrt", (_D,), _D, "the cubic root"),
    Function("hypot", (_D, _D), _D, "the length of a vector"),
    Function("greatest", (_SAME,), None, "the largest argument; NULLs are skipped", 0, True),
    Function("least", (_SAME,), None, "the smallest argument; NULLs are skipped", 0, True),
    Function("coalesce", (_SAME,), None, "the first argument that is not NULL", 0, True),
    Function("nullif", (_SAME, _SAME), None, "NULL if the arguments are equal, else the first"),
    Function("upper", (_S,), _S, "in upper case"),
    Function("lower", (_S,), _S, "in lower case"),
    Function("length", (_BYTES,), _I, "the number of characters, or of the bytes of a BINARY"),
    Function("octet_length", (_BYTES,), _I, "the number of bytes, of a STRING in UTF-8"),
    Function("trim", (_S,), _S, "without spaces at both ends"),
    Function("ltrim", (_S,), _S, "without spaces at the beginning"),
    Function("rtrim", (_S,), _S, "without spaces at the end"),
    Function(
        "substring",
        (_BYTES, _I, _I),
        None,
        "from a position (from 1; negative: from the end), so many characters or bytes",
        1,
    ),
    Function("concat", (_BYTES,), None, "the arguments joined; NULL if one is NULL", 0, True),
    Function(
        "replace", (_S, _S, _S), _S, "each occurrence of the second argument replaced by the third"
    ),
    Function(
        "strpos",
        (_S, _S),
        _I,
        "the position of the second argument in the first, from 1; 0 if absent",
    ),
    Function("left", (_S, _I), _S, "the first so many characters"),
    Function("right", (_S, _I), _S, "the last so many characters"),
    Function("lpad", (_S, _I, _S), _S, "filled up on the left (or cut) to a length"),
    Function("rpad", (_S, _I, _S), _S, "filled up on the right (or cut) to a length"),
    Function("reverse", (_S,), _S, "the characters in reverse order"),
    Function("md5", (_BYTES,), _S, "the MD5 of its bytes, as 32 hexadecimal digits"),
    Function("sha1", (_BYTES,), _S, "the SHA-1 of its bytes, as 40 hexadecimal digits"),
    Function("sha256", (_BYTES,), _S, "the SHA-256 of its bytes, as 64 hexadecimal digits"),
    Function("sha512", (_BYTES,), _S, "the SHA-512 of its bytes, as 128 hexadecimal digits"),
    Function("crc32", (_BYTES,), _B, "the CRC-32 of its bytes"),
    Function("hex", (_BYTES,), _S, "its bytes in hexadecimal digits"),
    Function("unhex", (_S,), Type.BINARY, "the bytes of hexadecimal digits; NULL of other texts"),
    Function("base64", (_BYTES,), _S, "its bytes in base64"),
    Function("unbase64", (_S,), Type.BINARY, "the bytes of a text in base64; NULL of other texts"),
    Function("starts_with", (_S, _S), _TRUTH, "whether the first argument begins with the second"),
    Function("ends_with", (_S, _S), _TRUTH, "whether the first argument ends with the second"),
    Function("contains", (_S, _S), _TRUTH, "whether the first argument contains the second"),
    Function(
        "split_part",
        (_S, _S, _I),
        _S,
        "the n-th part between separators, from 1; negative: from the end",
    ),
    Function("regexp_like", (_S, Kind.PATTERN), _TRUTH, "whether a part of the text matches"),
    Function(
        "regexp_extract",
        (_S, Kind.PATTERN, Kind.GROUP),
        _S,
        "the first group of the first match, or another one (0: all of it); NULL without a match",
        1,
    ),
    Function(
        "regexp_replace",
        (_S, Kind.PATTERN, Kind.TEXT),
        _S,
        "each match replaced by a text, in which \\1 is the first group",
    ),
    Function(
        "json_value",
        (_S, Kind.PATH),
        _S,
        "the number, text or truth value that a path leads to in JSON; NULL if there is none",
    ),
    Function(
        "cardinality", (Kind.MANY,), _I, "the number of elements of an ARRAY, or entries of a MAP"
    ),
    Function("map_keys", (Kind.MAP,), None, "the ARRAY of the keys of a MAP, in order"),
    Function("map_values", (Kind.MAP,), None, "the ARRAY of the values of a MAP, in that order"),
    Function(
        "array_contains",
        (Kind.ARRAY, Kind.ELEMENT),
        _TRUTH,
        "whether an element equals the value, with three truth values",
    ),
    Function("year", (_M,), _I, "the year"),
    Function("month", (_M,), _I, "the month, 1 to 12"),
    Function("day", (_M,), _I, "the day of the month, 1 to 31"),
    Function("dayofweek", (_M,), _I, "the day of the week, 1 (Sunday) to 7"),
    Function("hour", (_T,), _I, "the hour, 0 to 23"),
    Function("minute", (_T,), _I, "the minute, 0 to 59"),
    Function("second", (_T,), _I, "the second, 0 to 59"),
    Function(
        "date_trunc",
        (Kind.UNIT, _T),
        _T,
        "the beginning of the year, month, week (Monday), day, hour, minute or second",
    ),
    Function("date_add", (_DAY, _I), _DAY, "so many days later"),
    Function("date_sub", (_DAY, _I), _DAY, "so many days earlier"),
    Function("datediff", (_DAY, _DAY), _I, "the days from the second date to the first"),
    Function("unix_seconds", (_T,), _B, "whole seconds since 1970, rounded down"),
    Function("unix_millis", (_T,), _B, "whole milliseconds since 1970, rounded down"),
    Function("unix_micros", (_T,), _B, "microseconds since 1970"),
    Function("timestamp_seconds", (_B,), _T, "the time so many seconds after 1970"),
    Function("timestamp_millis", (_B,), _T, "the time so many milliseconds after 1970"),
    Function("timestamp_micros", (_B,), _T, "the time so many microseconds after 1970"),
)
FUNCTIONS = {function.name: function for function in _LIST}

ALIASES = {
    "ceiling": "ceil",
    "pow": "power",
    "substr": "substring",
    "instr": "strpos",
    "char_length": "length",
    "character_length": "length",
    "startswith": "starts_with",
    "endswith": "ends_with",
    "ifnull": "coalesce",
    "nvl": "coalesce",
    "array_length": "cardinality",
    "array_size": "cardinality",
    "dayofmonth": "day",
    "date_diff": "datediff",
    "epoch": "unix_seconds",
}
"""Other names of the same functions."""

REWRITTEN = {
    "mod": "mod(a, b) is a % b",
    "named_struct": "named_struct('a', 1) is STRUCT(1 AS a)",
    "sha2": "sha2(s, 256) is sha256(s), and with 512 sha512(s)",
    "pi": "pi() is 3.141592653589793",
    "if": "if(condition, a, b) is CASE WHEN condition THEN a ELSE b END",
    "to_date": "to_date(x) is CAST(x AS DATE)",
    "to_timestamp": "to_timestamp(x) is CAST(x AS TIMESTAMP)",
    "date_format": "date_format(t, 'yyyy-MM-dd') is the text of its parts",
    "tstamp": "tstamp(S) is the time of an element of a stream S in FROM",
}
"""Names that the analysis rewrites into operators."""

OPERATORS = {
    "+": "sum of numbers, as BIGINT, DECIMAL or DOUBLE",
    "-": "difference of numbers, as BIGINT, DECIMAL or DOUBLE",
    "*": "product of numbers, as BIGINT, DECIMAL or DOUBLE",
    "/": "quotient, DOUBLE unless a DECIMAL is divided exactly; NULL for a zero divisor",
    "%": "remainder with the sign of the dividend; NULL for a zero divisor",
    "neg": "the negated number, as BIGINT, DECIMAL or DOUBLE",
    "=": "equal",
    "<>": "not equal",
    "<": "less",
    "<=": "less or equal",
    ">": "greater",
    ">=": "greater or equal",
    "is_not_distinct": "equal, or both NULL; never NULL itself",
    "and": "both, with three truth values",
    "or": "either, with three truth values",
    "not": "negation, NULL for NULL",
    "is_null": "whether the value is NULL",
    "like": "% is any text, _ one character; backslash escapes, or the third argument",
    "in": "whether the value equals one of a list, with three truth values",
    "case": "the value of the first true condition, else the last value or NULL",
    "cast": "the value as another type; NULL where a STRING cannot be read",
    "array": "the ARRAY of some values",
    "[]": "the element of an ARRAY at a place, from 1, or the value of a MAP's key; NULL if none",
    "struct": "the STRUCT of some values",
    "field": "the value of a field of a STRUCT",
    "map": "the MAP of keys and values, each behind its key",
}
"""The functions of ``Call`` that have a syntax of their own."""

SPARK_ONLY: frozenset[str] = frozenset()
"""Functions that ``millpond/kernels/expressions`` lacks, so that steps with them need Spark.

Of those it has, it leaves to Spark what depends on how Java writes a double, which is not the
same in all Javas: CAST of a DOUBLE to STRING, and ``round`` of a DOUBLE before the point."""

BY_ROW = (
    *("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"),
    *("degrees", "radians", "cbrt", "hypot", "sha512", "crc32", "hex", "unhex", "base64"),
    *("array", "[]", "cardinality", "array_contains"),
    *("struct", "field", "map", "map_keys", "map_values"),
    *("unbase64", "json_value", LOCAL_TIME, ZONED_TIME, ZONED_TEXT),
)
"""Functions that Python computes, on Spark too: no other gives the same bits everywhere."""

REGULAR = ("regexp_like", "regexp_extract", "regexp_replace")
"""Functions by regular expressions."""

TRUNCATIONS = ("year", "month", "week", "day", "hour", "minute", "second")


def call(name: str, arguments: Sequence[Expression], offsets: Sequence[int | None]) -> Call:
    """A checked call of the function with this canonical name; arguments are cast as needed."""
    made = _call(FUNCTIONS[name], arguments, offsets)
    fault = regular_expressions.fault_of(made) if name in REGULAR else ""
    if fault:
        raise StatementError(fault, offsets[1])
    return made


IN_ZONES = ("year", "month", "day", "dayofweek", "hour", "minute", "second", "date_trunc")
"""Functions that read the calendar of an instant."""


def of_calendar(made: Call) -> Expression:
    """A call that reads the calendar of an instant, in the zone that is in force."""
    *unit, moment = made.arguments
    if moment.type is not Type.TIMESTAMP:
        return made
    local = local_time(moment)
    if local is moment:
        return made
    inner = Call(made.function, (*unit, local), made.type)
    if not unit:
        return inner
    if isinstance(unit[0], Literal) and unit[0].value in ("second", "minute", "hour"):
        return without(moment, _since(inner, local))
    return instant_shown(inner)


def without(moment: Expression, microseconds: Expression) -> Expression:
    """A TIMESTAMP so much earlier."""
    at = Call("unix_micros", (moment,), Type.BIGINT)
    earlier = Call("-", (at, microseconds), Type.BIGINT)
    return Call("timestamp_micros", (earlier,), Type.TIMESTAMP)


def _since(begin: Expression, moment: Expression) -> Expression:
    parts = (Call("unix_micros", (each,), Type.BIGINT) for each in (moment, begin))
    return Call("-", tuple(parts), Type.BIGINT)


def _call(
    function: Function, arguments: Sequence[Expression], offsets: Sequence[int | None]
) -> Call:
    to = _shared_type(function, arguments, offsets)
    checked = tuple(
        _argument(function, position, argument, offset, to)
        for position, (argument, offset) in enumerate(zip(arguments, offsets, strict=True))
    )
    return Call(function.name, checked, _result(function, checked, to))


def _result(function: Function, arguments: Sequence[Expression], shared: Type) -> Type:
    if shared.is_decimal and function.name in ("ceil", "floor"):
        return decimals.whole(shared)
    if shared.is_decimal and function.name == "round":
        digits = (
            arguments[1].value if len(arguments) > 1 and isinstance(arguments[1], Literal) else 0
        )
        return decimals.rounded(shared, digits if isinstance(digits, int) else 0)
    if function.name in ("map_keys", "map_values"):
        of = arguments[0].type
        return Type.array(of.key if function.name == "map_keys" else of.element)
    return function.result or shared


def user_call(
    own: UserFunction, arguments: Sequence[Expression], offsets: Sequence[int | None]
) -> UserCall:
    """A checked call of a function of the user."""
    made = _call(of_user(own), arguments, offsets)
    return UserCall(made.function, made.arguments, made.type, own)


def of_user(own: UserFunction) -> Function:
    """How a function of the user is called."""
    return Function(own.name, own.parameters, own.result, "a function of the user")


def _shared_type(
    function: Function, arguments: Sequence[Expression], offsets: Sequence[int | None]
) -> Type:
    """The type shared by the arguments that NUMBER, VALUE and BYTES parameters take."""
    kinds = [function.parameter(i) for i in range(len(arguments))]
    chosen = [
        a
        for a, kind in zip(arguments, kinds, strict=True)
        if kind in (Kind.VALUE, Kind.NUMBER, Kind.BYTES)
    ]
    if Kind.ELEMENT in kinds:
        chosen = [Literal(None, arguments[0].type.element), arguments[1]]
    if Kind.NUMBER in kinds:
        return arithmetic_type([a.type for a in chosen])
    to = _of_bytes(chosen) if Kind.BYTES in kinds else common_type(chosen)
    if to is None:
        types = ", ".join(str(a.type) for a in chosen)
        raise StatementError(
            f"{function.name} needs values of one type, not {types}; CAST them", offsets[0]
        )
    return to


def _of_bytes(arguments: Sequence[Expression]) -> Type | None:
    """STRING or BINARY; None if there are both. What is neither is refused with its place."""
    types = {each.type for each in arguments}
    if Type.BINARY not in types:
        return Type.STRING
    return None if Type.STRING in types else Type.BINARY


def _argument(
    function: Function, position: int, argument: Expression, offset: int | None, shared: Type
) -> Expression:
    kind = function.parameter(position)
    if kind is Kind.VALUE:
        return implicit_cast(argument, shared, offset)
    if kind in CONSTANT:
        return _constant(function, kind, argument, offset)
    if argument.type is Type.NULL:
        return cast(argument, kind if isinstance(kind, Type) else _null_type(kind, shared))
    if kind is Kind.NUMBER and argument.type.is_number:
        return cast(argument, shared)
    if kind is Kind.ELEMENT:
        return implicit_cast(argument, shared, offset)
    if kind is Kind.ARRAY and argument.type.is_array:
        return cast(argument, Type.array(shared)) if _reads_elements(function) else argument
    if _KINDS.get(kind, _none)(argument.type):
        return argument
    if kind is Kind.BYTES and argument.type is shared:
        return argument
    if kind is Kind.MOMENT and argument.type in TEMPORAL:
        return argument
    if isinstance(kind, Type) and _converts(argument, kind):
        return implicit_cast(argument, kind, offset)
    raise StatementError(
        f"argument {position + 1} of {function.name} must be {_wanted(kind)}, not {argument.type}",
        offset,
    )


def _none(of: Type) -> bool:
    return False


_KINDS: dict[Parameter, Callable[[Type], bool]] = {
    Kind.MAP: lambda of: of.is_map,
    Kind.MANY: lambda of: of.is_array or of.is_map,
}


def _null_type(kind: Parameter, shared: Type) -> Type:
    if kind is Kind.MAP:
        return Type.map(Type.STRING, Type.STRING)
    if kind in (Kind.ARRAY, Kind.MANY):
        return Type.array(shared)
    return Type.TIMESTAMP if kind is Kind.MOMENT else shared


def _reads_elements(function: Function) -> bool:
    return Kind.ELEMENT in function.parameters


def _converts(argument: Expression, to: Type) -> bool:
    """Whether an argument becomes a parameter's type without being asked: numbers may widen."""
    if argument.type.is_number and to.is_number:
        return widest((argument.type, to)) is to or (to, argument.type) == (Type.INT, Type.BIGINT)
    is_text = isinstance(argument, Literal) and argument.type is Type.STRING
    return argument.type is to or (is_text and to in TEMPORAL)


CONSTANT = (Kind.DIGITS, Kind.UNIT, Kind.PATTERN, Kind.TEXT, Kind.GROUP, Kind.PATH)
"""What must be written out."""


def _constant(
    function: Function, kind: Parameter, argument: Expression, offset: int | None
) -> Expression:
    value = argument.value if isinstance(argument, Literal) else None
    if kind is Kind.DIGITS and isinstance(value, int) and not isinstance(value, bool):
        if -15 <= value <= 15:
            return Literal(value, Type.INT)
        raise StatementError(f"{function.name} takes from -15 to 15 digits", offset)
    if kind is Kind.UNIT and isinstance(value, str):
        if value.lower() in TRUNCATIONS:
            return Literal(value.lower(), Type.STRING)
        raise StatementError(
            f"{function.name} knows {', '.join(TRUNCATIONS)}; not '{value}'", offset
        )
    if kind is Kind.PATH and isinstance(value, str):
        if steps_of(value) is None:
            raise StatementError(
                f"'{value}' is no path into JSON; keys and places of arrays from 0 on: "
                "'$.items[0].price'",
                offset,
            )
        return Literal(value, Type.STRING)
    if kind in (Kind.PATTERN, Kind.TEXT) and isinstance(value, str):
        return Literal(value, Type.STRING)
    if kind is Kind.GROUP and isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value <= regular_expressions.MOST_GROUPS:
            return Literal(value, Type.INT)
        most = regular_expressions.MOST_GROUPS
        raise StatementError(f"{function.name} takes groups from 0 to {most}", offset)
    raise StatementError(f"this argument of {function.name} must be {_wanted(kind)}", offset)


def _wanted(kind: Parameter) -> str:
    return kind.value if isinstance(kind, Kind) else with_article(kind)
