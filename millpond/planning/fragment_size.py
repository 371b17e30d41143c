"""How large a fragment becomes when it is flattened into branches, found without doing so.

A fragment is part of the operator that reads it, as one condition and one select list for each way
down to a queue. Plans are graphs, but these are lists of trees: a view that computes `a + a` of the
one below it doubles with each level. What would become too large, or too deep for those who walk
it, is refused when the query is registered. Nothing else limits how high a plan is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from millpond.cql.algebra import Filter, HopWindow, Project, RangeWindow, Sample, WithTime
from millpond.cql.expressions import Column, Expression, children
from millpond.cql.node import Node, follows_from_inputs
from millpond.errors import MillpondError
from millpond.planning.nodes import Combine
from millpond.planning.predicates import size_after

MOST_BRANCHES = 1_000
MOST_DEPTH = 150
MOST_PARTS = 20_000

_LINEAR = (Filter, Project, Sample, RangeWindow, HopWindow, WithTime, Combine)
_BOUND_PARTS, _BOUND_DEPTH = 7, 3
"""Of the expression that computes when a window begins or ends."""

_WAY_OUT = "SELECT DISTINCT or GROUP BY in a view has what it computes computed once"


@dataclass(frozen=True)
class FragmentSize:
    """Of a fragment: how high, how many branches, and the largest of these.

    ``parts`` and ``depths`` are those of each column's expression, ``condition`` and
    ``condition_depth`` those of the selection.
    """

    height: int
    branches: int
    parts: tuple[int, ...]
    depths: tuple[int, ...]
    condition: int = 0
    condition_depth: int = 0


@follows_from_inputs
def fragment_size(node: Node) -> FragmentSize:
    """The size of the fragment that ends with a node; operators are leaves."""
    if not isinstance(node, _LINEAR):
        width = len(node.schema)
        return FragmentSize(1, 1, (1,) * width, (1,) * width)
    below = fragment_size(node.inputs[0])
    higher = replace(below, height=below.height + 1)
    match node:
        case Combine():
            return _both(higher, fragment_size(node.right))
        case Project():
            parts = tuple(size_after(e, below.parts) for e in node.expressions)
            depths = tuple(_depth_after(e, below.depths) for e in node.expressions)
            return replace(higher, parts=parts, depths=depths)
        case Filter():
            condition = below.condition + 1 + size_after(node.predicate, below.parts)
            deepest = max(below.condition_depth, _depth_after(node.predicate, below.depths))
            return replace(higher, condition=condition, condition_depth=1 + deepest)
        case WithTime():
            own = 1 + node.is_numbered
            return replace(
                higher,
                parts=(*below.parts, *[_BOUND_PARTS] * own),
                depths=(*below.depths, *[_BOUND_DEPTH] * own),
            )
        case HopWindow():
            return replace(
                higher,
                branches=below.branches * node.at_once,
                parts=(*below.parts, _BOUND_PARTS, _BOUND_PARTS),
                depths=(*below.depths, _BOUND_DEPTH, _BOUND_DEPTH),
            )
        case _:
            return higher


def _both(one: FragmentSize, other: FragmentSize) -> FragmentSize:
    """The larger of each, and the branches of both."""
    return FragmentSize(
        max(one.height, other.height + 1),
        one.branches + other.branches,
        tuple(map(max, one.parts, other.parts)),
        tuple(map(max, one.depths, other.depths)),
        max(one.condition, other.condition),
        max(one.condition_depth, other.condition_depth),
    )


def _depth_after(expression: Expression, depths: Sequence[int]) -> int:
    """How deep it would be with each column replaced by an expression of a depth."""
    if isinstance(expression, Column):
        return depths[expression.position]
    return 1 + max((_depth_after(child, depths) for child in children(expression)), default=0)


def refuse_large_fragments(plan: Node) -> None:
    """Refuses an optimised plan with a fragment that would become too large."""
    for node in plan.walk():
        found = fragment_size(node)
        if found.branches > MOST_BRANCHES:
            raise MillpondError(
                f"views that read others more than once reach the same rows on {found.branches} "
                f"ways, and {MOST_BRANCHES} are allowed; {_WAY_OUT}"
            )
        if max(found.height, found.condition_depth, *found.depths, 1) > MOST_DEPTH:
            raise MillpondError(
                f"the query is nested too deeply, its views included: more than {MOST_DEPTH} "
                f"functions or unions on top of one another; {_WAY_OUT}"
            )
        parts = found.condition + sum(found.parts)
        if parts > MOST_PARTS:
            raise MillpondError(
                f"put together from its views, the query has expressions of {parts} parts, and "
                f"{MOST_PARTS} are allowed; {_WAY_OUT}"
            )
