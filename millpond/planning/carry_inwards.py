"""Brings the columns of a query to the subqueries of its subqueries that name them.

Such a subquery is joined with the different values that its own enclosing query has in these
columns. They are columns of that query then, and what is further in names them as such.
"""

from dataclasses import replace

from millpond.cql.algebra import Distinct, Filter, Join, LateralJoin, Project
from millpond.cql.expressions import Call, Column, Expression, OuterColumn
from millpond.cql.node import Node, inputs_first
from millpond.cql.outer_columns import map_outer, names_from_within, outer_columns
from millpond.planning.predicates import all_columns, conjoin, conjuncts
from millpond.schema import Type


def carried_inwards(subquery: Node, around: Node) -> Node:
    """The subquery, in which no subquery names a column of ``around``, which encloses it."""
    new: dict[int, Node] = {}
    for node in inputs_first(subquery):
        inputs = tuple(new[id(below)] for below in node.inputs)
        if isinstance(node, LateralJoin):  # its right side names columns of its left one
            inputs = (inputs[0], node.right)
        over = node.with_inputs(inputs)
        if isinstance(over, Filter) and names_from_within(over.predicate):
            over = _carried(over, around)
        new[id(node)] = over
    return new[id(subquery)]


def _carried(node: Filter, around: Node) -> Node:
    """A selection over rows that have the values of the columns around them, too."""
    parts, width = conjuncts(node.predicate), len(node.schema)
    named = {c.position: c for part in parts for c in outer_columns(part) if c.level == 1}
    positions = sorted(named)
    columns = tuple(all_columns(around)[position] for position in positions)
    names = tuple(f"carried{number}" for number in range(len(columns)))
    values = Distinct(Project(around, columns, names))
    joined = Join(node.input, values, "inner", None)
    at = {position: width + number for number, position in enumerate(positions)}
    own = [_as_own(part, at) for part in parts]
    keys = (_key(all_columns(joined)[at[each]], named[each]) for each in positions)
    predicate = conjoin([*own, *keys]) or node.predicate
    selected = Filter(joined, predicate, node.written)
    return Project(selected, all_columns(node), node.schema.names)


def _key(column: Column, outer: OuterColumn) -> Expression:
    return Call("is_not_distinct", (column, outer), Type.BOOLEAN)


def _as_own(part: Expression, at: dict[int, int]) -> Expression:
    """A condition in which the columns around are columns of its own rows, also further in."""

    def own(column: OuterColumn) -> Expression:
        position = at[column.position]
        if column.level == 1:
            return Column(position, column.type, column.name)
        return replace(column, level=column.level - 1, position=position)

    return map_outer(part, own)
