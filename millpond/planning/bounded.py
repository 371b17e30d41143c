"""Which rows of a state can be freed: those whose key the input will not have any more.

If the key of one side is a column of a stream, nothing of that side that begins later has a smaller
key than the stream's bound allows. So the other side's rows with smaller keys meet nothing more.
Selections and projections of a stream have its bound, and a join has for its key the smaller one of
both sides: a pair is new only if one of its rows is. A group whose key the input will not have
any more, and of which nothing ever ends, is final.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from millpond.cql.expressions import Column, Expression
from millpond.cql.node import Node
from millpond.identities import OperatorId, StreamId
from millpond.planning.branches import Branch, branches
from millpond.planning.graph import Graph
from millpond.planning.join_keys import join_keys
from millpond.planning.physical import (
    AggregateOperator,
    CountOperator,
    JoinOperator,
    LinearOperator,
    MatchOperator,
)
from millpond.planning.predicates import all_columns, substitute

StreamColumn: TypeAlias = tuple[StreamId, int]
Sources: TypeAlias = frozenset[StreamColumn]


@dataclass(frozen=True)
class Freeing:
    """A side of a join, or groups, whose rows go once a key is below the bounds of all
    ``sources``."""

    side: int
    key: int
    sources: Sources
    """The columns of streams whose values the key has in what is still to come."""

    @property
    def column(self) -> str:
        """The column of the side's state that has the key."""
        return f"k{self.key}"


def freeings(graph: Graph, identity: OperatorId) -> Iterator[Freeing]:
    """By which columns of streams rows of an operator can be freed, if these are bounded."""
    operator, fragments = graph.operators[identity], graph.fragments_of(identity)
    match operator:
        case JoinOperator():
            keys = join_keys(operator.condition, len(operator.left.schema))
            yield from _known(graph, fragments[0], keys.left, 1)
            yield from _known(graph, fragments[1], keys.right, 0)
        case AggregateOperator() if is_simple(operator) and _lasts(graph, fragments[0]):
            yield from _known(graph, fragments[0], operator.keys, 0)
        case CountOperator(right=None) if _lasts(graph, fragments[0]):
            yield from _known(graph, fragments[0], all_columns(fragments[0]), 0)


def _known(
    graph: Graph, fragment: Node, keys: Sequence[Expression], side: int
) -> Iterator[Freeing]:
    for key, expression in enumerate(keys):
        sources = sources_of(graph, fragment, expression)
        if sources is not None:
            yield Freeing(side, key, sources)


def is_simple(operator: AggregateOperator) -> bool:
    """Whether an aggregate keeps one row a group and nothing else."""
    kept = operator.is_append_only and not any(each.distinct for each in operator.aggregates)
    return kept and all(each.function in _SIMPLE for each in operator.aggregates)


_SIMPLE = ("count", "sum", "avg", "min", "max")


def _lasts(graph: Graph, fragment: Node) -> bool:
    """Whether nothing of a fragment ever ends."""
    return all(_branch_lasts(graph, branch) for branch in branches(fragment))


def _branch_lasts(graph: Graph, branch: Branch) -> bool:
    queue = branch.leaf.queue
    if branch.leaf.of_stream:
        return branch.window is not None and branch.window.length is None
    if not isinstance(queue, OperatorId):
        return False
    operator = graph.operators.get(queue)
    if not isinstance(operator, LinearOperator | JoinOperator):
        return False
    return all(_lasts(graph, each) for each in graph.fragments_of(queue))


def sources_of(graph: Graph, fragment: Node, expression: Expression) -> Sources | None:
    """The columns of streams whose values an expression over a fragment has, where what is new in
    the fragment is new in one of these; None if it is something else."""
    found = [
        _of_branch(graph, branch, substitute(expression, branch.expressions))
        for branch in branches(fragment)
    ]
    known = [each for each in found if each is not None]
    return frozenset().union(*known) if len(known) == len(found) else None


def _of_branch(graph: Graph, branch: Branch, expression: Expression) -> Sources | None:
    queue, position = branch.leaf.queue, _position(expression)
    if position is None or position >= len(branch.leaf.schema):
        return None
    if branch.window is not None and branch.window.enters_later:
        return None
    if queue.stream is not None:
        return frozenset([(queue.stream, position)])
    if not isinstance(queue, OperatorId) or queue not in graph.operators:
        return None
    return _of_output(graph, queue, position)


def _of_output(graph: Graph, identity: OperatorId, position: int) -> Sources | None:
    """The same of a column that an operator puts out."""
    operator = graph.operators[identity]
    match operator:
        case LinearOperator():
            (fragment,) = graph.fragments_of(identity)
            return sources_of(graph, fragment, fragment_column(fragment, position))
        case MatchOperator():
            (fragment,) = graph.fragments_of(identity)
            return _of_match(graph, operator, fragment, position)
        case JoinOperator():
            return _of_pairs(graph, identity, operator, position)
    return None


def fragment_column(fragment: Node, position: int) -> Column:
    """A column of a fragment."""
    field = fragment.schema[position]
    return Column(position, field.type, field.name)


def _of_match(
    graph: Graph, operator: MatchOperator, fragment: Node, position: int
) -> Sources | None:
    expressions = operator.match.expressions
    read = _position(expressions[position]) if position < len(expressions) else None
    if read is None or read >= len(fragment.schema):
        return None
    return sources_of(graph, fragment, fragment_column(fragment, read))


def _of_pairs(
    graph: Graph, identity: OperatorId, operator: JoinOperator, position: int
) -> Sources | None:
    """A column of pairs that is a key of the join: either side may bring something new."""
    (post,) = branches(operator.post)
    wanted = _position(post.expressions[position])
    left, right = graph.fragments_of(identity)
    width = len(operator.left.schema)
    keys = join_keys(operator.condition, width)
    for one, other in zip(keys.left, keys.right, strict=True):
        places = _position(one), _shifted(_position(other), width)
        if wanted is not None and wanted in places:
            both = sources_of(graph, left, one), sources_of(graph, right, other)
            return None if both[0] is None or both[1] is None else both[0] | both[1]
    return None


def _position(expression: Expression) -> int | None:
    return expression.position if isinstance(expression, Column) else None


def _shifted(position: int | None, width: int) -> int | None:
    return None if position is None else position + width
