"""What a query that is not registered would cost, from what was measured of others.

An operator is taken to cost what those of its kind were seen to, and to read what those below it
put out. A row of constants costs an equal part of what the operators of its group take.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from millpond.identities import BY_NUMBER, OperatorId
from millpond.planning.graph import Graph
from millpond.sharing.queries import Queries

if TYPE_CHECKING:
    from millpond.execution.statistics import Statistics


class Measured:
    """What was measured of the operators that run."""

    def __init__(self, queries: Queries) -> None:
        self._known: dict[str, Statistics] = {}
        self._kinds: dict[type, list[Statistics]] = {}
        found = queries.runtime.statistics if queries.has_runtime else {}
        for identity, each in found.items():
            if each.tally.steps:
                self._known[identity] = each
                kind = type(queries.graph.operators[identity])
                self._kinds.setdefault(kind, []).append(each)
        taken = (each.tally.rows_taken / each.tally.steps for each in self._known.values())
        self._tuples = max(1, round(max(taken, default=0)))
        """How many tuples a step has, about."""

    def cost_of_new(self, graph: Graph, new: Collection[str]) -> str | None:
        """What some operators of a graph would cost, in words; None if nothing was measured."""
        if not self._known:
            return None
        step = row = 0.0
        unlike: list[str] = []
        reached: dict[str, float] = {}
        for identity in sorted(map(OperatorId, graph.operators), key=BY_NUMBER):
            inputs = graph.queues_of(identity)
            reached[identity] = sum(reached.get(each, each.relation is None) for each in inputs)
            if identity in new:
                like = self._like(graph, identity)
                if not like:
                    unlike.append(graph.operators[identity].label())
                step += _median(like, lambda each: each.step_seconds)
                row += reached[identity] * _median(like, lambda each: each.cost_seconds)
            passed = self._like(graph, identity)
            reached[identity] *= _median(passed, lambda each: each.selectivity) if passed else 1.0
        if len(unlike) == len(new):
            return "estimated cost: unknown, nothing like it has run"
        missing = f", without {', '.join(unlike)}, the like of which has not run" if unlike else ""
        return f"{self._told(step, row)}, as others like it take{missing}"

    def cost_of_row(self, operators: Collection[str], queries: int) -> str | None:
        """What one query more in a group would cost, in words; None if nothing was measured."""
        known = [self._known[each] for each in operators if each in self._known]
        taken = max((each.tally.rows_taken for each in known), default=0)
        if not taken:
            return None
        row = sum(each.tally.seconds for each in known) / taken / (queries + 1)
        return f"{self._told(0.0, row)}, its part of what the group takes"

    def _told(self, step: float, row: float) -> str:
        seconds = _duration(step + row * self._tuples)
        return f"estimated cost: {seconds} more for a step of {self._tuples:,} tuples"

    def _like(self, graph: Graph, identity: OperatorId) -> list[Statistics]:
        """What is known of an operator, or of those of its kind."""
        if identity in self._known:
            return [self._known[identity]]
        return self._kinds.get(type(graph.operators[identity]), [])


def _median(some: Sequence[Statistics], value: Callable[[Statistics], float]) -> float:
    return statistics.median(map(value, some)) if some else 0.0


def _duration(seconds: float) -> str:
    """A duration with two digits, about.

    >>> [_duration(each) for each in (0.0000014, 0.0123, 0.15)]
    ['1.4 µs', '12 ms', '150 ms']
    """
    number, unit = (seconds * 1e6, "µs") if seconds < 1e-3 else (seconds * 1e3, "ms")
    return f"{number:.2g} {unit}" if number < 100 else f"{number:.0f} {unit}"
