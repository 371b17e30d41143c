"""Which rows of a state can be freed by punctuations: those whose keys no new tuple has.

What is new in a fragment is there because a tuple of a stream has come: by which *ways*, and which
columns of that tuple the keys are then, is worked out here. A pair of a join is new because one of
its rows is, and the key of the other row is the same. A group, or a row of DISTINCT, EXCEPT and
INTERSECT, changes only by what comes to it, where nothing of the input ever ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from millpond.cql.expressions import Call, Column, Expression, Literal
from millpond.cql.node import Node
from millpond.cql.patterns import Pattern, Values, as_number
from millpond.identities import OperatorId, StreamId
from millpond.planning.asking import asked_once, few_branches
from millpond.planning.branches import Branch, branches
from millpond.planning.graph import Graph
from millpond.planning.join_keys import join_keys
from millpond.planning.lasting import keeps_one_row, lasts
from millpond.planning.physical import (
    AggregateOperator,
    CountOperator,
    JoinOperator,
    LinearOperator,
    MatchOperator,
    RowsWindowOperator,
)
from millpond.planning.predicates import all_columns, substitute

Keys: TypeAlias = Sequence[Expression | None]
"""Expressions over the columns of a fragment; nothing is known of those that are None."""


@dataclass(frozen=True)
class Way:
    """A stream of which a new tuple brings something new, and which of its columns keys are."""

    stream: StreamId
    keys: tuple[tuple[int, int], ...]
    """Columns of the stream, each with the number of the key that has its value."""
    selected: tuple[tuple[int, Literal], ...] = ()
    """Columns that have one value in all that is let through."""

    def keys_of(self, pattern: Pattern) -> tuple[tuple[int, Values], ...] | None:
        """The values of keys that no new tuple has if none matches a pattern of the stream; None
        if it says more of a tuple than is known."""
        if not self.tells(pattern.columns):
            return None
        keys, selected = dict(self.keys), dict(self.selected)
        left = [each for each in pattern.parts if each[0] in keys]
        fixed = [each for each in pattern.parts if each[0] not in keys]
        if not all(values.has(as_value(selected[column])) for column, values in fixed):
            return None
        return tuple((keys[column], values) for column, values in left)

    def tells(self, columns: Iterable[int]) -> bool:
        """Whether columns are known, and one of them by a key."""
        named, keys = set(columns), {column for column, _ in self.keys}
        return named <= keys | {column for column, _ in self.selected} and bool(named & keys)


def as_value(literal: Literal) -> Any:
    """A constant as patterns have it; NULL is among no values."""
    value = literal.value
    return value if value is None or isinstance(value, str) else as_number(value)


Ways: TypeAlias = tuple[Way, ...]


@dataclass(frozen=True)
class Closing:
    """A side of a join, or groups, whose rows go once their keys come by none of the ``ways``."""

    side: int
    ways: Ways


def closings(graph: Graph, identity: OperatorId) -> Iterator[Closing]:
    """What of an operator goes when streams are punctuated."""
    operator, fragments = graph.operators[identity], graph.fragments_of(identity)
    match operator:
        case JoinOperator():
            keys = join_keys(operator.condition, len(operator.left.schema))
            yield from _known(1, ways_of(graph, fragments[0], keys.left))
            yield from _known(0, ways_of(graph, fragments[1], keys.right))
        case AggregateOperator() if keeps_one_row(operator):
            yield from _known(0, _ways_of_groups(graph, identity, operator.keys))
        case CountOperator():
            yield from _known(0, _ways_of_groups(graph, identity, all_columns(fragments[0])))
        case RowsWindowOperator():
            yield from _known(0, ways_of(graph, fragments[0], operator.partition))


def _known(side: int, ways: Ways | None) -> Iterator[Closing]:
    """The side, if something is known on each of the ways."""
    if ways and all(way.keys for way in ways):
        yield Closing(side, ways)


def ways_of(graph: Graph, fragment: Node, keys: Keys) -> Ways | None:
    """How something new comes into a fragment; None if that is not known."""
    found = few_branches(fragment)
    if found is None:
        return None
    return _together([_ways_of_branch(graph, branch, keys) for branch in found])


def _together(found: Sequence[Ways | None]) -> Ways | None:
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return tuple(dict.fromkeys(way for ways in known for way in ways))


def _ways_of_branch(graph: Graph, branch: Branch, keys: Keys) -> Ways | None:
    if branch.window is not None and branch.window.enters_later:
        return None
    queue, width = branch.leaf.queue, len(branch.leaf.schema)
    read = [None if key is None else substitute(key, branch.expressions) for key in keys]
    places = [each.position if isinstance(each, Column) else None for each in read]
    own = [place if place is not None and place < width else None for place in places]
    if queue.stream is not None:
        columns = ((place, key) for key, place in enumerate(own) if place is not None)
        return (Way(queue.stream, tuple(columns), tuple(_selected(branch, width))),)
    if isinstance(queue, OperatorId) and queue in graph.operators:
        return _ways_of_output(graph, queue, tuple(own))
    return None


def _selected(branch: Branch, width: int) -> Iterator[tuple[int, Literal]]:
    """The columns of which a branch lets one value through."""
    for part in branch.conditions:
        if isinstance(part, Call) and part.function == "=":
            one, other = part.arguments
            if isinstance(other, Column):
                one, other = other, one
            if isinstance(one, Column) and isinstance(other, Literal) and one.position < width:
                yield one.position, other


@asked_once(unknown=None)
def _ways_of_output(
    graph: Graph, identity: OperatorId, places: tuple[int | None, ...]
) -> Ways | None:
    """How something new comes into what an operator puts out, of which some columns are keys."""
    operator = graph.operators[identity]
    match operator:
        case LinearOperator():
            (fragment,) = graph.fragments_of(identity)
            return ways_of(graph, fragment, _at(all_columns(fragment), places))
        case MatchOperator():
            (fragment,) = graph.fragments_of(identity)
            return ways_of(graph, fragment, _matched(operator, fragment, places))
        case JoinOperator():
            return _ways_of_pairs(graph, identity, operator, places)
        case AggregateOperator():
            return _ways_of_groups(graph, identity, _at(operator.keys, places))
        case CountOperator():
            (fragment, *_) = graph.fragments_of(identity)
            return _ways_of_groups(graph, identity, _at(all_columns(fragment), places))
        case RowsWindowOperator():
            (fragment,) = graph.fragments_of(identity)
            return ways_of(graph, fragment, _at(all_columns(fragment), _parted(operator, places)))
    return None


def _parted(operator: RowsWindowOperator, places: Sequence[int | None]) -> list[int | None]:
    """Those of some columns by which there are partitions: of others a row may leave when one with
    another value comes."""
    parted = {each.position for each in operator.partition}
    return [place if place in parted else None for place in places]


def _at(expressions: Sequence[Expression], places: Sequence[int | None]) -> Keys:
    """The expressions at some places, of which there may be fewer."""
    return [
        None if place is None or place >= len(expressions) else expressions[place]
        for place in places
    ]


def _matched(operator: MatchOperator, fragment: Node, places: Sequence[int | None]) -> Keys:
    """What a match reads of its input; the number of a query is no column of that."""
    width = len(fragment.schema)
    read = _at(operator.match.expressions, places)
    return [each if isinstance(each, Column) and each.position < width else None for each in read]


def _ways_of_groups(graph: Graph, identity: OperatorId, keys: Keys) -> Ways | None:
    """How groups change of which nothing ever ends; all inputs have the same columns."""
    fragments = graph.fragments_of(identity)
    if not all(lasts(graph, each) for each in fragments):
        return None
    return _together([ways_of(graph, each, keys) for each in fragments])


def _ways_of_pairs(
    graph: Graph, identity: OperatorId, operator: JoinOperator, places: Sequence[int | None]
) -> Ways | None:
    """Either side may bring something new; of the other one its keys are known."""
    (post,) = branches(operator.post)
    left, right = graph.fragments_of(identity)
    width = len(operator.left.schema)
    keys = join_keys(operator.condition, width)
    made = _at(post.expressions, places)
    wanted = [each.position if isinstance(each, Column) else None for each in made]
    met = [(_place(one), _place(other)) for one, other in zip(keys.left, keys.right, strict=True)]
    to_left = {other: one for one, other in met if one is not None and other is not None}
    to_right = {one: other for one, other in met if one is not None and other is not None}
    in_left = [_in_side(each, 0, width, to_left) for each in wanted]
    in_right = [_in_side(each, width, width, to_right) for each in wanted]
    both = zip((left, right), (in_left, in_right), strict=True)
    return _together([ways_of(graph, side, _at(all_columns(side), own)) for side, own in both])


def _in_side(place: int | None, first: int, width: int, across: dict[int, int]) -> int | None:
    """Where a column of a pair is in the side whose columns begin at a place: itself, or the key
    that it is equal to."""
    if place is None:
        return None
    is_left = place < width
    own = place if is_left else place - width
    return own if is_left == (first == 0) else across.get(own)


def _place(expression: Expression) -> int | None:
    return expression.position if isinstance(expression, Column) else None
