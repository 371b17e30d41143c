"""The allocation of memory that makes all answers together the most precise.

A dynamic program over a grid of units of memory. Of each part of a plan it keeps the choices that
can still be best (`Front`); what "better" has to mean for a part follows from what is above it
(`Better`), since less wrong input does not always make output less wrong. Operators that several
plans or several inputs read are decided first, one choice after another, and paid once. Fronts of
parts that have not changed are kept, so allocating again costs what has changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from millpond.approximation.allocation.fronts import Front, fixed, pruned
from millpond.approximation.allocation.plans import Node, Operator, Query, Stream, operators_of
from millpond.approximation.checks import Floats, require
from millpond.approximation.precision import EXACT, Precision
from millpond.approximation.precision.compositions import Better

Decided = dict[Operator, Precision]
Units = dict[Operator, int]


@dataclass(frozen=True)
class Allocation:
    """How many units each operator gets, by name, and the weighted score of all queries."""

    units: Mapping[str, int]
    score: float


class Allocator:
    """Allocates a number of units of memory to the operators of all active queries."""

    def __init__(self, budget_units: int) -> None:
        require(budget_units >= 0, f"a budget of {budget_units} units")
        self.computed_fronts = 0
        self._budget = budget_units
        self._fronts: dict[tuple[Operator, Better], Front] = {}

    def allocate(self, queries: Sequence[Query]) -> Allocation:
        """The best allocation; inactive queries get nothing."""
        active = [query for query in queries if query.weight > 0]
        least = sum(min(o.units for o in each.options) for each in _all_operators(active))
        require(least <= self._budget, f"{self._budget} units: operators need {least} at least")
        score, units = self._best(active, _shared(active), {}, self._budget) or (0.0, {})
        self._forget(active)
        return Allocation({each.name: number for each, number in units.items()}, score)

    def _best(
        self, queries: Sequence[Query], shared: Sequence[Operator], decided: Decided, left: int
    ) -> tuple[float, Units] | None:
        """The best score and its units, given what is decided of shared operators."""
        if not shared:
            return self._best_apart(queries, decided, left)
        operator, better = shared[0], _better_of(queries)[shared[0]]
        front = self._front(operator, better, decided)
        best: tuple[float, Units] | None = None
        for choice in range(len(front)):
            spent = int(front.units[choice])
            if spent > left:
                continue
            known = Precision(float(front.right[choice]), float(front.wrong[choice]))
            rest = self._best(queries, shared[1:], {**decided, operator: known}, left - spent)
            if rest is not None and (best is None or rest[0] > best[0]):
                units = self._units(operator, better, decided, choice)
                best = rest[0], {**units, **rest[1]}
        return best

    def _best_apart(
        self, queries: Sequence[Query], decided: Decided, left: int
    ) -> tuple[float, Units] | None:
        """The best division of memory between queries that share nothing that is undecided."""
        best: Floats = np.zeros(left + 1)
        choices = []
        for query in queries:
            front = self._front(query.root, Better.ODDS, decided)
            table = np.full((len(front), left + 1), -np.inf)
            for at, spent in enumerate(front.units.tolist()):
                gained = query.weight * front.precision.score[at]  # type: ignore[index]
                table[at, spent:] = best[: left + 1 - spent] + gained if spent <= left else -np.inf
            best = table.max(axis=0)
            choices.append((query, table.argmax(axis=0)))
        if best[left] == -np.inf:
            return None
        return float(best[left]), self._traced(choices, decided, left)

    def _traced(
        self, choices: list[tuple[Query, np.ndarray]], decided: Decided, left: int
    ) -> Units:
        units: Units = {}
        for query, chosen in reversed(choices):
            front = self._front(query.root, Better.ODDS, decided)
            choice = int(chosen[left])
            units |= self._units(query.root, Better.ODDS, decided, choice)
            left -= int(front.units[choice])
        return units

    def _front(self, node: Node, better: Better, decided: Decided) -> Front:
        """The choices for a node and all below it that is not decided."""
        if isinstance(node, Stream):
            return fixed(EXACT)
        if node in decided:
            return fixed(decided[node])
        if not any(each in decided for each in operators_of(node)):
            if (node, better) not in self._fronts:
                self._fronts[node, better] = self._made(node, better, decided)
            return self._fronts[node, better]
        return self._made(node, better, decided)

    def _made(self, operator: Operator, better: Better, decided: Decided) -> Front:
        self.computed_fronts += 1
        needed = operator.composition.keeps(better, operator.can_be_wrong)
        below = [
            self._front(each, need, decided)
            for each, need in zip(operator.inputs, needed, strict=True)
        ]
        return pruned(_composed(operator, below, self._budget), better)

    def _units(self, node: Node, better: Better, decided: Decided, choice: int) -> Units:
        """What each operator gets by a choice."""
        if isinstance(node, Stream) or node in decided:
            return {}
        sources = self._front(node, better, decided).sources[choice].tolist()
        needed = node.composition.keeps(better, node.can_be_wrong)
        units = {node: node.options[sources[-1]].units}
        for each, need, source in zip(node.inputs, needed, sources, strict=False):
            units |= self._units(each, need, decided, source)
        return units

    def _forget(self, queries: Sequence[Query]) -> None:
        """Lets go of the fronts of operators that are in no query any more."""
        there = set(_all_operators(queries))
        self._fronts = {key: front for key, front in self._fronts.items() if key[0] in there}


def _composed(operator: Operator, below: Sequence[Front], budget: int) -> Front:
    """All combinations of choices of the inputs and options of an operator that can be paid."""
    counts = [*(len(front) for front in below), len(operator.options)]
    at = np.indices(counts).reshape(len(counts), -1)
    units = np.array([option.units for option in operator.options])[at[-1]]
    for front, which in zip(below, at, strict=False):
        units = units + front.units[which]
    at, units = at[:, units <= budget], units[units <= budget]
    inputs = [
        Precision(front.right[which], front.wrong[which])
        for front, which in zip(below, at, strict=False)
    ]
    right = np.array([float(option.own.right) for option in operator.options])[at[-1]]
    wrong = np.array([float(option.own.wrong) for option in operator.options])[at[-1]]
    found = operator.composition.compose(inputs, Precision(right, wrong))
    return Front(units, np.asarray(found.right), np.asarray(found.wrong), at.T)


def _all_operators(queries: Sequence[Query]) -> list[Operator]:
    return list(dict.fromkeys(each for query in queries for each in operators_of(query.root)))


def _readings(queries: Sequence[Query]) -> Iterator[tuple[Operator, Operator | None]]:
    """Each operator with each that reads it; a query reads its root."""
    for operator in _all_operators(queries):
        for each in operator.inputs:
            if isinstance(each, Operator):
                yield each, operator
    for query in queries:
        yield query.root, None


def _shared(queries: Sequence[Query]) -> list[Operator]:
    """The operators that are read more than once, those first that others read."""
    read = [operator for operator, _ in _readings(queries)]
    return [operator for operator in _all_operators(queries) if read.count(operator) > 1]


def _better_of(queries: Sequence[Query]) -> dict[Operator, Better]:
    """What better has to mean for each operator: what all that read it need."""
    found = dict.fromkeys(_all_operators(queries), Better.ODDS)
    for operator in reversed(_all_operators(queries)):
        needed = operator.composition.keeps(found[operator], operator.can_be_wrong)
        for each, need in zip(operator.inputs, needed, strict=True):
            if isinstance(each, Operator):
                found[each] = max(found[each], need, key=lambda better: better.value)
    return found
