"""Random nested expressions of all functions, over the columns of nasty values."""

from __future__ import annotations

import random
from collections.abc import Callable

from millpond.cql import functions
from millpond.cql.coercion import cast, explicit_cast
from millpond.cql.expressions import Call, Expression, Literal
from millpond.cql.functions import FUNCTIONS, TRUNCATIONS, Function, Kind
from millpond.cql.text.places import StatementError
from millpond.schema import Type
from tests.kernels.expressions import nasty

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "is_not_distinct")
LITERALS: dict[Type, tuple[object, ...]] = {
    Type.BOOLEAN: (True, False, None),
    Type.INT: (0, 1, 2, -1, 7, None),
    Type.BIGINT: (0, 1, -3, 10, 2**62, None),
    Type.DOUBLE: (0.0, -0.0, 0.5, -2.5, 1e9, None),
    Type.STRING: ("", "a", "ab%", "ä", "42", None),
    Type.BINARY: (b"", b"a", b"\xff\x00", None),
}


class Drawing:
    """Draws expressions; all choices come from one ``random.Random``."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def expression(self, type_: Type, depth: int) -> Expression:
        """An expression of a type."""
        if depth == 0 or self.random.random() < 0.15:
            return self.leaf(type_)
        ways = [self.of_function, self.of_function, self.conditional, self.converted]
        if type_ is Type.BOOLEAN:
            ways += [self.truth, self.truth]
        if type_ in (Type.BIGINT, Type.DOUBLE):
            ways += [self.number]
        if type_ in nasty.ARRAYS:
            ways += [self.array] * 3
        if type_ in (nasty.PAIR, nasty.TOTALS):
            ways += [self.made] * 3
        if type_ in (Type.INT, Type.STRING, Type.BIGINT):
            ways += [self.part]
        if Type.array(type_) in nasty.ARRAYS:
            ways += [self.element]
        return self.random.choice(ways)(type_, depth - 1)

    def leaf(self, type_: Type) -> Expression:
        if type_ in LITERALS and self.random.random() < 0.25:
            return Literal(self.random.choice(LITERALS[type_]), type_)  # type: ignore[arg-type]
        return nasty.column(type_, self.random.randrange(nasty.COLUMNS_OF_A_TYPE))

    def of_function(self, type_: Type, depth: int) -> Expression:
        fitting = [f for f in FUNCTIONS.values() if _gives(f, type_)]
        if not fitting:
            return self.leaf(type_)
        function = self.random.choice(fitting)
        least = len(function.parameters) - function.optional
        count = self.random.randint(least, len(function.parameters) + 2 * function.variadic)
        arguments = [self.argument(function, i, type_, depth) for i in range(count)]
        return cast(functions.call(function.name, arguments, [None] * count), type_)

    def argument(self, function: Function, position: int, type_: Type, depth: int) -> Expression:
        kind = function.parameter(position)
        if kind is Kind.DIGITS:
            return Literal(self.random.randint(-3, 5), Type.INT)
        if kind is Kind.UNIT:
            return Literal(self.random.choice(TRUNCATIONS), Type.STRING)
        if kind is Kind.PATH:
            return Literal(self.random.choice(("$", "$.a")), Type.STRING)
        if kind is Kind.GROUP:
            return Literal(self.random.randint(0, 1), Type.INT)
        if kind in (Kind.PATTERN, Kind.TEXT):
            texts = nasty.PATTERNS if kind is Kind.PATTERN else ("", r"\1!")
            return Literal(self.random.choice(texts), Type.STRING)
        if function.name in ("lpad", "rpad") and position == 1:
            return Literal(self.random.randint(-1, 12), Type.INT)
        if kind in (Kind.MAP, Kind.MANY):
            return self.expression(nasty.TOTALS, depth)
        if kind in (Kind.ARRAY, Kind.ELEMENT):
            return self.expression(nasty.NUMBERS if kind is Kind.ARRAY else Type.INT, depth)
        if kind is Kind.VALUE:
            return self.expression(type_, depth)
        if kind is Kind.BYTES:
            return self.expression(type_ if type_ is Type.BINARY else Type.STRING, depth)
        if kind is Kind.NUMBER:
            number = type_ if type_ in (Type.BIGINT, Type.DOUBLE) else Type.DOUBLE
            return self.expression(number, depth)
        if kind is Kind.MOMENT:
            return self.expression(self.random.choice((Type.DATE, Type.TIMESTAMP)), depth)
        assert isinstance(kind, Type)
        return self.expression(kind, depth)

    def conditional(self, type_: Type, depth: int) -> Expression:
        parts = [self.expression(Type.BOOLEAN, depth), self.expression(type_, depth)]
        if self.random.random() < 0.5:
            parts += [self.expression(Type.BOOLEAN, depth), self.expression(type_, depth)]
        if self.random.random() < 0.7:
            parts.append(self.expression(type_, depth))
        return Call("case", tuple(parts), type_)

    def converted(self, type_: Type, depth: int) -> Expression:
        source = self.random.choice(nasty.TYPES)
        try:
            return explicit_cast(self.expression(source, depth), type_, None)
        except StatementError:
            return self.leaf(type_)

    def array(self, type_: Type, depth: int) -> Expression:
        count = self.random.randint(1, 3)
        parts = [self.expression(type_.element, depth) for _ in range(count)]
        return Call("array", tuple(parts), type_)

    def made(self, type_: Type, depth: int) -> Expression:
        """A STRUCT or MAP of its parts."""
        types = [each.type for each in type_.fields] or [type_.key, type_.element] * 2
        parts = [self.expression(each, depth) for each in types]
        return Call(type_.family.value.lower(), tuple(parts), type_)

    def part(self, type_: Type, depth: int) -> Expression:
        """A field of a STRUCT, or the value of a key."""
        if type_ is Type.BIGINT:
            key = self.expression(Type.STRING, depth)
            return Call("[]", (self.expression(nasty.TOTALS, depth), key), type_)
        name = Literal("a" if type_ is Type.INT else "b", Type.STRING)
        return Call("field", (self.expression(nasty.PAIR, depth), name), type_)

    def element(self, type_: Type, depth: int) -> Expression:
        array = self.expression(Type.array(type_), depth)
        return Call("[]", (array, self.expression(Type.INT, depth)), type_)

    def number(self, type_: Type, depth: int) -> Expression:
        symbols = ["+", "-", "*", "%"] + ["/"] * (type_ is Type.DOUBLE)
        left, right = self.expression(type_, depth), self.expression(type_, depth)
        if self.random.random() < 0.1:
            return Call("neg", (left,), type_)
        return Call(self.random.choice(symbols), (left, right), type_)

    def truth(self, type_: Type, depth: int) -> Expression:
        draw: Callable[[], Expression] = lambda: self.expression(Type.BOOLEAN, depth)  # noqa: E731
        kind = self.random.choice(
            ("logic", "logic", "compare", "compare", "not", "null", "in", "like")
        )
        if kind == "logic":
            count = self.random.randint(2, 3)
            symbol = self.random.choice(("and", "or"))
            return Call(symbol, tuple(draw() for _ in range(count)), type_)
        if kind == "not":
            return Call("not", (draw(),), type_)
        if kind == "like":
            pattern = self.random.choice(("", "%", "a%", "%b_", "_", "%ä%", "X"))
            texts = self.expression(Type.STRING, depth), Literal(pattern, Type.STRING)
            return Call("like", texts, type_)
        of = self.random.choice(nasty.TYPES)
        if kind == "null":
            return Call("is_null", (self.expression(of, depth),), type_)
        if kind == "in":
            return Call("in", tuple(self.expression(of, depth) for _ in range(3)), type_)
        sides = (self.expression(of, depth), self.expression(of, depth))
        return Call(self.random.choice(COMPARISONS), sides, type_)


def _gives(function: Function, type_: Type) -> bool:
    if function.result is not None:
        return function.result is type_
    if Kind.MAP in function.parameters:
        return type_ is nasty.WORDS and function.name == "map_keys"
    if Kind.NUMBER in function.parameters:
        return type_ in (Type.BIGINT, Type.DOUBLE)
    return True
