"""Values at the edges of every type, and calls of every function over columns of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa

from millpond.connectors.nested import inside, outside_type
from millpond.cql import decimals, functions
from millpond.cql.coercion import explicit_cast
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.cql.functions import FUNCTIONS, TRUNCATIONS, Function, Kind
from millpond.cql.text.places import StatementError
from millpond.schema import Type

INF, NAN = float("inf"), float("nan")
NARROW, WIDE = Type.decimal(12, 3), Type.decimal(38, 10)
DAYS = (0, -1, 1, -719162, 2932896, 11016, 19782, -25567, 18262, 10957, -141427, 364, 20000)
"""1970, the days around, 0001-01-01, 9999-12-31, leap days, 1899, 1582 and so on."""
FAR_DAYS = (2**31 - 1, -(2**31), -719529, -719163, 2932897, 106751991, 106751992, -106751992)

VALUES: dict[Type, tuple[object, ...]] = {
    Type.BOOLEAN: (None, True, False),
    Type.INT: (None, 0, 1, -1, 2, 3, -3, 7, 10, 100, 2**31 - 1, -(2**31), 65, 40),
    Type.BIGINT: (
        None, 0, 1, -1, 2, -2, 3, 7, -7, 10, 25, 15, -15, 1000, 2**31, -(2**31), -(2**31) - 1,
        2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1, 3037000500, 3037000499,
        10**18, 9223372036854775, 9223372036854776, -9223372036855, 5 * 10**14, -5 * 10**14,
    ),
    Type.DOUBLE: (
        None, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, 0.3, 1 / 3, 2.0, 3.0, -7.25,
        1e-3, 9.999e-4, 1e7, 9999999.0, 123456789.125, 1e15, 2.0**52 + 0.5, 2.0**53, 2.0**63,
        -(2.0**63), 9.3e18, -9.3e18, 2147483647.0, 2147483647.5, 2147483648.0, -2147483648.5,
        -2147483649.0, 1e22, 2e23, 1.7976931348623157e308, -1.7976931348623157e308,
        2.2250738585072014e-308, 5e-324, -5e-324, 1e-310, 709.782712893384, 709.8, -745.2,
        -708.4, 0.285, 1.005, 2.675, -1.115, 1e300, INF, -INF, NAN,
    ),
    Type.STRING: (
        None, "", " ", "a", "A", "b", "ab", "abc", "aXbXc", "  trim me  ", "\ttab\n", "ä", "Ä",
        "ß", "ŉ", "ΑΣ", "İstanbul", "ǅ", "日本語", "a日b", "😀", "a😀b😀c", "e\u0301",
        "\u00a0x\u00a0", "%", "_", "100%", "a_c", "a\\b", "\\", "a%b_c", "line\nbreak",
        "x" * 5000, "😀" * 700, "0", "1", "-1", "+7", " 42 ", "007", "1.5", "-0.0", "1e3", ".5",
        "5.", "1e400", "-1e400", "1e-400", "4.9e-324", "0x1p-3", "1.5d", "2F", "NaN", "nan",
        "-nan", "inf", "-Infinity", "+infinity", "infinit", "1_000", "１２", "true", "TRUE",
        " yes ", "t", "n", "no", "f", "tru", "2147483647", "2147483648", "-2147483648",
        "-2147483649", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
        "1970-01-01", "2024-02-29", "2023-02-29", "2024-2-9", "2024-02", "2024", "202",
        "0001-01-01", "9999-12-31", "-0001-01-01", "+12345-06-07", "1234567-01-01",
        "CAFE", "cafE0", "yv4=", "YQ==", "YWI=", "YR==", "Y", "ca fe", "-ff",
        "12345678-01-01", "2024-02-29T12:34:56", "2024-02-29 12:34:56.789",
        "2024-02-29 1:2:3.1234567", "2024-02-29 12:34", "2024-02-29T", "2024-02-29 ",
        "2024-02-29x", "2024-13-01", "2024-00-01", "2024-02-29 24:00:00", "2024-02-29 23:60:00",
        "2024-02-29 12:34:56Z", "2024-02-29 12:34:56+02:00", "2024-02-29T12:34:56 UTC",
        "12:34:56", "T12:34", "2024-02-29 12", "2024-02-29 12:34:56.", "2024-02-29 12:34:56.1Z",
        "9999-12-31 23:59:59.999999", "2024-02-29 12:34:56 Europe/Paris", "2024-02-29 12:34:56 +1",
        "2024-02-29 12:34:56-1730", "2024-02-29 12:34:56+18:01", "2024-02-29 12:34:56+2:3",
        "2024-02-29 12:34:56.5UTC", "2024-02-29 12:34Z", "294247-01-10 04:00:54.775807",
        "294247-01-10 04:00:54.775808", "+294247-01-10 04:00:55", "-290308-12-21 19:59:05.224192",
        "-290308-12-21 19:59:05.224191", "0000-01-01", "-123456-02-29 00:00:00", "\x00",
        "a\x00b", "\x7f12",
    ),
    Type.BINARY: (
        None, b"", b"\0", b"a", b"ab", b"\xff", b"\x80\x00", b"\xca\xfe", b"\xc3\xa4", b"\xe6\x97",
        "\u65e5\u672c".encode(), b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"x" * 300,
        b"\x7f\xff\xff\xff", b"abc", "\U0001f600".encode(), b"\xf0\x9f\x98", b"1",
    ),
    NARROW: (
        None, "0", "0.001", "-0.001", "1", "-1", "0.5", "-0.5", "1.5", "2.5", "-2.5", "0.285", "7",
        "999999999.999", "-999999999.999", "123456.789", "1E+2", "0.1", "-3.333",
    ),
    WIDE: (
        None, "0", "1E-10", "-1E-10", "1", "-1", "0.5", "1.5", "-2.5", "3", "0.3333333333",
        "9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999",
        "12345678901234567890.5", "-9223372036854775808", "9223372036854775807.0000000001", "1E+27",
        "100000000000000.00000005", "2147483648", "-999999999999999999.9999999999",
    ),
    Type.DATE: (None, *DAYS, *FAR_DAYS),
    Type.TIMESTAMP: (
        None, 0, 1, -1, 999_999, 1_000_000, -1_000_001, -62135596800000000, 253402300799999999,
        1709210096789000, 1709210096000000, 1709164800000000, -86400000000, 1234567890123450,
        -12219292800000001, 2**63 - 1, -(2**63), -(2**63) + 86_400_000_000 * 400,
        946684800000000,
    ),
}  # fmt: skip
NUMBERS, WORDS, REALS = map(Type.array, (Type.INT, Type.STRING, Type.DOUBLE))
VALUES |= {
    NUMBERS: (
        None,
        (),
        (None,),
        (0,),
        (1,),
        (1, 2),
        (1, None),
        (2, 1, 1),
        (-1,),
        (2**31 - 1, -(2**31)),
        (1,) * 40,
        (-1, 0),
        (0, 0),
    ),
    WORDS: (
        None,
        (),
        (None,),
        ("",),
        ("", ""),
        ("a",),
        ("a", None),
        ("a", "b"),
        ("a\0",),
        ("\0", "b"),
        ("ab",),
        ("ä", "X"),
        ("[1, null]",),
        ("long" * 30, "b"),
    ),
    REALS: (None, (), (None,), (0.0,), (-0.0,), (NAN, 1.0), (INF,), (-INF, 1e300), (0.1, -2.5)),
}
VALUES[Type.STRING] += ("[]", "[1, null]", '["a", "ä"]', "[1.5, 2]", '["NaN"]', "[[1]]", "[NaN]")
ARRAYS = (NUMBERS, WORDS, REALS)
PAIR = Type.of("STRUCT<a INT, b STRING>")
TOTALS = Type.map(Type.STRING, Type.BIGINT)
VALUES |= {
    PAIR: tuple(
        pair and dict(zip("ab", pair, strict=True))
        for pair in (
            None, (None, None), (0, ""), (1, "a"), (1, None), (None, "a"), (-1, "\0"), (1, "\0\0b"),
            (2**31 - 1, "ä"), (-(2**31), "long" * 30), (256, "\0"),
        )
    ),
    TOTALS: (
        None, (), (("", 0),), (("a", None),), (("b", 1), ("a", 2)), (("a", 2), ("b", 1)),
        (("a", 2**63 - 1), ("\0", -(2**63)), ("ä", 0)), (("a", 1), ("a", 2)),
    ),
}  # fmt: skip
VALUES[Type.STRING] += ('{"a": 1, "B": "x"}', "{}", '{"a": null, "b": 2}', '{"": 1.0, "a": 2}')
COLUMNS_OF_A_TYPE = 3
TYPES = tuple(VALUES)


def table(seed: int = 0) -> pa.Table:
    """Three columns of each type: all pairs of values meet in the first two, the third is drawn."""
    draw = random.Random(seed)
    rows = max(len(values) ** 2 for type_, values in VALUES.items() if type_ is not Type.STRING)
    columns = []
    for values in VALUES.values():
        count = len(values)
        order = list(range(count**2)) * (rows // count**2 + 1)
        pairs = [(values[i // count], values[i % count]) for i in order[:rows]]
        if count**2 > rows:
            pairs = [(values[i % count], draw.choice(values)) for i in range(rows)]
        columns += [[a for a, _ in pairs], [b for _, b in pairs]]
        columns.append([draw.choice(values) for _ in range(rows)])
    types = [type_ for type_ in TYPES for _ in range(COLUMNS_OF_A_TYPE)]
    arrays = [_array(c, t) for c, t in zip(columns, types, strict=True)]
    return pa.Table.from_arrays(arrays, [f"c{i}" for i in range(len(arrays))])


def _array(values: list[object], type_: Type) -> pa.Array:
    if type_ is Type.DATE:
        return pa.array(values, pa.int32()).view(pa.date32())
    if type_ is Type.TIMESTAMP:
        return pa.array(values, pa.int64()).view(pa.timestamp("us"))
    if type_.is_decimal:
        values = [None if value is None else Decimal(str(value)) for value in values]
    return inside(pa.array(values, outside_type(type_)))


def column(type_: Type, number: int = 0) -> Column:
    """One of the columns of a type."""
    return Column(TYPES.index(type_) * COLUMNS_OF_A_TYPE + number, type_)


def calls() -> Iterator[Expression]:
    """Calls of every function and operator, with columns and with constants."""
    for function in FUNCTIONS.values():
        yield from _calls_of(function)
    yield from _operators()
    yield from _casts()
    yield from _patterns()
    yield from _in_zones()


PATTERNS = ("(a)", "(ä|X)+", r"(?i)^(.)", r"(\s)|b", "(.)$")
"""Regular expressions, each with one group."""

_CONSTANTS: dict[Type, tuple[object, ...]] = {
    Type.STRING: ("", "a", "b", " ", "ä", "X"),
    Type.BINARY: (b"", b"a", b"\xff\x00"),
    Type.INT: (0, 1, 2, -1, 5, -(2**31)),
    Type.DOUBLE: (2.0, 0.5, -1.0),
    Type.BIGINT: (3, -1),
}


def _calls_of(function: Function) -> Iterator[Expression]:
    count = len(function.parameters) + (2 if function.variadic else 0)
    for shared in _shared_types(function):
        choices = [_arguments(function.parameter(i), shared, i) for i in range(count)]
        if function.name in ("lpad", "rpad"):
            choices[1] = _width()
        first = [choice[0] for choice in choices]
        yield _checked(function, first)
        for least in range(len(function.parameters) - function.optional, count):
            yield _checked(function, first[:least])
        for position, options in enumerate(choices):
            for option in options[1:]:
                yield _checked(function, [*first[:position], option, *first[position + 1 :]])
        constants = [options[-1] for options in choices]
        yield _checked(function, [first[0], *constants[1:]])


def _shared_types(function: Function) -> tuple[Type, ...]:
    kinds = set(function.parameters)
    if Kind.VALUE in kinds:
        return TYPES
    if kinds & {Kind.MAP, Kind.MANY}:
        return (Type.STRING,)
    if Kind.ARRAY in kinds:
        return tuple(type_.element for type_ in ARRAYS)
    if Kind.NUMBER in kinds:
        return (Type.INT, Type.BIGINT, Type.DOUBLE, NARROW, WIDE)
    if Kind.BYTES in kinds:
        return (Type.STRING, Type.BINARY)
    return (Type.DATE, Type.TIMESTAMP) if Kind.MOMENT in kinds else (Type.STRING,)


def _arguments(parameter: Type | Kind, shared: Type, position: int) -> list[Expression]:
    number = min(position, COLUMNS_OF_A_TYPE - 1)
    if parameter is Kind.DIGITS:
        return [Literal(digits, Type.INT) for digits in (2, 0, 1, -1, -2, -15, 15, 3)]
    if parameter is Kind.UNIT:
        return [Literal(unit, Type.STRING) for unit in TRUNCATIONS]
    if parameter is Kind.GROUP:
        return [Literal(group, Type.INT) for group in (1, 0)]
    if parameter is Kind.PATH:
        return [Literal(path, Type.STRING) for path in ("$", "$.a", "$[0]")]
    if parameter in (Kind.PATTERN, Kind.TEXT):
        texts = PATTERNS if parameter is Kind.PATTERN else ("", r"<\1>", "x")
        return [Literal(text, Type.STRING) for text in texts]
    if parameter in (Kind.MAP, Kind.MANY):
        others = [column(WORDS), column(REALS, 1)] if parameter is Kind.MANY else []
        return [column(TOTALS, number), *others]
    if parameter is Kind.ARRAY:
        return [column(Type.array(shared), number)]
    type_ = parameter if isinstance(parameter, Type) else shared
    constants = [Literal(value, type_) for value in _CONSTANTS.get(type_, ())]
    return [column(type_, number), *constants]


def _width() -> list[Expression]:
    """Widths to fill up to, which must not be huge."""
    length = Call("length", (column(Type.STRING, 1),), Type.INT)
    return [length, *(Literal(width, Type.INT) for width in (0, 1, 5, -3, -(2**31)))]


def _checked(function: Function, arguments: list[Expression]) -> Expression:
    return functions.call(function.name, arguments, [None] * len(arguments))


def _operators() -> Iterator[Expression]:
    for type_ in TYPES:
        a, b, c = (column(type_, i) for i in range(3))
        for symbol in ("=", "<>", "<", "<=", ">", ">=", "is_not_distinct"):
            yield Call(symbol, (a, b), Type.BOOLEAN)
        yield Call("is_null", (a,), Type.BOOLEAN)
        yield Call("in", (a, b, c), Type.BOOLEAN)
        yield Call("case", (column(Type.BOOLEAN), a, column(Type.BOOLEAN, 1), b), type_)
        yield Call("case", (column(Type.BOOLEAN), a, b), type_)
    for type_ in (Type.BIGINT, Type.DOUBLE):
        a, b = column(type_), column(type_, 1)
        for symbol in "+-*%":
            yield Call(symbol, (a, b), type_)
            yield Call(symbol, (a, Literal(7 if type_ is Type.BIGINT else 7.0, type_)), type_)
        yield Call("neg", (a,), type_)
    yield from _of_arrays()
    yield from _of_structs_and_maps()
    yield Call("/", (column(Type.DOUBLE), column(Type.DOUBLE, 1)), Type.DOUBLE)
    yield from _of_decimals()
    truths = [column(Type.BOOLEAN, i) for i in range(3)]
    for symbol in ("and", "or"):
        yield Call(symbol, tuple(truths[:2]), Type.BOOLEAN)
        yield Call(symbol, tuple(truths), Type.BOOLEAN)
    yield Call("not", (truths[0],), Type.BOOLEAN)


def _of_arrays() -> Iterator[Expression]:
    for type_ in ARRAYS:
        element = type_.element
        values = [column(element), column(element, 1), Literal(None, element)]
        for count in (1, 2, 3):
            yield Call("array", tuple(values[:count]), type_)
        yield Call("array", (column(type_), column(type_, 1)), Type.array(type_))
        nested = Call("array", (column(type_), Literal(None, type_)), Type.array(type_))
        yield Call("[]", (nested, Literal(1, Type.INT)), type_)
        for place in (column(Type.INT), *(Literal(n, Type.INT) for n in (1, 2, 0, -1, None))):
            yield Call("[]", (column(type_), place), element)


def _of_structs_and_maps() -> Iterator[Expression]:
    number, text, total = column(Type.INT), column(Type.STRING, 1), column(Type.BIGINT)
    made = Call("struct", (number, text), PAIR)
    listed = Call("array", (column(PAIR), made), Type.array(PAIR))
    for struct in (column(PAIR), made, Call("[]", (listed, Literal(2, Type.BIGINT)), PAIR)):
        yield Call("field", (struct, Literal("a", Type.STRING)), Type.INT)
        yield Call("field", (struct, Literal("b", Type.STRING)), Type.STRING)
    yield listed
    yield Call("cast", (column(PAIR),), Type.of("STRUCT<x DOUBLE, y STRING>"))
    entries = Call("map", (text, total, column(Type.STRING), Literal(7, Type.BIGINT)), TOTALS)
    for map_ in (column(TOTALS), entries):
        for key in (text, Literal("a", Type.STRING), Literal(None, Type.STRING)):
            yield Call("[]", (map_, key), Type.BIGINT)
    yield entries
    yield Call("map", (number, column(PAIR)), Type.map(Type.INT, PAIR))


def _of_decimals() -> Iterator[Expression]:
    operands = [column(NARROW), column(WIDE, 1), column(NARROW, 2), Literal(Decimal("1.19"), CENTS)]
    for a, b in itertools.product(operands, operands[1:]):
        for symbol in "+-*/%":
            yield Call(symbol, (a, b), decimals.result(symbol, a.type, b.type))
    for type_ in (NARROW, WIDE):
        yield Call("neg", (column(type_),), type_)
        total = Call("+", (column(type_), column(type_, 1)), decimals.result("+", type_, type_))
        yield Call("is_null", (total,), Type.BOOLEAN)


CENTS = Type.decimal(3, 2)


def _casts() -> Iterator[Expression]:
    for source in TYPES:
        for target in (
            *TYPES,
            Type.array(Type.BIGINT),
            Type.array(Type.BOOLEAN),
            CENTS,
            Type.decimal(38, 20),
            Type.decimal(5, 0),
        ):
            try:
                yield explicit_cast(column(source), target, None)
            except StatementError:
                continue


def _in_zones() -> Iterator[Expression]:
    for name in ("Europe/Berlin", "Australia/Lord_Howe"):
        zone = Literal(name, Type.STRING)
        for function in ("local_time", "zoned_time"):
            yield Call(function, (column(Type.TIMESTAMP), zone), Type.TIMESTAMP)
        yield Call("zoned_text", (column(Type.STRING), zone), Type.TIMESTAMP)


_PATTERNS = (
    *("%", "_", "a%", "%b", "%a%", "a_c", "", "__", "_b", "%\n%", "😀%"),
    *("\\%", "100\\%", "a\\\\b"),
)


def _patterns() -> Iterator[Expression]:
    a, b = column(Type.STRING), column(Type.STRING, 1)
    yield Call("like", (a, b), Type.BOOLEAN)
    yield Call("like", (a, b, Literal("!", Type.STRING)), Type.BOOLEAN)
    for pattern in (
        "%",
        "_",
        "a%",
        "%b",
        "%a%",
        "a_c",
        "",
        "\\%",
        "100\\%",
        "a\\\\b",
        "__",
        "%\n%",
        "😀%",
        "_b",
    ):
        yield Call("like", (a, Literal(pattern, Type.STRING)), Type.BOOLEAN)
    yield Call("like", (a, Literal("a!_c", Type.STRING), Literal("!", Type.STRING)), Type.BOOLEAN)


def guarded() -> Iterator[Expression]:
    """Expressions in which a part that may fail is needed in some rows only."""
    small, large = column(Type.BIGINT), column(Type.BIGINT, 1)
    risky = Call("+", (small, large), Type.BIGINT)
    fails = Call(">", (risky, Literal(0, Type.BIGINT)), Type.BOOLEAN)
    truth = column(Type.BOOLEAN)
    for symbol in ("and", "or"):
        yield Call(symbol, (truth, fails), Type.BOOLEAN)
        yield Call(symbol, (fails, truth), Type.BOOLEAN)
        yield Call(symbol, (truth, fails, column(Type.BOOLEAN, 1)), Type.BOOLEAN)
    third = column(Type.BIGINT, 2)
    yield Call("case", (truth, risky, third), Type.BIGINT)
    yield Call("case", (truth, third, column(Type.BOOLEAN, 1), risky), Type.BIGINT)
    yield Call("case", (fails, third, truth, risky), Type.BIGINT)
    yield Call("coalesce", (third, risky), Type.BIGINT)
    yield Call("coalesce", (risky, third), Type.BIGINT)
    yield Call("*", (third, risky), Type.BIGINT)
    yield Call("*", (risky, third), Type.BIGINT)
    yield Call("=", (third, risky), Type.BOOLEAN)
    yield Call("is_not_distinct", (third, risky), Type.BOOLEAN)
    yield Call("nullif", (third, risky), Type.BIGINT)
    yield Call("nullif", (risky, third), Type.BIGINT)
    yield Call("greatest", (third, risky), Type.BIGINT)
    yield Call("least", (risky, third), Type.BIGINT)
    yield Call("in", (third, third, risky), Type.BOOLEAN)
    yield Call("in", (third, small, risky), Type.BOOLEAN)
    yield Call("is_null", (risky,), Type.BOOLEAN)
    text = column(Type.STRING)
    written = Call("cast", (risky,), Type.STRING)
    yield Call("concat", (text, written), Type.STRING)
    yield Call("concat", (written, text), Type.STRING)
    yield Call("replace", (text, column(Type.STRING, 1), written), Type.STRING)
    narrow = Call("cast", (risky,), Type.INT)
    yield Call("left", (text, narrow), Type.STRING)
    yield Call("lpad", (written, column(Type.INT), Literal("", Type.STRING)), Type.STRING)
    yield Call("split_part", (text, column(Type.STRING, 1), narrow), Type.STRING)
    yield Call("date_add", (column(Type.DATE), narrow), Type.DATE)
    yield from _guarded_calls_of_python(risky)


def _guarded_calls_of_python(risky: Expression) -> Iterator[Expression]:
    """The same of functions that Python computes on Spark, which it does for all rows."""
    truth, text, third = column(Type.BOOLEAN), column(Type.STRING), column(Type.BIGINT, 2)
    exact = Call("cast", (column(Type.INT),), NARROW)
    total = Call("*", (column(WIDE), column(WIDE, 1)), decimals.result("*", WIDE, WIDE))
    written = Call("concat", (text, Call("cast", (risky,), Type.STRING)), Type.STRING)
    pattern = Literal("(1)", Type.STRING)
    sure = Call("+", (risky, Literal(0, Type.BIGINT)), Type.BIGINT)
    either = Call("case", (truth, sure, column(Type.BOOLEAN, 1), third), Type.BIGINT)
    for made in (
        Call("cast", (exact,), Type.BIGINT),
        Call("sin", (Call("cast", (risky,), Type.DOUBLE),), Type.DOUBLE),
        Call("div", (third, risky), Type.BIGINT),
        Call("div", (Call("div", (risky, third), Type.BIGINT), either), Type.BIGINT),
        Call("%", (total, column(NARROW)), decimals.result("%", total.type, NARROW)),
        Call("*", (total, total), decimals.result("*", total.type, total.type)),
        Call("regexp_like", (written, pattern), Type.BOOLEAN),
        Call("regexp_extract", (written, pattern, Literal(1, Type.INT)), Type.STRING),
    ):
        yield made
        yield Call("case", (truth, made), made.type)
        yield Call("case", (truth, Literal(None, made.type), made), made.type)
        yield Call("coalesce", (Call("case", (truth, made), made.type), made), made.type)
        is_null = Call("is_null", (made,), Type.BOOLEAN)
        yield Call("and", (truth, is_null), Type.BOOLEAN)
        yield Call("or", (is_null, truth), Type.BOOLEAN)
