"""Computes what needs no data: boolean identities and arithmetic of whole numbers."""

import operator
from collections.abc import Callable
from dataclasses import replace

from millpond.cql.algebra import Aggregate, Filter, Join, Project, TimeFilter
from millpond.cql.expressions import Call, Expression, Literal
from millpond.cql.node import Node
from millpond.planning.predicates import bottom_up, rewrite, rewrite_aggregate
from millpond.schema import Type

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}
_COMPARISON: dict[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@bottom_up
def fold_constants(node: Node) -> Node:
    """The plan with constant parts of its expressions computed."""
    match node:
        case Filter():
            predicate = fold(node.predicate)
            is_true = isinstance(predicate, Literal) and predicate.value is True
            return node.input if is_true else replace(node, predicate=predicate)
        case Project():
            return replace(node, expressions=tuple(map(fold, node.expressions)))
        case TimeFilter():
            return replace(node, until=fold(node.until))
        case Join() if node.condition is not None:
            return replace(node, condition=fold(node.condition))
        case Aggregate():
            aggregates = tuple(rewrite_aggregate(a, fold) for a in node.aggregates)
            return replace(node, keys=tuple(map(fold, node.keys)), aggregates=aggregates)
        case _:
            return node


def fold(expression: Expression) -> Expression:
    """The expression with its constant parts computed.

    >>> one = Literal(1, Type.BIGINT)
    >>> str(fold(Call("+", (one, one), Type.BIGINT)))
    '2'
    """
    return rewrite(expression, _fold)


def _fold(expression: Expression) -> Expression:
    if not isinstance(expression, Call):
        return expression
    match expression.function:
        case "and":
            return _fold_logic(expression, absorbing=False)
        case "or":
            return _fold_logic(expression, absorbing=True)
        case "not":
            (argument,) = expression.arguments
            if isinstance(argument, Literal) and argument.value is not None:
                return Literal(not argument.value, Type.BOOLEAN)
            return expression
        case "attempt" if isinstance(expression.arguments[0], Literal):
            return expression.arguments[0]
        case "succeeds" if isinstance(expression.arguments[0], Literal):
            return Literal(True, Type.BOOLEAN)
        case _:
            return _fold_numbers(expression)


def _fold_logic(call: Call, absorbing: bool) -> Expression:
    """AND is absorbed by false and passes true; OR the other way round."""
    rest = []
    for argument in call.arguments:
        value = argument.value if isinstance(argument, Literal) else None
        if value is absorbing:
            return Literal(absorbing, Type.BOOLEAN)
        if value is not (not absorbing):
            rest.append(argument)
    if not rest:
        return Literal(not absorbing, Type.BOOLEAN)
    return rest[0] if len(rest) == 1 else replace(call, arguments=tuple(rest))


def _fold_numbers(call: Call) -> Expression:
    if len(call.arguments) != 2 or not all(isinstance(a, Literal) for a in call.arguments):
        return call
    left, right = (a.value for a in call.arguments if isinstance(a, Literal))
    if type(left) is not int or type(right) is not int:
        return call
    if call.function in _COMPARISON:
        return Literal(_COMPARISON[call.function](left, right), Type.BOOLEAN)
    if call.function in _ARITHMETIC and call.type is Type.BIGINT:
        value = _ARITHMETIC[call.function](left, right)
        return Literal(value, Type.BIGINT) if abs(value) < 2**63 else call
    return call
