"""Which rows of a state can be freed: those whose key the input will not have any more.

If the key of one side is a column of a stream, nothing of that side that begins later has a smaller
key than the stream's bound allows. So the other side's rows with smaller keys meet nothing more.
Selections and projections of a stream have its bound, and a join has for its key the smaller one of
both sides: a pair is new only if one of its rows is. If one side references the other, a pair comes
soon after its row of that side, whose columns have their bounds a little later. A group whose key
the input will not have any more, and of which nothing ever ends, is final. So is a partition of a
Rows window.
"""

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
from millpond.planning.lasting import keeps_one_row, lasts
from millpond.planning.physical import (
    AggregateOperator,
    ArrivalsOperator,
    CountOperator,
    DifferenceOperator,
    JoinOperator,
    LinearOperator,
    MatchOperator,
    RowsWindowOperator,
)
from millpond.planning.predicates import substitute
from millpond.planning.referring import By, Side, below, column_of, references, ways


@dataclass(frozen=True)
class Source:
    """A column of a stream whose values a key has in what is still to come."""

    stream: StreamId
    column: int
    soon: tuple[By, ...] = ()
    """The constraints by which that comes soon after the stream's tuple, those of the last join
    first."""


Sources: TypeAlias = frozenset[Source]
Known: TypeAlias = Mapping[StreamId, Sequence[Constraint]]
"""The constraints of streams."""


@dataclass(frozen=True)
class Freeing:
    """A side of a join, or groups, whose rows go once a key is over in all ``sources``."""

    side: int
    key: int
    sources: Sources

    @property
    def column(self) -> str:
        """The column of the side's state that has the key."""
        return f"k{self.key}"

    def relies_on(self, stream: StreamId, constraint: Constraint) -> bool:
        """Whether rows go by a constraint."""
        return any(_relies_on(each, stream, constraint) for each in self.sources)


def _relies_on(source: Source, stream: StreamId, constraint: Constraint) -> bool:
    is_of_values = constraint.kind in OF_VALUES and constraint.column == source.column
    is_soon = any((stream, constraint.name) in by for by in source.soon)
    return is_soon or (is_of_values and stream == source.stream)


OF_VALUES = ("ordered", "clustered")
"""The kinds of constraints that say which values of a column are over."""


@dataclass(frozen=True)
class Ageing:
    """A side of a join whose rows go once they are so old that the streams which they reference
    have no partner for them any more."""

    side: int
    by: frozenset[tuple[StreamId, str]]
    """The constraints that say so, with their streams."""
    is_direct: bool = True
    """Whether a row begins when the tuple does that references."""

    def relies_on(self, stream: StreamId, constraint: Constraint) -> bool:
        """Whether rows go by a constraint."""
        return (stream, constraint.name) in self.by


@dataclass(frozen=True)
class Meeting:
    """A side of a join whose rows go once they have met one of the other side, which is of a
    stream where its keys are unique."""

    side: int
    stream: StreamId
    constraint: str

    def relies_on(self, stream: StreamId, constraint: Constraint) -> bool:
        """Whether rows go by a constraint."""
        return (stream, constraint.name) == (self.stream, self.constraint)


AnyFreeing: TypeAlias = Freeing | Ageing | Meeting


def freeings(graph: Graph, identity: OperatorId, known: Known) -> Iterator[AnyFreeing]:
    """By which constraints of streams rows of an operator can be freed."""
    operator, fragments = graph.operators[identity], graph.fragments_of(identity)
    match operator:
        case JoinOperator():
            keys = join_keys(operator.condition, len(operator.left.schema))
            sides = Side(graph, fragments[0], keys.left), Side(graph, fragments[1], keys.right)
            yield from _of_values(sides[0], 1, known)
            yield from _of_values(sides[1], 0, known)
            for number, (own, other) in enumerate((sides, sides[::-1])):
                yield from _of_age(own, other, number, known)
                yield from _of_meeting(other, number, known)
        case AggregateOperator() if keeps_one_row(operator) and lasts(graph, fragments[0]):
            yield from _of_values(Side(graph, fragments[0], operator.keys), 0, known)
        case CountOperator() if all(lasts(graph, each) for each in fragments):
            yield from _of_counts(graph, fragments, known)
        case RowsWindowOperator():
            yield from _of_values(Side(graph, fragments[0], operator.partition), 0, known)


def _of_values(side: Side, freed: int, known: Known) -> Iterator[Freeing]:
    for key, expression in enumerate(side.keys):
        if expression is not None:
            sources = sources_of(side.graph, side.fragment, expression, known)
            if sources is not None and _are_of_values(sources, known):
                yield Freeing(freed, key, sources)


def _are_of_values(sources: Sources, known: Known) -> bool:
    """Whether it is known of all which of their values are over."""
    return all(
        any(c.kind in OF_VALUES and c.column == each.column for c in known.get(each.stream, ()))
        for each in sources
    )


def _of_counts(graph: Graph, fragments: Sequence[Node], known: Known) -> Iterator[Freeing]:
    """Rows that none of the inputs will have any more are final."""
    for key in range(len(fragments[0].schema)):
        found = [sources_of(graph, each, column_of(each, key), known) for each in fragments]
        sources = Sources().union(*(each for each in found if each is not None))
        if None not in found and _are_of_values(sources, known):
            yield Freeing(0, key, sources)


def _of_age(own: Side, other: Side, number: int, known: Known) -> Iterator[Ageing]:
    """If all that is on one side references all that may come on the other."""
    by = _referring(own, other, known)
    if by is not None:
        yield Ageing(number, by, all(_is_direct(each) for each in branches(own.fragment)))


def _referring(own: Side, other: Side, known: Known) -> By | None:
    """The constraints by which it does."""
    targets = list(ways(other.graph, other.fragment, other.keys))
    if any(each is None for each in targets):
        return None
    return references(own, [each for each in targets if each is not None], known)


def _of_meeting(other: Side, number: int, known: Known) -> Iterator[Meeting]:
    """If the keys are unique in the only stream that the other side is of."""
    found = list(ways(other.graph, other.fragment, other.keys))
    if len(found) != 1 or found[0] is None or found[0].comes_again:
        return
    for each in known.get(found[0].stream, ()):
        if each.kind == "unique" and set(each.columns) <= set(found[0].positions):
            yield Meeting(number, found[0].stream, each.name)
            return


def _is_direct(branch: Branch) -> bool:
    """Whether what a branch reads are tuples of a stream, at their times."""
    enters_later = branch.window is not None and branch.window.enters_later
    return branch.leaf.queue.stream is not None and not enters_later


def sources_of(
    graph: Graph, fragment: Node, expression: Expression, known: Known
) -> Sources | None:
    """The columns of streams whose values an expression over a fragment has, where what is new in
    the fragment is new in one of these; None if it is something else."""
    read = few_branches(fragment)
    if read is None:
        return None
    sources = Sources()
    for branch in read:
        found = _of_branch(graph, branch, substitute(expression, branch.expressions), known)
        if found is None:
            return None
        sources |= found
    return sources


def _of_branch(
    graph: Graph, branch: Branch, expression: Expression, known: Known
) -> Sources | None:
    queue, position = branch.leaf.queue, _position(expression)
    if position is None or position >= len(branch.leaf.schema):
        return None
    if branch.window is not None and branch.window.enters_later:
        return None
    if queue.stream is not None:
        return frozenset([Source(queue.stream, position)])
    if not isinstance(queue, OperatorId) or queue not in graph.operators:
        return None
    return _of_output(graph, queue, position, known)


@asked_once(unknown=None)
def _of_output(graph: Graph, identity: OperatorId, position: int, known: Known) -> Sources | None:
    """The same of a column that an operator puts out."""
    operator, fragments = graph.operators[identity], graph.fragments_of(identity)
    match operator:
        case LinearOperator() | MatchOperator():
            (key,) = below(operator, fragments[0], (position,))
            return None if key is None else sources_of(graph, fragments[0], key, known)
        case JoinOperator():
            return _of_pairs(graph, identity, operator, position, known)
        case AggregateOperator() if position < len(operator.keys) and lasts(graph, fragments[0]):
            return sources_of(graph, fragments[0], operator.keys[position], known)
        case ArrivalsOperator():
            return sources_of(graph, fragments[0], column_of(fragments[0], position), known)
        case DifferenceOperator(sign=1) if lasts(graph, fragments[0]):
            return sources_of(graph, fragments[0], column_of(fragments[0], position), known)
        case RowsWindowOperator() if any(position == each.position for each in operator.partition):
            return sources_of(graph, fragments[0], column_of(fragments[0], position), known)
        case CountOperator() if all(lasts(graph, each) for each in fragments):
            each_of = [sources_of(graph, f, column_of(f, position), known) for f in fragments]
            found = [each for each in each_of if each is not None]
            return frozenset().union(*found) if len(found) == len(each_of) else None
    return None


def _of_pairs(
    graph: Graph, identity: OperatorId, operator: JoinOperator, position: int, known: Known
) -> Sources | None:
    """A column of pairs, if it is known there what is over; else as far as it is known."""
    (post,) = branches(operator.post)
    place, width = _position(post.expressions[position]), len(operator.left.schema)
    if place is None:
        return None
    keys = join_keys(operator.condition, width)
    left, right = graph.fragments_of(identity)
    sides = Side(graph, left, keys.left), Side(graph, right, keys.right)
    tried = _of_key(sides, place, width, known), _of_side(sides, place, width, known)
    found = [each for each in tried if each is not None]
    return next((each for each in found if _are_of_values(each, known)), next(iter(found), None))


def _of_key(sides: tuple[Side, Side], place: int, width: int, known: Known) -> Sources | None:
    """Of a key of the join either side may bring something new."""
    left, right = sides
    for one, other in zip(left.keys, right.keys, strict=True):
        is_it = place in (_position(one), _shifted(_position(other), width))
        if is_it and one is not None and other is not None:
            own = sources_of(left.graph, left.fragment, one, known)
            others = sources_of(right.graph, right.fragment, other, known)
            return None if own is None or others is None else own | others
    return None


def _of_side(sides: tuple[Side, Side], place: int, width: int, known: Known) -> Sources | None:
    """A column of a side that references the other one: a pair is new soon after its row of that
    side is."""
    is_left = place < width
    own, other = sides if is_left else sides[::-1]
    column = column_of(own.fragment, place if is_left else place - width)
    found = sources_of(own.graph, own.fragment, column, known)
    by = None if found is None else _referring(own, other, known)
    if found is None or by is None:
        return None
    return frozenset(replace(each, soon=(by, *each.soon)) for each in found)


def _position(expression: Expression | None) -> int | None:
    return expression.position if isinstance(expression, Column) else None


def _shifted(position: int | None, width: int) -> int | None:
    return None if position is None else position + width
