"""The keys of a join: equalities between the two sides, taken out of its condition."""

from dataclasses import dataclass

from millpond.cql.expressions import Call, Expression
from millpond.cql.failing import can_fail
from millpond.planning.predicates import columns_used, conjuncts, remap


@dataclass(frozen=True)
class JoinKeys:
    """For each key an expression over either side's own columns, and what is left to check."""

    left: tuple[Expression, ...]
    right: tuple[Expression, ...]
    rest: tuple[Expression, ...]


def join_keys(condition: Expression | None, width: int) -> JoinKeys:
    """Takes a condition over both sides' columns apart; the left side has ``width`` of them."""
    left, right, rest = [], [], []
    for part in conjuncts(condition):
        sides = _sides(part, width)
        if sides is None:
            rest.append(part)
        else:
            left.append(sides[0])
            right.append(sides[1])
    return JoinKeys(tuple(left), tuple(right), tuple(rest))


def _sides(part: Expression, width: int) -> tuple[Expression, Expression] | None:
    """The two sides of an equality between them, each over its own columns."""
    if not isinstance(part, Call) or part.function != "=" or can_fail(part):
        return None
    one, other = part.arguments
    if one.type is not other.type:
        return None
    if _is_left(other, width) and _is_right(one, width):
        one, other = other, one
    if not (_is_left(one, width) and _is_right(other, width)):
        return None
    own = {position: position - width for position in columns_used(other)}
    return one, remap(other, own)


def _is_left(expression: Expression, width: int) -> bool:
    used = columns_used(expression)
    return bool(used) and max(used) < width


def _is_right(expression: Expression, width: int) -> bool:
    used = columns_used(expression)
    return bool(used) and min(used) >= width
