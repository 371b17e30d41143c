"""Whether a selection lets only rows through that another one lets through too.

Decided of conjunctions of columns compared with constants: ranges, equality, IN lists, IS NOT NULL
and LIKE. What is not understood follows only from itself. A row passes if the predicate is *true*,
so of every test that has passed it is known that the value is there.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from millpond.cql.expressions import Call, Column, Expression, Literal, Value, walk
from millpond.cql.failing import can_fail
from millpond.planning.predicates import FLIPPED, conjuncts
from millpond.schema import Type

_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WHOLE = (Type.INT, Type.BIGINT)


@dataclass(frozen=True)
class Comparison:
    """A column compared with constants that are there: true of no NULL."""

    column: int
    comparison: str
    """One of < <= > >=, ``in``, ``not in``, ``like`` and ``known``."""
    values: tuple[Any, ...] = ()

    def holds(self, value: Any) -> bool:
        """Whether it is true of a value."""
        match self.comparison:
            case "in":
                return value in self.values
            case "not in":
                return value not in self.values
            case "like":
                return re.fullmatch(_expression(self.values[0]), value, re.DOTALL) is not None
            case "known":
                return True
            case _:
                return _HOLDS[self.comparison](value, self.values[0])


def never_fails(predicate: Expression) -> bool:
    """Whether it has a truth value on any row."""
    return not any(isinstance(part, Call) and can_fail(part) for part in walk(predicate))


def implies(predicate: Expression, other: Expression) -> bool:
    """Whether the other one is known to be true of all rows of which a predicate is.

    >>> v = Column(0, Type.INT, "v")
    >>> over = lambda limit: Call(">", (v, Literal(limit, Type.INT)), Type.BOOLEAN)
    >>> implies(over(9), over(5)), implies(over(5), over(9))
    (True, False)
    """
    parts = conjuncts(predicate)
    tests: dict[int, list[Comparison]] = {}
    for part in parts:
        test = _test(part)
        if test is not None:
            tests.setdefault(test.column, []).append(test)
    return _is_implied(other, frozenset(parts), tests)


def _is_implied(
    other: Expression, parts: frozenset[Expression], tests: dict[int, list[Comparison]]
) -> bool:
    if other in parts:
        return True
    if isinstance(other, Call) and other.function in ("and", "or"):
        enough = all if other.function == "and" else any
        return enough(_is_implied(each, parts, tests) for each in other.arguments)
    wanted = _test(other)
    return wanted is not None and _follows(wanted, tests.get(wanted.column, []))


def _test(part: Expression) -> Comparison | None:
    """What a part of a conjunction tests, if that is understood."""
    if not isinstance(part, Call) or not part.arguments:
        return None
    first, *rest = part.arguments
    if part.function in FLIPPED:
        if isinstance(first, Literal):
            return _comparison(rest[0], FLIPPED[part.function], first)
        return _comparison(first, part.function, rest[0])
    if part.function == "in":
        return _member(first, "in", rest)
    if part.function == "like" and len(rest) == 1:
        return _pattern(first, rest[0])
    if part.function == "not" and isinstance(first, Call):
        if first.function == "in" and all(_value(each) is not None for each in first.arguments[1:]):
            return _member(first.arguments[0], "not in", first.arguments[1:])
        if first.function == "is_null" and isinstance(first.arguments[0], Column):
            return Comparison(first.arguments[0].position, "known")
    return None


def _comparison(column: Expression, comparison: str, constant: Expression) -> Comparison | None:
    if comparison in ("=", "<>"):
        kind = "in" if comparison == "=" else "not in"
        return None if _value(constant) is None else _member(column, kind, [constant])
    if not isinstance(column, Column) or not _are_alike(column, constant):
        return None
    value: Any = _value(constant)
    if value is None:
        return None
    if column.type in _WHOLE and comparison in ("<", ">"):  # so that > 4 is >= 5
        return Comparison(
            column.position, comparison + "=", (value + (1 if comparison == ">" else -1),)
        )
    return Comparison(column.position, comparison, (value,))


def _member(column: Expression, kind: str, members: Iterable[Expression]) -> Comparison | None:
    """A NULL in a list equals nothing."""
    listed = [each for each in members if not (isinstance(each, Literal) and each.value is None)]
    if not isinstance(column, Column) or not all(_are_alike(column, each) for each in listed):
        return None
    values = tuple(map(_value, listed))
    return None if None in values else Comparison(column.position, kind, values)


def _pattern(column: Expression, pattern: Expression) -> Comparison | None:
    text = _value(pattern)
    if not isinstance(column, Column) or not isinstance(text, str) or "\\" in text:
        return None
    return Comparison(column.position, "like", (text,))


def _are_alike(column: Column, constant: Expression) -> bool:
    both = {column.type, constant.type}
    return isinstance(constant, Literal) and (len(both) == 1 or both == set(_WHOLE))


def _value(constant: Expression) -> Value:
    """The value of a constant; None also for numbers that have no place in the order."""
    value = constant.value if isinstance(constant, Literal) else None
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _follows(wanted: Comparison, known: list[Comparison]) -> bool:
    """Whether a test is true of all values that have passed others of the same column."""
    if not known:
        return False
    lists = [test.values for test in known if test.comparison == "in"]
    if lists:
        left = [value for value in lists[0] if all(test.holds(value) for test in known)]
        return all(map(wanted.holds, left))
    match wanted.comparison:
        case "known":
            return True
        case "in":
            return False
        case "not in":
            return all(any(not test.holds(value) for test in known) for value in wanted.values)
        case "like":
            return _begins_like(wanted.values[0], known)
        case _:
            return any(_is_within(test, wanted) for test in known)


def _is_within(test: Comparison, wanted: Comparison) -> bool:
    """Whether what lies on one side of a limit lies on the same side of another one."""
    if test.comparison == "like":  # no text is below its own beginning
        return wanted.comparison in (">", ">=") and wanted.holds(_beginning(test.values[0]))
    if test.comparison[0] != wanted.comparison[0]:
        return False
    limit = test.values[0]
    is_outside = test.comparison in ("<", ">") and limit == wanted.values[0]
    return is_outside or wanted.holds(limit)


def _begins_like(pattern: str, known: list[Comparison]) -> bool:
    """Whether a pattern that only says how texts begin is true of all that match others."""
    beginning = _beginning(pattern)
    if pattern != beginning + "%":
        return False
    patterns = (test.values[0] for test in known if test.comparison == "like")
    return any(_beginning(each).startswith(beginning) for each in patterns)


def _beginning(pattern: str) -> str:
    """What stands before the first wildcard."""
    return re.split("[%_]", pattern, maxsplit=1)[0]


def _expression(pattern: str) -> str:
    signs = {"%": ".*", "_": "."}
    return "".join(signs.get(each) or re.escape(each) for each in pattern)
