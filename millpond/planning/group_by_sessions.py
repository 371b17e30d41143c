"""Groups that are sessions need not be told the end of a session with each of its elements.

A session that goes on has another end for all its elements, so its rows would leave and come
again. Where the partition, the begin and the end are the keys of a group, the end follows from the
others: it is the last of the ends that the elements alone would give it.
"""

from dataclasses import replace

from millpond.cql.algebra import Aggregate, Project, SessionWindow
from millpond.cql.expressions import AggregateCall, Column
from millpond.cql.node import Node
from millpond.planning.predicates import bottom_up, columns_used


@bottom_up
def group_by_sessions(node: Node) -> Node:
    """The plan with the ends of such groups found by an aggregate."""
    if not isinstance(node, Aggregate) or not isinstance(node.input, SessionWindow):
        return node
    return _grouped(node, node.input) if _are_sessions(node, node.input) else node


def _are_sessions(node: Aggregate, window: SessionWindow) -> bool:
    """Whether the keys are the partition and the bounds, and no aggregate reads the end."""
    end = len(window.schema) - 1
    keys = {key.position if isinstance(key, Column) else -1 for key in node.keys}
    wanted = {column.position for column in window.partition} | {end - 1, end}
    read = [columns_used(part) for each in node.aggregates for part in each.arguments]
    return window.told == "running" and keys == wanted and not any(end in used for used in read)


def _grouped(node: Aggregate, window: SessionWindow) -> Node:
    field, end = window.schema[-1], len(window.schema) - 1
    own = Column(end, field.type, field.name)
    places = [place for place, key in enumerate(node.keys) if key != own]
    made = Aggregate(
        replace(window, told="own"),
        tuple(node.keys[place] for place in places),
        (*node.aggregates, AggregateCall("max", own, field.type)),
        (*(node.names[place] for place in places), *node.names[len(node.keys) :], field.name),
    )
    columns = [Column(i, f.type, f.name) for i, f in enumerate(made.schema.fields)]
    at = {place: columns[number] for number, place in enumerate(places)}
    keys = (at.get(place, columns[-1]) for place in range(len(node.keys)))
    return Project(made, (*keys, *columns[len(places) : -1]), node.names)
