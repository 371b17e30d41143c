"""Skeletons: what checked plans that differ in compared constants have in common.

Rewrites look at a constant in three ways: they compute with it where all operands are constants,
they ask whether a function may fail on it, and they ask whether two expressions are equal. A
constant that a condition compares with something else (``k = 5``, ``v IN (1, 2)``) can only be met
in the third way. So plans with the same skeleton, in whose constants the same ones are equal, are
rewritten alike.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from millpond.cql.algebra import Aggregate, Filter, Join, LateralJoin, Project
from millpond.cql.expressions import AggregateCall, Call, Expression, Literal, walk
from millpond.cql.node import Node, canonical, follows_from_inputs, inputs_first, own_text
from millpond.planning.predicates import rewrite, rewrite_aggregate
from millpond.schema import Type

MOST_CONSTANTS = 64
"""A plan with more of them, each counted as often as it is read, is rewritten by itself."""

_COMPARING = frozenset(("=", "<>", "<", "<=", ">", ">=", "in"))
_PLAIN = {
    int: (Type.INT, Type.BIGINT),
    float: (Type.DOUBLE,),
    str: (Type.STRING,),
    bytes: (Type.BINARY,),
}
_LOGIC = frozenset(("and", "or", "not"))
_MADE = frozenset(("0", "1"))
"""Constants that rewrites put in."""


@dataclass(frozen=True)
class Skeleton:
    """What plans have in common, and the constants in which one differs from the others."""

    key: str
    constants: tuple[Literal, ...]
    """Each once, in the order in which they are met."""


@dataclass(frozen=True)
class _Bones:
    """The same of one node and all below it."""

    digest: str
    compared: tuple[Literal, ...] = ()
    """As often as they are read."""
    others: frozenset[str] = frozenset()
    """The constants that stand elsewhere."""


def skeleton(plan: Node) -> Skeleton | None:
    """The skeleton of a checked plan; None if it has too many constants, or subqueries."""
    bones = _bones(plan)
    if bones is None or not bones.compared:
        return None
    fixed = bones.others | _MADE
    found: dict[str, int] = {}
    constants, pattern = [], []
    for literal in bones.compared:
        told = f"{literal.type.value} {_told(literal)}"
        if _told(literal) in fixed:  # so an expression with it may equal another one
            pattern.append(f"={told}")
            continue
        if told not in found:
            found[told] = len(found)
            constants.append(literal)
        pattern.append(f"{found[told]}")
    return Skeleton(f"{bones.digest} {' '.join(pattern)}", tuple(constants))


def with_constants(plan: Node, new: Mapping[Literal, Literal]) -> Node:
    """The plan with other constants in place of some."""
    made: dict[int, Node] = {}
    for node in inputs_first(plan):
        changed = node.with_inputs(tuple(made[id(below)] for below in node.inputs))
        made[id(node)] = _changed(changed, new)
    return made[id(plan)]


def _changed(node: Node, new: Mapping[Literal, Literal]) -> Node:
    def change(expression: Expression) -> Expression:
        return rewrite(expression, lambda e: new.get(e, e) if isinstance(e, Literal) else e)

    match node:
        case Filter():
            return replace(node, predicate=change(node.predicate))
        case Join() if node.condition is not None:
            return replace(node, condition=change(node.condition))
        case Project():
            return replace(node, expressions=tuple(map(change, node.expressions)))
        case Aggregate():
            aggregates = tuple(rewrite_aggregate(each, change) for each in node.aggregates)
            return replace(node, keys=tuple(map(change, node.keys)), aggregates=aggregates)
    return node


@follows_from_inputs
def _bones(node: Node) -> _Bones | None:
    below = [bones for each in node.inputs if (bones := _bones(each)) is not None]
    if node.subqueries or len(below) < len(node.inputs) or isinstance(node, LateralJoin):
        return None
    compared = [literal for bones in below for literal in bones.compared]
    others = {told for bones in below for told in bones.others}
    text = own_text(node, lambda value: _text(value, compared, others))
    if len(compared) > MOST_CONSTANTS:
        return None
    told = " ".join([text, *(bones.digest for bones in below)])
    digest = hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
    return _Bones(digest, tuple(compared), frozenset(others))


def _text(value: Any, compared: list[Literal], others: set[str]) -> str:
    """A text of a part of a node without the constants that are compared in it."""
    match value:
        case Call(function=function) if function in _LOGIC:
            parts = [_text(each, compared, others) for each in value.arguments]
            return f"{function}({','.join(parts)})"
        case Call(function=function, arguments=(first, *rest)) if function in _COMPARING:
            constants = [each for each in rest if isinstance(each, Literal) and _is_plain(each)]
            if not isinstance(first, Literal) and len(constants) == len(rest):
                compared += constants
                kinds = [each.type.value for each in constants]
                return f"{function}({_text(first, compared, others)},?{',?'.join(kinds)})"
    others |= {_told(each) for each in _literals_in(value)}
    return canonical(value)


def _literals_in(value: Any) -> Iterator[Literal]:
    if isinstance(value, tuple):
        for each in value:
            yield from _literals_in(each)
    elif isinstance(value, AggregateCall):
        yield from _literals_in(value.arguments)
    elif isinstance(value, get_args(Expression)):
        yield from (each for each in walk(value) if isinstance(each, Literal))


def _is_plain(literal: Literal) -> bool:
    """Whether it equals another one exactly if both are written alike."""
    return literal.type in _PLAIN.get(type(literal.value), ()) and literal.value != 0.0


def _told(literal: Literal) -> str:
    return repr(literal.value)
