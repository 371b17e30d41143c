"""Taking expressions apart and putting them together: conjuncts, columns used, renumbering."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import wraps

from millpond.cql.algebra import Aggregate, Filter, Join, Project, TimeFilter
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    children,
    walk,
    with_children,
)
from millpond.cql.node import Node, inputs_first
from millpond.schema import Type

FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What comparisons become when their operands change places."""


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
    """The aggregate over changed arguments."""
    if aggregate.argument is None:
        return aggregate
    more = tuple(map(change, aggregate.more))
    return replace(aggregate, argument=change(aggregate.argument), more=more)


def all_columns(node: Node) -> tuple[Column, ...]:
    """One column reference for each field of a node's result."""
    return tuple(
        Column(position, field.type, field.name)
        for position, field in enumerate(node.schema.fields)
    )


def expressions_of(node: Node) -> Iterator[Expression]:
    """The expressions that stand in a node."""
    match node:
        case Filter():
            yield node.predicate
        case TimeFilter():
            yield node.until
        case Project():
            yield from node.expressions
        case Join() if node.condition is not None:
            yield node.condition
        case Aggregate():
            yield from node.keys
            yield from (argument for a in node.aggregates for argument in a.arguments)


def bottom_up(change: Callable[[Node], Node]) -> Callable[[Node], Node]:
    """The rewrite of a plan that applies ``change`` to every node, inputs first, each once.

    What it gives is kept with the node, so it must depend on nothing but the node: a view that many
    queries read is rewritten once.
    """
    key = f"rewritten by {change.__module__}.{change.__qualname__}"

    @wraps(change)
    def rewritten(plan: Node) -> Node:
        for node in inputs_first(plan, lambda one: key in one.__dict__, into=True):
            inputs = tuple(below.__dict__[key] for below in node.inputs)
            node.__dict__[key] = change(node.with_inputs(inputs))
        result: Node = plan.__dict__[key]
        return result

    return rewritten


def size(expression: Expression | None) -> int:
    """How many parts an expression has."""
    return 0 if expression is None else sum(1 for _ in walk(expression))


def size_after(expression: Expression, sizes: Sequence[int]) -> int:
    """How many parts it would have with each column replaced by an expression of a size."""
    return sum(sizes[e.position] if isinstance(e, Column) else 1 for e in walk(expression))
