"""What all nodes of a checked query share.

Plans are graphs: a view that is read twice is one node with two readers. So whatever walks a plan
meets each node once, without recursion, and what follows from a node and its inputs is kept with
it. Apart from ``algebra``, because expressions hold the plans of subqueries and plans hold
expressions.
"""

from __future__ import annotations

import functools
import hashlib
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from millpond.cql.kept import kept
from millpond.schema import Schema, Type

Found = TypeVar("Found")

REPEATED_LINES = 8
"""A part of a plan that is longer and occurs again is printed once and then referred to."""


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """What all plan nodes share. Two are equal if all that compares in and below them is."""

    def __post_init__(self) -> None:
        _ = self.schema, self.is_stream  # known of the inputs already, so nothing has to go deep

    @property
    def schema(self) -> Schema:
        """The columns of the result."""
        raise NotImplementedError

    @property
    def is_stream(self) -> bool:
        """Whether the result is a stream; otherwise it is a relation."""
        return False

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes this one reads, in order."""
        return self._own_inputs

    @kept
    def _own_inputs(self) -> tuple[Node, ...]:
        values = [getattr(self, name) for name in _names(type(self))]
        return tuple([value for value in values if isinstance(value, Node)])

    @kept
    def subqueries(self) -> tuple[Node, ...]:
        """The plans of the subqueries in its expressions, once for each place they stand at."""
        values = [getattr(self, name) for name in _compared(type(self)) or ()]
        return tuple(plan for v in values if not isinstance(v, Node) for plan in _plans_in(v))

    def with_inputs(self, new: tuple[Node, ...]) -> Node:
        """The same node over other inputs."""
        inputs = self.inputs
        if len(inputs) == len(new) and all(map(operator.is_, inputs, new)):
            return self
        return self._over(new)

    def _over(self, new: tuple[Node, ...]) -> Node:
        names = [name for name in _names(type(self)) if isinstance(getattr(self, name), Node)]
        return replace(self, **dict(zip(names, new, strict=True)))

    def label(self) -> str:
        """One line that tells the node from others of its kind."""
        return type(self).__name__

    def walk(self) -> Iterator[Node]:
        """This node and all below it, each once."""
        return self._walk(into=False)

    def walk_into_subqueries(self) -> Iterator[Node]:
        """This node, all below it, and all in and below its subqueries, each once."""
        return self._walk(into=True)

    def _walk(self, into: bool) -> Iterator[Node]:
        seen: set[int] = set()
        stack = [self]
        while stack:
            node = stack.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                stack += reversed((*node.inputs, *node.subqueries) if into else node.inputs)

    @property
    def digest(self) -> str:
        """What tells the node and all below it from any other plan, in any process."""
        found: str | None = self.__dict__.get(DIGEST)
        return _digest(self) if found is None else found

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Node) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _names(type(self))}

    def __repr__(self) -> str:
        return f"<{self.label()} {self.digest[:8]}>"

    def __str__(self) -> str:
        return "\n".join(lines_of(self))


def inputs_first(
    plan: Node, is_done: Callable[[Node], bool] = lambda node: False, into: bool = False
) -> Iterator[Node]:
    """All nodes of a plan, each once and after its inputs; what ``is_done`` is left out.

    ``into``: the plans of subqueries too, before the nodes they stand in.
    """
    seen: set[int] = set()
    stack = [plan]
    while stack:
        node = stack[-1]
        if id(node) in seen or is_done(node):
            stack.pop()
            continue
        below = node.inputs
        if into and node.subqueries:
            below = (*below, *node.subqueries)
        waiting = [each for each in below if id(each) not in seen and not is_done(each)]
        if waiting:
            stack += reversed(waiting)
        else:
            stack.pop()
            seen.add(id(node))
            yield node


def key_of(function: Callable[..., Any]) -> str:
    """Under which name a node keeps what a function has found of it."""
    return f"{function.__module__}.{function.__qualname__}"


def follows_from_inputs(function: Callable[[Node], Found]) -> Callable[[Node], Found]:
    """A function of plans that asks itself about the inputs: found once for each node, and kept."""
    key = key_of(function)

    @functools.wraps(function)
    def found(node: Node) -> Found:
        kept = node.__dict__
        if key not in kept:
            if all(key in below.__dict__ for below in (*node.inputs, *node.subqueries)):
                kept[key] = function(node)
            else:
                for each in inputs_first(node, lambda one: key in one.__dict__, into=True):
                    each.__dict__[key] = function(each)
        result: Found = kept[key]
        return result

    return found


# -- what a plan is --------------------------------------------------------------------------


def canonical(value: Any) -> str:
    """A text in which only what compares appears, a plan as its digest."""
    if isinstance(value, tuple):
        return f"({','.join(map(canonical, value))})"
    if isinstance(value, Node):
        return value.digest
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, Type):
        return value.value
    if _compared(type(value)) is not None:
        return _canonical_fields(value)
    return repr(value)


def _canonical_fields(value: Any) -> str:
    kind = type(value)
    parts = [canonical(getattr(value, name)) for name in _compared(kind) or ()]
    return f"{kind.__name__}({','.join(parts)})"


def own_text(node: Node, text: Callable[[Any], str]) -> str:
    """The name of a node's kind, and a text of each of its parts that compare but its inputs."""
    values = [getattr(node, name) for name in _compared(type(node)) or ()]
    parts = [text(value) for value in values if not isinstance(value, Node)]
    return f"{type(node).__name__}({','.join(parts)})"


_NAMES: dict[Any, tuple[str, ...]] = {}


def _names(kind: Any) -> tuple[str, ...]:
    """The fields of a dataclass."""
    if kind not in _NAMES:
        _NAMES[kind] = tuple(f.name for f in fields(kind))
    return _NAMES[kind]


_COMPARED: dict[Any, tuple[str, ...] | None] = {}


def _compared(kind: Any) -> tuple[str, ...] | None:
    """The fields of a dataclass that compare; None for what is none."""
    if kind not in _COMPARED:
        names = tuple(f.name for f in fields(kind) if f.compare) if is_dataclass(kind) else None
        _COMPARED[kind] = names
    return _COMPARED[kind]


@follows_from_inputs
def _digest(node: Node) -> str:
    return hashlib.blake2b(_canonical_fields(node).encode(), digest_size=16).hexdigest()


DIGEST = key_of(_digest)


def _plans_in(value: Any) -> list[Node]:
    """The plans inside an expression or a tuple of them, not those inside these plans."""
    found: list[Node] = []
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, Node):
            found.append(one)
        elif isinstance(one, tuple):
            stack += reversed(one)
        elif not isinstance(one, Schema) and (names := _compared(type(one))):
            stack += [getattr(one, name) for name in reversed(names)]
    return found


# -- a plan as text --------------------------------------------------------------------------


@follows_from_inputs
def _line_count(node: Node) -> int:
    """How many lines it has if nothing is left out."""
    return 1 + sum(map(_line_count, node.inputs))


def lines_of(plan: Node, names: Mapping[Node, str] | None = None) -> Iterator[str]:
    """One line a node, indented, with the name it has if any; what is long and read more than once
    is referred to by number."""
    readers: dict[Node, int] = {}
    for node in dict.fromkeys(plan.walk()):
        for below in node.inputs:
            readers[below] = readers.get(below, 0) + 1
    numbers: dict[Node, int] = {}
    stack = [(plan, 0)]
    while stack:
        node, depth = stack.pop()
        if node in numbers:
            yield f"{'  ' * depth}[{numbers[node]}]"
            continue
        mark = ""
        if readers.get(node, 0) > 1 and _line_count(node) > REPEATED_LINES:
            numbers[node] = len(numbers) + 1
            mark = f"[{numbers[node]}] "
        name = f"{names[node]}: " if names and node in names else ""
        yield f"{'  ' * depth}{mark}{name}{node.label()}"
        stack += [(below, depth + 1) for below in reversed(node.inputs)]
