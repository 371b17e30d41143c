"""Rows that a window join had to let go, counted by key: so it is known what is missing.

A pair of a window join is made when the later of its rows comes, if the earlier one is still there.
So what is missing is, for each row that comes, the evicted rows of its key that would not have left
the window yet. They are counted by key and by when they came, in panes of 2^level times: where
counters are too many, panes are laid together two by two, and at last the smallest counters go.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from millpond.approximation.checks import require
from millpond.approximation.intervals.interval import Interval

BYTES_OF_A_COUNTER = 128
"""About what a key and its number of rows take in a dictionary."""
_PaneName: TypeAlias = tuple[int, int]
"""Its level (2^level times wide) and which pane of that width it is."""


@dataclass
class _Pane:
    rows: Counter[Hashable] = field(default_factory=Counter)
    uncounted: int = 0
    """As many rows of a key may be there beside those that are counted."""


class EvictedRows:
    """How many rows of a key are missing from a window: those that came after now - window.

    >>> gone = EvictedRows(window=10, memory_bytes=1024)
    >>> gone.add([("a", 1), ("b", 5), ("a", 5)])
    >>> gone.missed("a", now=9), gone.missed("a", now=11)
    (Interval(low=2, high=2), Interval(low=1, high=1))
    """

    def __init__(self, window: int, memory_bytes: int) -> None:
        require(window > 0, f"a window of {window}: nothing would be in it")
        self._window = window
        self._panes: dict[_PaneName, _Pane] = {}
        self.change_memory(memory_bytes)

    @property
    def memory_bytes(self) -> int:
        """How much memory is taken, about."""
        return self._counters() * BYTES_OF_A_COUNTER

    def change_memory(self, memory_bytes: int) -> None:
        """Changes how much memory may be taken; with less, panes are laid together."""
        require(memory_bytes >= BYTES_OF_A_COUNTER, f"{memory_bytes} bytes: not enough for a key")
        self._most = memory_bytes // BYTES_OF_A_COUNTER
        self._level = 0
        self._shrink()

    def add(self, rows: Iterable[tuple[Hashable, int]]) -> None:
        """Counts evicted rows, by their keys and the times at which they had come."""
        for key, time in rows:
            self._pane((self._level, time >> self._level)).rows[key] += 1
        self._shrink()

    def forget(self, now: int) -> None:
        """Lets go of the panes of which every row would have left the window by now."""
        gone = [name for name in self._panes if _last(name) <= now - self._window]
        for name in gone:
            del self._panes[name]

    def missed(self, key: Hashable, now: int) -> Interval:
        """How many pairs a row of this key misses that comes now: certain bounds."""
        start, low, high = now - self._window, 0, 0
        for name, pane in self._panes.items():
            if _last(name) > start:
                counted = pane.rows.get(key, 0)
                low += counted if _first(name) > start else 0
                high += counted + pane.uncounted
        return Interval(low, high)

    def _pane(self, name: _PaneName) -> _Pane:
        return self._panes.setdefault(name, _Pane())

    def _counters(self) -> int:
        return sum(len(pane.rows) for pane in self._panes.values())

    def _shrink(self) -> None:
        while self._counters() > self._most:
            level = min(level for level, _ in self._panes)
            if 1 << level < self._window:
                self._lay_together(level)
            else:
                self._let_go()

    def _lay_together(self, level: int) -> None:
        """The panes of a level become such of twice the width, and new rows too come into these."""
        self._level = max(self._level, level + 1)
        for name in [name for name in self._panes if name[0] == level]:
            narrow, wide = self._panes.pop(name), self._pane((level + 1, name[1] >> 1))
            wide.rows.update(narrow.rows)
            wide.uncounted += narrow.uncounted

    def _let_go(self) -> None:
        """The smallest counters go, a quarter more than must: each time costs bounds."""
        counters = [
            (rows, name, key)
            for name, pane in self._panes.items()
            for key, rows in pane.rows.items()
        ]
        counters.sort(key=lambda counter: counter[0])
        largest = dict[_PaneName, int]()
        for rows, name, key in counters[: len(counters) - max(1, 3 * self._most // 4)]:
            del self._panes[name].rows[key]
            largest[name] = rows
        for name, rows in largest.items():
            self._panes[name].uncounted += rows


def _first(name: _PaneName) -> int:
    """The first time of a pane."""
    return name[1] << name[0]


def _last(name: _PaneName) -> int:
    """The last time of a pane."""
    return (name[1] + 1 << name[0]) - 1
