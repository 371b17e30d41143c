"""EMIT FINAL of sessions reads each when it is over, and not its ends before that.

The rows that leave when their session ends are those that are made of sessions that end then, if
all that lies between says by which session a row is: its end is a column of every row, and a key of
every group. Rows of different instants differ in it, so whatever enters is news.
"""

from dataclasses import replace

from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Dstream,
    Filter,
    Project,
    SessionWindow,
    WithTime,
)
from millpond.cql.expressions import Call, Column, Expression
from millpond.cql.node import Node
from millpond.planning.nodes import Arrivals
from millpond.planning.predicates import bottom_up


@bottom_up
def wait_for_sessions(node: Node) -> Node:
    """The plan with what leaves sessions at their ends replaced by what these have in the end."""
    match node:
        case Filter(predicate=predicate, input=WithTime(input=Dstream(input=relation)) as leaving):
            if not _compares_last(predicate, len(relation.schema)):
                return node
            ended = _at_ends(relation, len(relation.schema) - 1)
            return node if ended is None else replace(leaving, input=Arrivals(ended))
    return node


def _compares_last(predicate: Expression, width: int) -> bool:
    """Whether it asks that the last column of a relation be the time, which follows it."""
    if not isinstance(predicate, Call) or predicate.function != "=":
        return False
    positions = [each.position for each in predicate.arguments if isinstance(each, Column)]
    return positions == [width - 1, width]


def _at_ends(plan: Node, end: int) -> Node | None:
    """The relation of the sessions that end at an instant; None if a column is not their end."""
    nodes: list[Node] = []
    while not isinstance(plan, SessionWindow):
        found = _end_below(plan, end)
        if found is None:
            return None
        nodes.append(plan)
        end, plan = found, plan.inputs[0]
    if end != len(plan.schema) - 1 or plan.told != "running":
        return None
    made: Node = replace(plan, told="final")
    for node in reversed(nodes):
        made = node.with_inputs((made,))
    return made


def _end_below(node: Node, end: int) -> int | None:
    """The column of the input that a column is, where each row is of rows that have it alike."""
    match node:
        case Filter() | Distinct():
            return end
        case Project():
            column = node.expressions[end]
        case Aggregate() if end < len(node.keys):
            column = node.keys[end]
        case _:
            return None
    return column.position if isinstance(column, Column) else None
