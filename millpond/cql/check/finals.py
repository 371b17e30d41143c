"""EMIT FINAL: what a query says of a window, once, when the window is over.

Rows of a window leave when it ends. So the rows that leave just then, of all that leave, are those
that were there in its last instant.
"""

from collections.abc import Sequence

from millpond.cql.algebra import (
    WINDOW_BOUNDS,
    Aggregate,
    Distinct,
    Dstream,
    Filter,
    HopWindow,
    Join,
    Over,
    Project,
    Rank,
    SessionWindow,
    SetOperation,
    TimeFilter,
    UntilWindow,
    WithTime,
)
from millpond.cql.expressions import Call, Column, Expression
from millpond.cql.node import Node, follows_from_inputs
from millpond.cql.text.places import StatementError
from millpond.schema import Type


@follows_from_inputs
def window_ends(node: Node) -> frozenset[int]:
    """The columns that tell when a window ends by whose end the row has gone."""
    match node:
        case HopWindow() | SessionWindow():
            return frozenset({len(node.schema) - 1})
        case UntilWindow() if _is_until_end(node):
            return frozenset({len(node.schema) - 1})
        case Filter() | TimeFilter() | Distinct() | Rank() | Over():
            return window_ends(node.input)
        case Project():
            return _carried(node.expressions, window_ends(node.input))
        case Aggregate():
            return _carried(node.keys, window_ends(node.input))
        case Join(kind="semi" | "anti"):
            return window_ends(node.left)
        case Join():
            width = len(node.left.schema)
            right = frozenset(width + position for position in window_ends(node.right))
            return window_ends(node.left) | right
        case SetOperation(operation="except"):
            return window_ends(node.left)
        case SetOperation():
            return window_ends(node.left) & window_ends(node.right)
        case _:
            return frozenset()


def _is_until_end(node: UntilWindow) -> bool:
    """Whether elements are there until what is in their last column, window_end."""
    last = len(node.schema) - 1
    own = Call("unix_micros", (Column(last, Type.TIMESTAMP),), Type.BIGINT)
    return node.schema[last].name == WINDOW_BOUNDS[1] and node.until == own


def _carried(expressions: Sequence[Expression], ends: frozenset[int]) -> frozenset[int]:
    columns = [each.position if isinstance(each, Column) else -1 for each in expressions]
    return frozenset(number for number, position in enumerate(columns) if position in ends)


def with_end(plan: Project, offset: int | None) -> Project:
    """A SELECT list with one more column: when the first window ends that a row is of."""
    below = plan.input
    ends = [column for column in _columns(below) if column.position in window_ends(below)]
    if not ends and _has_end_before_ranks(below):
        raise StatementError(
            "EMIT FINAL of ranked rows goes by the window that each row names: have window_end in "
            "the SELECT list",
            offset,
        )
    if not ends:
        raise StatementError(
            "EMIT FINAL waits for the end of a window: read a stream by [TUMBLE …], [HOP …] or "
            "[SESSION …] and, if there is a GROUP BY, have window_start and window_end in it",
            offset,
        )
    if len({end.type for end in ends}) > 1:
        raise StatementError("EMIT FINAL over windows in ticks and in TIMESTAMPs", offset)
    end = ends[0] if len(ends) == 1 else Call("least", tuple(ends), ends[0].type)
    return Project(below, (*plan.expressions, end), (*plan.names, "window_end"), plan.written)


def _has_end_before_ranks(plan: Node) -> bool:
    """Whether rows are ranked that could tell when their window ends, but do not."""
    is_ranked = isinstance(plan, Rank | Over)
    while isinstance(plan, Rank | Over):
        plan = plan.input
    return is_ranked and isinstance(plan, Project) and bool(window_ends(plan.input))


def final(relation: Node, tick_microseconds: int) -> Node:
    """The stream of the rows that leave at the time in their last column, without it."""
    width = len(relation.schema) - 1
    *columns, end = _columns(relation)
    unit = tick_microseconds if end.type is Type.TIMESTAMP else None
    leaving = WithTime(Dstream(relation), unit)
    ended = Call("=", (end, _columns(leaving)[-1]), Type.BOOLEAN)
    return Project(Filter(leaving, ended), tuple(columns), relation.schema.names[:width])


def _columns(node: Node) -> list[Column]:
    return [Column(i, f.type, f.name) for i, f in enumerate(node.schema.fields)]
