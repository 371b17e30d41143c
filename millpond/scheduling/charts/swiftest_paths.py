"""The path of the highest processing capacity through each operator, without listing all paths.

A path's priority is C^P by (2.2) of the Path Capacity paper times the weight of the query at its
end. The work behind an operator, for one of its tuples, is least where that behind its readers is,
whatever came before; so it is worked out from the outputs upwards, once for each weight at the end.
Seen from an operator the same holds of all that are above it. Of equal paths the first one counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from millpond.scheduling.charts.capacity import processing_capacity, rounded, side
from millpond.scheduling.charts.ways import Ways
from millpond.scheduling.snapshot import OperatorPath, PlanSnapshot, Producer

Outlook: TypeAlias = Mapping[float, float]
"""The least seconds of work to the end of a path, for each weight that may be there."""

Source = TypeVar("Source", int, str)


class Passed(NamedTuple):
    """The work of one tuple so far, and how many tuples became of it."""

    seconds: float = 0.0
    tuples: float = 1.0

    def through(self, plan: PlanSnapshot, operator: int, source: Producer) -> Passed:
        """After one more operator."""
        cost_seconds, selectivity = side(plan.by_id[operator], source)
        return Passed(self.seconds + self.tuples * cost_seconds, self.tuples * selectivity)

    def priority(self, outlook: Outlook) -> float:
        """The best that can become of it."""
        return max(
            (path_priority(self.seconds + self.tuples * each, w) for w, each in outlook.items()),
            default=-math.inf,
        )


def path_priority(seconds: float, weight: float) -> float:
    """The capacity of a path that takes so long for a tuple, times a weight."""
    return rounded((1 / seconds if seconds > 0 else math.inf) * weight)


def priority_of(plan: PlanSnapshot, path: OperatorPath) -> float:
    """The capacity of a path times the weight of its query."""
    capacity = processing_capacity(plan, path.operators, path.stream)
    return rounded(capacity * plan.by_id[path.operators[-1]].weight)


class SwiftestPaths:
    """Finds the first of the best paths through each operator. `passes` counts edges looked at."""

    def __init__(self, plan: PlanSnapshot) -> None:
        self.plan, self.ways = plan, Ways(plan)
        self.passes = 0
        self._behind: dict[int, Outlook] = {}
        for identity in reversed(plan.upstream_first):
            self._behind[identity] = self._outlook(identity)

    def found(self) -> Sequence[OperatorPath]:
        """The paths, each once, in their order."""
        paths: dict[tuple[int, ...], OperatorPath] = {}
        covered: set[int] = set()
        for operator in self.plan.by_id:
            only = self.ways.is_on_one_path(operator)
            if only and operator in covered:
                continue
            path = self.ways.first_path(operator) if only else self._best(operator)
            covered.update(path.operators)
            paths[self.ways.order_of(path)] = path
        return [paths[order] for order in sorted(paths)]

    def _outlook(self, identity: int) -> Outlook:
        operator = self.plan.by_id[identity]
        ends = [(operator.weight, 0.0)] if operator.is_output else []
        readers = (self._on(identity, each, self._behind[each]) for each in operator.downstream)
        return _best_of([*ends, *(pair for each in readers for pair in each)])

    def _on(self, source: Producer, reader: int, behind: Outlook) -> Iterator[tuple[float, float]]:
        """What is behind a source by one reader, from what is behind that."""
        self.passes += 1
        cost_seconds, selectivity = side(self.plan.by_id[reader], source)
        for weight, seconds in behind.items():
            yield weight, cost_seconds + selectivity * seconds

    def _best(self, operator: int) -> OperatorPath:
        """Goes down from the best leaf, always by the first of the best readers."""
        towards, readers = self._towards(operator)
        leaves = (each for each in self.ways.leaves if each[0] in towards)
        leaf, stream = self._first_best(leaves, Passed(), towards)
        operators, passed = [leaf], Passed().through(self.plan, leaf, stream)
        while operators[-1] != operator:
            last = operators[-1]
            reader, _ = self._first_best(((each, last) for each in readers[last]), passed, towards)
            operators.append(reader)
            passed = passed.through(self.plan, reader, last)
        return OperatorPath(stream, (*operators, *self._to_the_end(operator, passed)))

    def _to_the_end(self, operator: int, passed: Passed) -> Iterator[int]:
        while True:
            last = self.plan.by_id[operator]
            ends = passed.priority({last.weight: 0.0}) if last.is_output else -math.inf
            if ends >= passed.priority(self._behind[operator]):
                return
            steps = ((each, operator) for each in last.downstream)
            reader, _ = self._first_best(steps, passed, self._behind)
            passed = passed.through(self.plan, reader, operator)
            operator = reader
            yield operator

    def _first_best(
        self, steps: Iterable[tuple[int, Source]], passed: Passed, behind: Mapping[int, Outlook]
    ) -> tuple[int, Source]:
        """The first of the steps that lead to the best end: an operator and what it reads."""

        def priority(step: tuple[int, Source]) -> float:
            self.passes += 1
            return passed.through(self.plan, *step).priority(behind[step[0]])

        return max(steps, key=priority)

    def _towards(self, operator: int) -> tuple[dict[int, Outlook], dict[int, list[int]]]:
        """What is behind those above an operator by way of it, and by which readers."""
        above = self.ways.above(operator)
        readers: dict[int, list[int]] = {each: [] for each in above}
        towards = {operator: self._behind[operator]}
        for identity in above:
            for producer in self.ways.producers[identity]:
                readers[producer].append(identity)
        for identity in reversed(above[:-1]):
            on = (self._on(identity, each, towards[each]) for each in readers[identity])
            towards[identity] = _best_of([pair for each in on for pair in each])
            readers[identity].sort(key=self.ways.places[identity].__getitem__)
        return towards, readers


def _best_of(pairs: Iterable[tuple[float, float]]) -> Outlook:
    """The least seconds for each weight, without those that a larger weight undercuts."""
    found: dict[float, float] = {}
    least = math.inf
    for weight, seconds in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
        if seconds < least:
            found[weight] = least = seconds
    return found
