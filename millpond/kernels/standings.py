"""The ranks of rows from instant to instant, group by group."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

Ranks = dict[tuple[int, int], int]
"""How many copies of a row have a rank, in order."""

Change = tuple[int, int, int, int]
"""The group and the time of a change, its row and its weight."""


@dataclass(frozen=True)
class Rule:
    """Which ranks are given, and up to which one; rows with the same number in ``peers`` tie."""

    function: str
    limit: int | None
    peers: list[int]

    def ranks(self, line: list[int], counts: dict[int, int]) -> Ranks:
        """The ranks of the rows of a group, which are in order."""
        found: Ranks = {}
        for row, rank, copies in self._ranked(line, counts):
            if self.limit is not None and rank > self.limit:
                break
            found[row, rank] = copies
        return found

    def _ranked(self, line: list[int], counts: dict[int, int]) -> Iterator[tuple[int, int, int]]:
        if self.function == "row_number":
            copied = (row for row in line for _ in range(counts[row]))
            yield from ((row, rank, 1) for rank, row in enumerate(copied, 1))
            return
        passed, rank, peer = 0, 0, -1
        for row in line:
            if self.peers[row] != peer:
                rank = passed + 1 if self.function == "rank" else rank + 1
                peer = self.peers[row]
            yield row, rank, counts[row]
            passed += counts[row]

    def is_behind(self, row: int, ranks: Ranks) -> bool:
        """Whether a row comes after all ranks that are given, so that it has none."""
        if self.limit is None or not ranks:
            return False
        last, rank = next(reversed(ranks))
        if row <= last:
            return False
        if self.function == "row_number":
            return rank == self.limit
        given = rank if self.function == "dense_rank" else sum(ranks.values())
        return given >= self.limit and self.peers[row] != self.peers[last]


@dataclass
class Standings:
    """What changes in the ranks, with the time of each change; and who has one in the end."""

    time: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    weight: list[int] = field(default_factory=list)
    final: dict[int, int] = field(default_factory=dict)
    """How many copies of each row have a rank in the end."""

    def note(self, time: int, before: Ranks, now: Ranks) -> None:
        """Ranks have become others."""
        for ranks, others, sign in ((before, now, -1), (now, before, 1)):
            for key, copies in ranks.items():
                more = copies - others.get(key, 0)
                if more > 0:
                    self.time.append(time)
                    self.row.append(key[0])
                    self.rank.append(key[1])
                    self.weight.append(sign * more)

    def end(self, ranks: Ranks) -> None:
        """These are the ranks of a group in the end."""
        for (row, _), copies in ranks.items():
            self.final[row] = self.final.get(row, 0) + copies


def standings(
    rule: Rule, lines: dict[int, list[int]], counts: dict[int, int], changes: list[Change]
) -> Standings:
    """The ranks in a step; ``lines``: the rows of each group, in order, and ``counts``: how often
    each is there. Changes are in order of group and time."""
    found, counts, rest = Standings(), dict(counts), dict(lines)
    for group, of_group in groupby(changes, itemgetter(0)):
        line = list(rest.pop(group, ()))
        ranks = rule.ranks(line, counts)
        for time, of_instant in groupby(of_group, itemgetter(1)):
            moved = {row for _, _, row, _ in _added(of_instant, counts)}
            for row in moved:
                _place(line, row, counts[row])
            if not all(rule.is_behind(row, ranks) for row in moved):
                now = rule.ranks(line, counts)
                found.note(time, ranks, now)
                ranks = now
        found.end(ranks)
    for line in rest.values():
        found.end(rule.ranks(line, counts))
    return found


def _added(changes: Iterator[Change], counts: dict[int, int]) -> list[Change]:
    """The changes, which are counted."""
    listed = list(changes)
    for _, _, row, weight in listed:
        counts[row] = counts.get(row, 0) + weight
    return listed


def _place(line: list[int], row: int, count: int) -> None:
    """Puts a row into a line, or takes it out if there is none of it."""
    at = bisect.bisect_left(line, row)
    is_there = at < len(line) and line[at] == row
    if count and not is_there:
        line.insert(at, row)
    elif is_there and not count:
        del line[at]
