"""Ranks that are asked for up to a number only need not be found further.

A selection stays where it is: it may ask for more than the limit says.
"""

from dataclasses import replace

from millpond.cql.algebra import Filter, Rank
from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.cql.node import Node
from millpond.planning.predicates import FLIPPED, bottom_up, conjuncts


@bottom_up
def limit_ranks(node: Node) -> Node:
    """The plan with a limit of the ranks of which a selection right above keeps the first."""
    if not isinstance(node, Filter) or not isinstance(node.input, Rank):
        return node
    rank = len(node.input.schema) - 1
    limits = [_limit(part, rank) for part in conjuncts(node.predicate)]
    known = [limit for limit in (*limits, node.input.limit) if limit is not None]
    if not known:
        return node
    return replace(node, input=replace(node.input, limit=max(min(known), 0)))


def _limit(part: Expression, rank: int) -> int | None:
    """The largest rank for which a part of a condition can hold, if it says one."""
    if not isinstance(part, Call) or part.function not in ("=", "<", "<=", ">", ">="):
        return None
    left, right = map(_uncast, part.arguments)
    function = part.function
    if isinstance(left, Literal):
        left, right, function = right, left, FLIPPED[function]
    is_rank = isinstance(left, Column) and left.position == rank
    is_whole = isinstance(right, Literal) and isinstance(right.value, int)
    if not is_rank or not is_whole or function in (">", ">="):
        return None
    return int(right.value) - (function == "<")  # type: ignore[union-attr, arg-type]


def _uncast(expression: Expression) -> Expression:
    """What is cast; whole numbers are the same whatever their width."""
    is_cast = isinstance(expression, Call) and expression.function == "cast"
    return expression.arguments[0] if is_cast else expression  # type: ignore[union-attr]
