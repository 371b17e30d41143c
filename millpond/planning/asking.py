"""Questions about what is below an operator: each is answered once, and not of any depth.

Views on views may read one operator along very many paths. What is too deep counts as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from millpond.cql.node import Node
from millpond.identities import OperatorId
from millpond.planning.branches import Branch, branches
from millpond.planning.graph import Graph

MOST_DEEP = 4
"""So many operators, one below the other, are looked at."""

MOST_BRANCHES = 6
"""So many branches of a fragment."""

P = ParamSpec("P")
T = TypeVar("T")
Question = Callable[Concatenate[Graph, OperatorId, P], T]


@dataclass
class _Asked:
    """What was answered since the outermost question was asked, and how deep one is below it."""

    answers: dict[tuple[Hashable, ...], Any] = field(default_factory=dict)
    depth: int = 0


_asked: ContextVar[_Asked | None] = ContextVar("asked", default=None)


def asked_once(unknown: Any) -> Callable[[Question[P, T]], Question[P, T]]:
    """Has a question about an operator be answered once within an outermost one, and by
    ``unknown`` too far below that."""

    def once(question: Question[P, T]) -> Question[P, T]:
        def ask(graph: Graph, identity: OperatorId, /, *more: P.args, **named: P.kwargs) -> T:
            asked = _asked.get()
            if asked is None:
                token = _asked.set(_Asked())
                try:
                    return ask(graph, identity, *more, **named)
                finally:
                    _asked.reset(token)
            about = (question.__qualname__, id(graph), identity, *map(_hashable, more))
            if about not in asked.answers:
                if asked.depth >= MOST_DEEP:
                    too_deep: T = unknown
                    return too_deep
                asked.depth += 1
                try:
                    asked.answers[about] = question(graph, identity, *more, **named)
                finally:
                    asked.depth -= 1
            answer: T = asked.answers[about]
            return answer

        return ask

    return once


def few_branches(fragment: Node) -> list[Branch] | None:
    """The branches of a fragment; None if there are very many."""
    return branches(fragment) if _count(fragment, {}) <= MOST_BRANCHES else None


def _count(node: Node, known: dict[int, int]) -> int:
    """How many queues a fragment reads, along all paths."""
    if id(node) not in known:
        below = sum(_count(each, known) for each in node.inputs)
        known[id(node)] = max(1, below)
    return known[id(node)]


def _hashable(value: Any) -> Hashable:
    """What stands for a value that stays as it is while a question is answered."""
    return value if isinstance(value, Hashable) else id(value)
