"""Queries that have one row at most, so that they can be used as a value."""

from collections.abc import Callable, Iterator

from millpond.cql.algebra import (
    ONE_ROW,
    Aggregate,
    Distinct,
    Filter,
    Project,
    Rank,
    RelationScan,
    RowsWindow,
)
from millpond.cql.expressions import Call, Column, Expression, walk
from millpond.cql.node import Node
from millpond.schema import Type

KeyOf = Callable[[str], tuple[int, ...]]
"""The positions of a relation's key, which no two rows share; none if it has none."""


def is_aggregation(plan: Node) -> bool:
    """Whether a query is an aggregation without keys, maybe with a HAVING."""
    while isinstance(plan, (Project, Distinct, Filter)):
        plan = plan.input
    return isinstance(plan, Aggregate) and not plan.keys


def has_one_row(plan: Node, key_of: KeyOf) -> bool:
    """Whether a query never has more than one row."""
    equal: set[int] = set()
    while isinstance(plan, (Project, Distinct, Filter)):
        if isinstance(plan, Project):
            equal = set()
        if isinstance(plan, Filter):
            equal |= set(_fixed(plan.predicate))
        plan = plan.input
    match plan:
        case Aggregate():
            return not plan.keys
        case Rank():
            is_first = plan.limit is not None and plan.limit <= 1
            return is_first and plan.function == "row_number" and not plan.partition
        case RowsWindow():
            return plan.rows == 1 and not plan.partition
        case RelationScan():
            key = key_of(plan.name)
            return plan.name == ONE_ROW.name or (bool(key) and set(key) <= equal)
    return False


def _fixed(predicate: Expression) -> Iterator[int]:
    """The columns that a condition says are equal to something that is no column."""
    if not isinstance(predicate, Call):
        return
    if predicate.function == "and":
        for part in predicate.arguments:
            yield from _fixed(part)
    if predicate.function == "=":
        left, right = predicate.arguments
        for one, other in ((left, right), (right, left)):
            if not any(isinstance(part, Column) for part in walk(other)):
                yield from _column(one)


def _column(expression: Expression) -> Iterator[int]:
    """The column that an expression is, perhaps widened."""
    if isinstance(expression, Call) and expression.function == "cast":
        (inner,) = expression.arguments
        if inner.type is Type.INT and expression.type.is_number:
            expression = inner
    if isinstance(expression, Column):
        yield expression.position
