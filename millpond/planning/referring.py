"""Which streams a side of a join is of, and what of it references the other side.

A row of a join's side begins with the later one of the tuples it is made of. So if a tuple in it is
so old that its partners have all come, the row meets none of them that begins later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from millpond.catalog import Constraint
from millpond.cql.expressions import Column, Expression
from millpond.cql.node import Node
from millpond.identities import OperatorId, StreamId
from millpond.planning.asking import asked_once, few_branches
from millpond.planning.branches import Branch, branches
from millpond.planning.graph import Graph
from millpond.planning.join_keys import join_keys
from millpond.planning.lasting import lasts
from millpond.planning.physical import (
    AggregateOperator,
    ArrivalsOperator,
    CountOperator,
    DifferenceOperator,
    JoinOperator,
    LinearOperator,
    MatchOperator,
    Operator,
    RowsWindowOperator,
)
from millpond.planning.predicates import substitute

Keys: TypeAlias = Sequence[Expression | None]
"""Some expressions over a fragment; None: of this key nothing is known there."""
Positions: TypeAlias = tuple[int | None, ...]
By: TypeAlias = frozenset[tuple[StreamId, str]]


@dataclass(frozen=True)
class Side:
    """A side of a join, or what is grouped, with its keys."""

    graph: Graph
    fragment: Node
    keys: Keys


@dataclass(frozen=True)
class Way:
    """From a stream to a fragment, tuple by tuple: in which columns of the stream its keys are."""

    stream: StreamId
    positions: Positions
    comes_again: bool = False
    """Whether there may be more of a tuple than itself: one for each of several queries, or groups
    that change."""


def ways(graph: Graph, fragment: Node, keys: Keys) -> Iterator[Way | None]:
    """From where tuples come to a fragment as they are, at their times; None: something else
    does."""
    found = few_branches(fragment)
    if found is None:
        yield None
    for branch in found or ():
        is_late = branch.window is not None and branch.window.enters_later
        if is_late or branch.sign < 0:
            yield None
        else:
            yield from _ways_of(graph, branch, _positions(branch, keys))


def _ways_of(graph: Graph, branch: Branch, positions: Positions) -> Iterator[Way | None]:
    queue = branch.leaf.queue
    if queue.stream is not None:
        yield Way(queue.stream, positions)
        return
    if isinstance(queue, OperatorId) and queue in graph.operators:
        yield from _ways_of_output(graph, queue, positions)
    else:
        yield None


@asked_once(unknown=(None,))
def _ways_of_output(
    graph: Graph, identity: OperatorId, positions: Positions
) -> tuple[Way | None, ...]:
    operator, fragments = graph.operators[identity], graph.fragments_of(identity)
    if not _comes_with_tuples(graph, operator, fragments):
        return (None,)
    if isinstance(operator, JoinOperator):
        read = [side.keys for side in _of_pairs(graph, operator, fragments, positions)]
    else:
        read = [_read(operator, fragment, positions) for fragment in fragments]
    comes_again = isinstance(operator, MatchOperator | AggregateOperator) or len(fragments) > 1
    found = [
        way
        for fragment, keys in zip(fragments, read, strict=True)
        for way in ways(graph, fragment, keys)
    ]
    again = [each and replace(each, comes_again=each.comes_again or comes_again) for each in found]
    return _several(again)


def _several(found: Sequence[Way | None]) -> tuple[Way | None, ...]:
    """Each way once; one that is there twice brings more of a tuple than itself."""
    counts = Counter(found)
    return tuple(
        each and replace(each, comes_again=each.comes_again or counts[each] > 1) for each in counts
    )


def _comes_with_tuples(graph: Graph, operator: Operator | None, fragments: Sequence[Node]) -> bool:
    """Whether what an operator puts out begins when a tuple does."""
    if isinstance(operator, LinearOperator | MatchOperator | ArrivalsOperator | JoinOperator):
        return True
    is_known = isinstance(operator, AggregateOperator | CountOperator) or _enters(operator)
    return is_known and all(lasts(graph, fragment) for fragment in fragments)


def _enters(operator: Operator | None) -> bool:
    """Whether an operator is an Istream: it puts out what begins, then."""
    is_difference = isinstance(operator, DifferenceOperator) and operator.sign > 0
    return is_difference or isinstance(operator, ArrivalsOperator)


def _read(operator: Operator | None, fragment: Node, positions: Positions) -> Keys:
    """What an operator reads of a fragment for some columns that it puts out."""
    match operator:
        case LinearOperator() | MatchOperator():
            return below(operator, fragment, positions)
        case AggregateOperator():
            keys = operator.keys
            return [keys[p] if p is not None and p < len(keys) else None for p in positions]
    return [None if each is None else column_of(fragment, each) for each in positions]


def below(operator: LinearOperator | MatchOperator, fragment: Node, positions: Positions) -> Keys:
    """What an operator reads for some columns that it puts out."""
    if isinstance(operator, LinearOperator):
        return [None if each is None else column_of(fragment, each) for each in positions]
    made = operator.match.expressions
    read = [made[each] if each is not None and each < len(made) else None for each in positions]
    return [
        each if isinstance(each, Column) and each.position < len(fragment.schema) else None
        for each in read
    ]


def column_of(fragment: Node, position: int) -> Column:
    """A column of a fragment."""
    field = fragment.schema[position]
    return Column(position, field.type, field.name)


def _positions(branch: Branch, keys: Keys) -> Positions:
    """Where a branch's queue has some keys; None where it has something else."""
    found = [None if key is None else substitute(key, branch.expressions) for key in keys]
    width = len(branch.leaf.schema)
    return tuple(
        each.position if isinstance(each, Column) and each.position < width else None
        for each in found
    )


def references(
    own: Side, targets: Sequence[Way], known: Mapping[StreamId, Sequence[Constraint]]
) -> By | None:
    """The constraints by which all rows of a side reference all that the other side may get; None
    if some do not."""
    read = few_branches(own.fragment)
    if read is None:
        return None
    found = [
        _referring(own.graph, branch, _positions(branch, own.keys), targets, known)
        for branch in read
    ]
    some = [each for each in found if each is not None]
    return frozenset().union(*some) if len(some) == len(found) else None


def _referring(
    graph: Graph,
    branch: Branch,
    positions: Positions,
    targets: Sequence[Way],
    known: Mapping[StreamId, Sequence[Constraint]],
) -> By | None:
    queue = branch.leaf.queue
    if queue.stream is not None:
        return _of_stream(queue.stream, positions, targets, known)
    if not isinstance(queue, OperatorId) or queue not in graph.operators:
        return None
    return _referring_output(graph, queue, positions, tuple(targets), known)


@asked_once(unknown=None)
def _referring_output(
    graph: Graph,
    identity: OperatorId,
    positions: Positions,
    targets: tuple[Way, ...],
    known: Mapping[StreamId, Sequence[Constraint]],
) -> By | None:
    operator, fragments = graph.operators[identity], graph.fragments_of(identity)
    if isinstance(operator, LinearOperator | MatchOperator):
        side = Side(graph, fragments[0], below(operator, fragments[0], positions))
        return references(side, targets, known)
    if _enters(operator) or isinstance(operator, RowsWindowOperator):
        keys = [None if each is None else column_of(fragments[0], each) for each in positions]
        return references(Side(graph, fragments[0], keys), targets, known)
    if isinstance(operator, JoinOperator):
        sides = _of_pairs(graph, operator, fragments, positions)
        tried = [references(side, targets, known) for side in sides]
        some = [each for each in tried if each is not None]
        return frozenset().union(*some) if some else None
    return None


def _of_pairs(
    graph: Graph, operator: JoinOperator, fragments: Sequence[Node], positions: Positions
) -> Iterator[Side]:
    """The sides of a join, each with those keys of a row made of both that it has too."""
    (post,) = branches(operator.post)
    width = len(operator.left.schema)
    made = [None if each is None else post.expressions[each] for each in positions]
    places = [each.position if isinstance(each, Column) else None for each in made]
    same = _equal_places(operator, width)
    for first, fragment in ((0, fragments[0]), (width, fragments[1])):
        own = range(first, first + len(fragment.schema))
        found = [next((p for p in same.get(each, (each,)) if p in own), None) for each in places]
        keys = [None if place is None else column_of(fragment, place - first) for place in found]
        yield Side(graph, fragment, keys)


def _equal_places(operator: JoinOperator, width: int) -> dict[int | None, tuple[int, int]]:
    """The columns of pairs that are equal to one of the other side."""
    keys = join_keys(operator.condition, width)
    pairs = [
        (one.position, other.position + width)
        for one, other in zip(keys.left, keys.right, strict=True)
        if isinstance(one, Column) and isinstance(other, Column)
    ]
    return {place: pair for pair in pairs for place in pair}


def _of_stream(
    stream: StreamId,
    positions: Positions,
    targets: Sequence[Way],
    known: Mapping[StreamId, Sequence[Constraint]],
) -> By | None:
    """The constraints by which a stream references all targets."""
    by = set[tuple[StreamId, str]]()
    for target in targets:
        pairs = set(zip(positions, target.positions, strict=True))
        found = [c.name for c in known.get(stream, ()) if _is_by(c, target.stream, pairs)]
        if not found:
            return None
        by.add((stream, found[0]))
    return frozenset(by)


def _is_by(
    constraint: Constraint, target: StreamId, pairs: set[tuple[int | None, int | None]]
) -> bool:
    """Whether a constraint says that tuples with these equal columns reference a stream."""
    if constraint.kind != "references" or StreamId(constraint.target) != target:
        return False
    return pairs >= set(zip(constraint.columns, constraint.target_columns, strict=True))
