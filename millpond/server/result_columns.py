"""The columns of a query's results, and which of them tell its rows apart."""

from typing import Any

from millpond.catalog import QueryEntry
from millpond.cql.algebra import Aggregate, Project
from millpond.cql.expressions import Column
from millpond.cql.node import Node


def result_columns(entry: QueryEntry) -> list[dict[str, Any]]:
    """Name and type of each column, and whether it is a key of the groups that rows tell of."""
    keys = group_keys(entry.plan)
    return [
        {"name": each.name, "type": str(each.type), "key": place in keys}
        for place, each in enumerate(entry.plan.schema.fields)
    ]


def group_keys(plan: Node) -> set[int]:
    """The places of the columns that are keys of the aggregate a plan ends with, if it does."""
    places: list[int | None] = list(range(len(plan.schema.fields)))
    node = plan
    while not isinstance(node, Aggregate):
        if isinstance(node, Project):
            places = [None if at is None else _source(node, at) for at in places]
        elif len(node.inputs) != 1 or len(node.inputs[0].schema.fields) != len(node.schema.fields):
            return set()
        (node,) = node.inputs
    return {number for number, at in enumerate(places) if at is not None and at < len(node.keys)}


def _source(node: Project, at: int) -> int | None:
    """The column of its input that a projection passes on in a place."""
    expression = node.expressions[at]
    return expression.position if isinstance(expression, Column) else None
