"""The list of operator segments (Path Capacity paper, section 3.3, segment construction).

Pruning keeps a segment only while none of its supersets is listed. Each operator counts the queries
that use it, so a query can go without building the list again: what nobody uses leaves its
segments. That gives the list of the remaining queries because a query that uses an operator also
uses all those upstream, and so has the same segment up to there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

Run: TypeAlias = tuple[int, ...]
"""Consecutive operators of a path, from the leaf up."""


class SegmentList:
    """Segments that no other contains.

    >>> segments = SegmentList()
    >>> segments.register("short", [(1, 2)])
    >>> segments.register("long", [(1, 2, 3), (4,)])
    >>> segments.runs, segments.count(2)
    (((1, 2, 3), (4,)), 2)
    >>> segments.drop("long")
    >>> segments.runs, segments.count(2)
    (((1, 2),), 1)
    """

    def __init__(self) -> None:
        self._of_query: dict[str, frozenset[Run]] = {}
        self._count: Counter[int] = Counter()
        self._with: dict[int, set[Run]] = {}
        self._ending: dict[int, set[Run]] = {}

    @property
    def runs(self) -> tuple[Run, ...]:
        """The operators of each segment, in a fixed order."""
        return tuple(sorted({run for runs in self._with.values() for run in runs}))

    def count(self, operator: int) -> int:
        """How many queries use an operator."""
        return self._count[operator]

    def update(self, wanted: Mapping[str, Iterable[Run]]) -> None:
        """Hold exactly these queries: drop those gone, register those new or cut differently."""
        segments = {query: frozenset(runs) for query, runs in wanted.items()}
        for query, runs in list(self._of_query.items()):
            if segments.get(query) != runs:
                self.drop(query)
        for query in segments.keys() - self._of_query.keys():
            self.register(query, segments[query])

    def register(self, query: str, runs: Iterable[Run]) -> None:
        """Add the segments of a query that are not part of listed ones."""
        self._of_query[query] = frozenset(runs)
        self._count.update(_operators(self._of_query[query]))
        for run in self._of_query[query]:
            self._add(run)

    def drop(self, query: str) -> None:
        """Count down the operators of a query; those that nobody uses leave their segments."""
        operators = _operators(self._of_query.pop(query))
        self._count.subtract(operators)
        unused = {operator for operator in operators if self._count[operator] == 0}
        touched = {run for operator in unused for run in self._with[operator]}
        for run in touched:
            self._remove(run)
        for run in touched:
            left = tuple(operator for operator in run if operator not in unused)
            if left:
                self._add(left)

    def _add(self, run: Run) -> None:
        """Add a segment unless a superset is there, and take its subsets out."""
        new = set(run)
        fewest = min((self._with.get(operator, set()) for operator in run), key=len)
        if any(new.issubset(each) for each in fewest):
            return
        ending = [each for operator in run for each in self._ending.get(operator, ())]
        for each in ending:
            if new.issuperset(each):
                self._remove(each)
        self._ending.setdefault(run[-1], set()).add(run)
        for operator in run:
            self._with.setdefault(operator, set()).add(run)

    def _remove(self, run: Run) -> None:
        self._ending[run[-1]].discard(run)
        for operator in run:
            self._with[operator].discard(run)


def _operators(runs: Iterable[Run]) -> set[int]:
    return {operator for run in runs for operator in run}
