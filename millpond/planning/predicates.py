"""Taking expressions apart and putting them together: conjuncts, columns used, renumbering."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    children,
    walk,
    with_children,
)
from millpond.cql.node import Node
from millpond.schema import Type


def conjuncts(predicate: Expression | None) -> list[Expression]:
    """The parts of a conjunction, flattened; none for None."""
    if predicate is None:
        return []
    if isinstance(predicate, Call) and predicate.function == "and":
        return [part for argument in predicate.arguments for part in conjuncts(argument)]
    return [predicate]


FEW = 16
"""So many parts of a conjunction are nested in one another; more are put into a tree."""


def conjoin(parts: Iterable[Expression]) -> Expression | None:
    """The conjunction of the parts, or None if there are none; never deeper than it must be."""
    listed = list(parts)
    if len(listed) > FEW:
        middle = len(listed) // 2
        listed = [part for half in (listed[:middle], listed[middle:]) if (part := conjoin(half))]
    result: Expression | None = None
    for part in listed:
        result = part if result is None else Call("and", (result, part), Type.BOOLEAN)
    return result


def rewrite(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Applies ``change`` to every subexpression, innermost first."""
    below = children(expression)
    if below:
        expression = with_children(expression, tuple(rewrite(child, change) for child in below))
    return change(expression)


def columns_used(expression: Expression | None) -> set[int]:
    """The positions of the input columns an expression reads."""
    if expression is None:
        return set()
    return {part.position for part in walk(expression) if isinstance(part, Column)}


def remap(expression: Expression, positions: Mapping[int, int]) -> Expression:
    """The expression with each column moved to its new position."""

    def change(part: Expression) -> Expression:
        if isinstance(part, Column):
            return replace(part, position=positions[part.position])
        return part

    return rewrite(expression, change)


def shift(expression: Expression, by: int) -> Expression:
    """The expression with every column moved ``by`` positions to the right."""
    return remap(expression, {position: position + by for position in columns_used(expression)})


def substitute(expression: Expression, by: tuple[Expression, ...]) -> Expression:
    """The expression with each column replaced by the expression that computes it."""
    return rewrite(expression, lambda part: by[part.position] if isinstance(part, Column) else part)


def rewrite_aggregate(
    aggregate: AggregateCall, change: Callable[[Expression], Expression]
) -> AggregateCall:
    """The aggregate over a changed argument."""
    if aggregate.argument is None:
        return aggregate
    return replace(aggregate, argument=change(aggregate.argument))


def all_columns(node: Node) -> tuple[Column, ...]:
    """One column reference for each field of a node's result."""
    return tuple(
        Column(position, field.type, field.name)
        for position, field in enumerate(node.schema.fields)
    )


def rewrite_bottom_up(node: Node, change: Callable[[Node], Node]) -> Node:
    """Applies ``change`` to every node, inputs first."""
    inputs = tuple(rewrite_bottom_up(child, change) for child in node.inputs)
    return change(node.with_inputs(inputs) if inputs != node.inputs else node)
