"""What the default Istream keeps silent about: rows that a query takes back.

An Istream says what comes. Where new data take an earlier answer back (DISTINCT and EXCEPT over
bounded windows, NOT IN, outer joins), whoever reads it by default never learns of that.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass

from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Filter,
    HopWindow,
    Join,
    Over,
    Project,
    RangeWindow,
    Rank,
    RelationScan,
    RowsWindow,
    SessionWindow,
    SetOperation,
    StreamScan,
    TimeFilter,
    UntilWindow,
)
from millpond.cql.expressions import (
    Call,
    Exists,
    Expression,
    InSubquery,
    Quantified,
    ScalarSubquery,
    children,
)
from millpond.cql.node import Node, follows_from_inputs
from millpond.cql.written import Written

PRESERVED = {
    "left": ("left",),
    "right": ("right",),
    "full": ("left", "right"),
    "anti": ("left",),
}
"""Which sides of a join keep rows for want of a partner."""


@dataclass(frozen=True)
class TakingBack:
    """A part of a query that takes rows back, and where it stands, if that is known."""

    what: str
    written: Written | None = None


def taken_back(plan: Node, views: Set[int]) -> Iterator[TakingBack]:
    """The parts of a relation that take rows back; views (by ``id``) are looked at as relations."""
    pending, seen = [plan], set(views)
    while pending:
        node = pending.pop()
        if id(node) in seen or node.is_stream:
            continue
        seen.add(id(node))
        yield from _taken_by(node)
        pending += reversed(node.inputs)


def takes_back_rows(istream: Node) -> bool:
    """Whether rows leave the relation that a stream is made of, after more than an instant."""
    return all(lasts(relation) and _shrinks(relation) for relation in istream.inputs)


@follows_from_inputs
def lasts(node: Node) -> bool:
    """Whether rows of a relation can be there for more than an instant."""
    match node:
        case RangeWindow():
            return node.length_ticks != 0 or node.slide_ticks is not None
        case HopWindow():
            return node.length_ticks > 1
        case Join(kind="left" | "semi" | "anti") | SetOperation(operation="except"):
            return lasts(node.left)
        case Join(kind="right"):
            return lasts(node.right)
        case Join(kind="inner") | SetOperation(operation="intersect"):
            return lasts(node.left) and lasts(node.right)
        case Filter() | Project() | Distinct():
            return lasts(node.input)
    has_own_length = isinstance(node, (Aggregate, RowsWindow, SessionWindow))
    return not node.inputs or has_own_length or any(map(lasts, node.inputs))


def _taken_by(node: Node) -> Iterator[TakingBack]:
    match node:
        case Distinct():
            if _shrinks(node.input) and lasts(node.input):
                yield TakingBack("DISTINCT")
        case SetOperation():
            yield from _taken_by_set_operation(node)
        case Join() if node.kind in PRESERVED and _keeps_for_want(node):
            word = "LEFT ANTI" if node.kind == "anti" else node.kind.upper()
            yield TakingBack(f"{word} JOIN", node.written)
        case Filter() if lasts(node.input):
            yield from (TakingBack(w, node.written) for w in _in_condition(node.predicate, True))
        case Project() if lasts(node.input):
            for number, each in enumerate(node.expressions):
                written = node.written[number] if node.written else None
                yield from (TakingBack(w, written) for w in _in_value(each))


def _taken_by_set_operation(node: SetOperation) -> Iterator[TakingBack]:
    word = node.label().upper()
    grows_right = _grows(node.right) and node.operation == "except"
    shrinks = not node.all and (_shrinks(node.left) or _shrinks(node.right))
    if lasts(node) and (grows_right or shrinks):
        yield TakingBack(word)


def _keeps_for_want(join: Join) -> bool:
    """Whether rows are kept that a partner to come takes back."""
    sides = {"left": (join.left, join.right), "right": (join.right, join.left)}
    return any(lasts(sides[s][0]) and _grows(sides[s][1]) for s in PRESERVED[join.kind])


@follows_from_inputs
def _grows(plan: Node) -> bool:
    """Whether a relation follows a stream; those that only statements change do not count."""
    if isinstance(plan, StreamScan) or (isinstance(plan, TimeFilter) and plan.is_rest):
        return True
    return any(map(_grows, (*plan.inputs, *plan.subqueries)))


@follows_from_inputs
def _shrinks(plan: Node) -> bool:
    """Whether rows leave a relation that follows a stream."""
    match plan:
        case RangeWindow() | RowsWindow():
            return not _is_unbounded(plan)
        case HopWindow() | SessionWindow() | UntilWindow() | TimeFilter(is_rest=False):
            return True
        case RelationScan():
            return False
        case Aggregate() | Rank() | Over():
            return _grows(plan)
        case Join() if plan.kind in PRESERVED and _keeps_for_want(plan):
            return True
        case SetOperation(operation="except"):
            return _shrinks(plan.left) or _grows(plan.right)
    return any(map(_shrinks, plan.inputs))


def _is_unbounded(window: Node) -> bool:
    return isinstance(window, RangeWindow) and window.length_ticks is None


def _in_condition(expression: Expression, is_positive: bool) -> Iterator[str]:
    """The subqueries of a condition whose growth can make it false."""
    match expression:
        case Call(function="not"):
            yield from _in_condition(expression.arguments[0], not is_positive)
        case Call(function="and" | "or"):
            for each in expression.arguments:
                yield from _in_condition(each, is_positive)
        case Exists() | InSubquery() if not is_positive and _grows(expression.subquery):
            yield "NOT EXISTS" if isinstance(expression, Exists) else "NOT IN"
        case Quantified() if is_positive == (expression.quantifier == "all"):
            if _grows(expression.subquery):
                yield "ALL" if is_positive else "NOT … ANY"
        case Exists() | InSubquery() | Quantified():
            return
        case _:
            yield from _in_value(expression)


def _in_value(expression: Expression) -> Iterator[str]:
    """The subqueries whose growth changes a value."""
    match expression:
        case Exists() | InSubquery() | Quantified() | ScalarSubquery():
            yield from ["a subquery used as a value"] if _grows(expression.subquery) else []
    for child in children(expression):
        yield from _in_value(child)
