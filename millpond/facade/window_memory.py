"""Watches what windows take that may be shortened, and allots the memory there is to them.

While all of them have room whole nothing is shortened. What they would take follows from how many
tuples come in a tick, so that a window that is shortened is whole again once a burst is over.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterator

from millpond.approximation.allocation.windows import UNITS, WindowAllocation, WindowNeed
from millpond.catalog import QueryEntry, Tolerance
from millpond.cql.algebra import RangeWindow, StreamScan
from millpond.identities import StreamId
from millpond.settings import format_bytes
from millpond.sharing.queries import Queries

logger = logging.getLogger("millpond")

ROOM = 0.75
"""Such a part of what pages may take is for windows and what waits: more would be spilled."""
SPANS = 16
"""How many tuples come in a tick is counted over such a part of a window."""
MARKS = 64
"""From so many looks at least, where there are as many."""


class WindowMemory:
    """Allots memory for all streams; the engine's lock is held."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries
        self._allocation = WindowAllocation()
        self._marks: dict[StreamId, deque[tuple[int, int]]] = {}
        """By what is kept: times of its stream, and how many tuples had come by then."""
        self._told: dict[StreamId, str] = {}

    def look(self) -> None:
        """Allots what there is, and says which windows are shortened since the last look."""
        windows = self._queries.ground.inputs.windows
        found = {each.kept: each for each in self._tolerances()}
        self._marks = {name: marks for name, marks in self._marks.items() if name in self._names()}
        if not found or self._queries.ground.settings.overload == "wait":
            windows.allotted = {}
            return
        unit = max(1, self._queries.ground.budget.page_bytes // UNITS)
        needs = [self._need(each, unit) for each in found.values()]
        allotted = self._allocation.allot(needs, self._room(list(found.values()), unit))
        windows.allotted = {StreamId(name): units * unit for name, units in allotted.items()}
        for each in found.values():
            self._tell(each)

    def _names(self) -> set[StreamId]:
        return {StreamId(each.kept) for each in self._tolerances()}

    def _entries(self) -> Iterator[tuple[QueryEntry, Tolerance]]:
        for entry in self._queries.ground.catalog.of_kind(QueryEntry):
            said = entry.tolerates
            if entry.active and said is not None and said.shortest_ticks is not None:
                yield entry, said

    def _tolerances(self) -> Iterator[Tolerance]:
        """What the active queries tolerate whose windows may be shortened."""
        return (said for _, said in self._entries())

    def _room(self, tolerances: list[Tolerance], unit: int) -> int:
        """How many units there are for their windows, beside what else is held."""
        ground, runtime = self._queries.ground, self._queries.runtime
        held = runtime.backlog.memory_bytes + ground.deliveries.keeper.books.memory_bytes
        own = sum(ground.inputs.windows.bytes(each) for each in tolerances)
        others = max(0, held - own)
        return max(0, math.floor((ROOM * ground.budget.page_bytes - others) / unit))

    def _need(self, said: Tolerance, unit: int) -> WindowNeed:
        """What a window takes when it is whole, and at its shortest."""
        queries = [entry for entry, each in self._entries() if each.kept == said.kept]
        ticks = max(map(_length, queries))
        coming, present = self._bytes_a_tick(said, ticks), self._present(said)
        whole = max(coming * (ticks + 1), present)
        least = min(whole, coming * ((said.shortest_ticks or 0) + 1))
        weight = sum(each.weight for each in queries)
        return WindowNeed(said.kept, math.ceil(whole / unit), math.floor(least / unit), weight)

    def _present(self, said: Tolerance) -> float:
        return float(self._queries.ground.inputs.windows.bytes(said))

    def _bytes_a_tick(self, said: Tolerance, ticks: int) -> float:
        """What comes in a tick of late."""
        inputs = self._queries.ground.inputs
        stream = inputs.streams[StreamId(said.stream)]
        if not ticks or stream.largest is None:
            return 0.0
        marks = self._marks.setdefault(StreamId(said.kept), deque())
        last, arrived = stream.largest, stream.arrived
        if not marks or last - marks[-1][0] > ticks / SPANS / MARKS:
            marks.append((last, arrived))
        while len(marks) > 1 and last - marks[1][0] >= ticks / SPANS:
            marks.popleft()
        first, before = marks[0]
        queues = [inputs.streams[StreamId(name)].queue for name in (said.kept, said.young)]
        rows = sum(each.rows for each in queues)
        row_bytes = sum(each.bytes for each in queues) / rows if rows else 0.0
        rate = inputs.rate(StreamId(said.stream))
        return rate * row_bytes * (arrived - before) / max(1, last - first)

    def _tell(self, said: Tolerance) -> None:
        """Says so when a window begins to be shortened, and when it no more is."""
        inputs, name = self._queries.ground.inputs, StreamId(said.kept)
        is_cut = inputs.windows.is_shortened(said)
        told = inputs.windows.told(said) if is_cut else ""
        before, self._told[name] = self._told.get(name, ""), told
        if told and not before:
            taken = format_bytes(inputs.windows.bytes(said))
            logger.info("windows over %s: %s and takes %s", said.stream, told, taken)
        elif before and not told:
            logger.info("windows over %s are whole again for what comes now", said.stream)


def _length(entry: QueryEntry) -> int:
    """How many ticks the window of a query has; 0 if it has no end, and so retains nothing."""
    said = entry.tolerates
    scans = (each for each in entry.plan.walk() if isinstance(each, RangeWindow))
    window = next(each for each in scans if _is_of(each, said.kept if said else ""))
    return window.length_ticks or 0


def _is_of(window: RangeWindow, name: str) -> bool:
    return isinstance(window.input, StreamScan) and window.input.name == name
