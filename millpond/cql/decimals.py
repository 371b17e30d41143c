"""Which DECIMALs come of which: the rules of Spark, so that types are those known from there.

A result whose digits would be more than 38 keeps those before the point, and of those behind it as
many as there is room for, but six at least if it had them.
"""

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context, Decimal

from millpond.schema import MOST_DIGITS, Type

_LEAST_SCALE = 6
_EXACT = Context(prec=1000, rounding=ROUND_HALF_UP)
_WHOLE = {Type.INT: (10, 0), Type.BIGINT: (20, 0)}

Digits = tuple[int, int]
"""How many digits a number has, and how many of them behind the point."""


def digits_of(type_: Type) -> Digits:
    """The digits that hold all numbers of a DECIMAL, INT or BIGINT."""
    return _WHOLE.get(type_, (type_.precision, type_.scale))


def bounded(digits: Digits) -> Type:
    """The DECIMAL for so many digits, with fewer behind the point if they are too many.

    >>> str(bounded((12, 2))), str(bounded((60, 20))), str(bounded((45, 4)))
    ('DECIMAL(12, 2)', 'DECIMAL(38, 6)', 'DECIMAL(38, 4)')
    """
    precision, scale = digits
    if precision <= MOST_DIGITS:
        return Type.decimal(precision, scale)
    left = max(MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
    return Type.decimal(MOST_DIGITS, left)


def exact_digits(symbol: str, left: Type, right: Type) -> Digits:
    """The digits of a sum, difference, product or remainder; and those a quotient is given."""
    (p1, s1), (p2, s2) = digits_of(left), digits_of(right)
    match symbol:
        case "*":
            return p1 + p2 + 1, s1 + s2
        case "/":
            scale = max(_LEAST_SCALE, s1 + p2 + 1)
            return p1 - s1 + s2 + scale, scale
        case "%":
            return min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2)
    return max(p1 - s1, p2 - s2) + max(s1, s2) + 1, max(s1, s2)


def result(symbol: str, left: Type, right: Type) -> Type:
    """The type of + - * / and %."""
    return bounded(exact_digits(symbol, left, right))


def widest(types: Iterable[Type]) -> Type | None:
    """The DECIMAL that holds all numbers of some types; None if none does."""
    digits = [digits_of(type_) for type_ in types]
    scale = max(scale for _, scale in digits)
    precision = max(precision - scale for precision, scale in digits) + scale
    return Type.decimal(precision, scale) if precision <= MOST_DIGITS else None


def holds(to: Type, source: Type) -> bool:
    """Whether a cast from or to a DECIMAL has a value for each value: of a text it may be NULL."""
    if to in (Type.DOUBLE, Type.STRING) or source is Type.STRING:
        return True
    if to in _LARGEST or source is Type.DOUBLE:
        return source.precision - source.scale <= _LARGEST.get(to, -1)
    precision, scale = digits_of(source)
    return to.precision - to.scale >= precision - scale + (to.scale < scale)


_LARGEST = {Type.INT: 9, Type.BIGINT: 18}
"""All numbers of so many digits are such."""


def total(type_: Type) -> Type:
    """The type of a sum."""
    return Type.decimal(min(type_.precision + 10, MOST_DIGITS), type_.scale)


def mean(type_: Type) -> Type:
    """The type of an average: four digits more behind the point, where there is room."""
    return bounded((type_.precision + 4, type_.scale + 4))


def whole(type_: Type) -> Type:
    """The type of what is rounded up or down to a whole number."""
    return Type.decimal(min(type_.precision - type_.scale + 1, MOST_DIGITS), 0)


def rounded(type_: Type, digits: int) -> Type:
    """The type of what is rounded to so many digits behind the point, or before it."""
    before, scale = type_.precision - type_.scale + 1, min(max(digits, 0), type_.scale)
    return Type.decimal(min(max(before, -digits + 1) + scale, MOST_DIGITS), scale)


def of_number(value: int | float | Decimal) -> Decimal | None:
    """A number as it is written, with no more digits than it has; None if a DECIMAL has fewer.

    >>> of_number(0.1), of_number(250), of_number(1e22), of_number(float("inf"))
    (Decimal('0.1'), Decimal('250'), Decimal('10000000000000000000000'), None)
    """
    made = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not made.is_finite():
        return None
    exponent = int(made.as_tuple().exponent)
    if exponent < -MOST_DIGITS or made.adjusted() >= MOST_DIGITS:
        return None
    made = made.quantize(Decimal(1), context=_EXACT) if exponent > 0 else made
    return made if type_of(made) is not None else None


def type_of(value: Decimal) -> Type | None:
    """The DECIMAL with just the digits that a value is written with."""
    _, figures, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(figures) + max(int(exponent), 0), scale, 1)
    return Type.decimal(precision, scale) if precision <= MOST_DIGITS else None


def units(value: int | float | Decimal, to: Type) -> int | None:
    """A number in the smallest units of a type, rounded half away from zero; None if there is none.

    >>> units(0.285, Type.decimal(5, 2)), units(1000, Type.decimal(5, 2))
    (29, None)
    """
    made = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not made.is_finite() or (made and made.adjusted() > to.precision - to.scale):
        return None
    made = made.quantize(Decimal(1).scaleb(-to.scale), context=_EXACT)
    found = int(made.scaleb(to.scale, context=_EXACT))
    return found if abs(found) < 10**to.precision else None


def fitted(value: int | float | Decimal, to: Type) -> Decimal | None:
    """A number with the digits of a type, rounded half away from zero; None if it is too large."""
    found = units(value, to)
    return None if found is None else Decimal(found).scaleb(-to.scale, context=_EXACT)
