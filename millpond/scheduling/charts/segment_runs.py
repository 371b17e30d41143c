"""The segments of all paths to some outputs, each once, without listing the paths.

Whether a path is cut between two operators follows from these two and, where a path is cut only
once, from whether it was before. So the segments are the ways between cuts, and how many there are
is known before they are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from millpond.scheduling.charts.segment_list import Run
from millpond.scheduling.charts.ways import Ways

MOST_SEGMENTS = 256
"""The paths of a query with more segments than that are cut wherever they part and meet, too: n
operators may have 2^n segments of which none contains another, and all of them would be listed."""

Falls: TypeAlias = Callable[[int, int], bool]
"""Whether a path is to be cut between two operators."""


class _Place(NamedTuple):
    """An operator on a path, and whether the path was cut before it and is not cut again."""

    operator: int
    is_rest: bool = False


def segment_runs(ways: Ways, outputs: Iterable[int], falls: Falls, once: bool) -> set[Run]:
    """The segments of all paths that end at the outputs; ``once``: a path is cut once at most."""
    segments = _Segments(ways, set(outputs), falls, once)
    if segments.count() > MOST_SEGMENTS:
        segments = _Segments(ways, set(outputs), falls, once, is_short=True)
    return set(segments)


class _Segments:
    """Where segments begin, how they go on, and where they may end."""

    def __init__(
        self, ways: Ways, outputs: set[int], falls: Falls, once: bool, is_short: bool = False
    ) -> None:
        self._ways, self._outputs, self._falls = ways, outputs, falls
        self._once, self._is_short = once, is_short
        self._members = {each for output in outputs for each in ways.above(output)}
        self._starts: dict[_Place, None] = {}
        self._on: dict[_Place, list[_Place]] = {}
        self._ends: set[_Place] = set()
        for operator in sorted(self._members, key=ways.rank.__getitem__):
            self._pass(operator)

    def count(self) -> int:
        """How many there are."""
        found: dict[_Place, int] = {}
        places = sorted(self._on, key=lambda place: self._ways.rank[place.operator], reverse=True)
        for place in places:
            found[place] = (place in self._ends) + sum(found[each] for each in self._on[place])
        return sum(found[start] for start in self._starts)

    def __iter__(self) -> Iterator[Run]:
        for start in self._starts:
            pending: list[tuple[_Place, ...]] = [(start,)]
            while pending:
                places = pending.pop()
                if places[-1] in self._ends:
                    yield tuple(place.operator for place in places)
                pending.extend((*places, place) for place in self._on[places[-1]])

    def _pass(self, operator: int) -> None:
        """Notes what becomes of the segments that come to an operator."""
        if self._ways.plan.by_id[operator].streams:
            self._begin(_Place(operator))
        for place in (_Place(operator), _Place(operator, is_rest=True)):
            if place in self._on:
                if operator in self._outputs:
                    self._ends.add(place)
                for reader in self._readers(operator):
                    self._go_on(place, reader)

    def _go_on(self, place: _Place, reader: int) -> None:
        falls = not place.is_rest and self._falls(place.operator, reader)
        behind = _Place(reader, place.is_rest or (falls and self._once))
        if falls or (self._is_short and self._parts_or_meets(place.operator, reader)):
            self._ends.add(place)
            self._begin(behind)
        else:
            self._on[place].append(behind)
            self._on.setdefault(behind, [])

    def _begin(self, place: _Place) -> None:
        self._starts[place] = None
        self._on.setdefault(place, [])

    def _readers(self, operator: int) -> list[int]:
        downstream = self._ways.plan.by_id[operator].downstream
        return [reader for reader in downstream if reader in self._members]

    def _parts_or_meets(self, operator: int, reader: int) -> bool:
        sources = len(self._ways.producers[reader]) + len(self._ways.plan.by_id[reader].streams)
        return sources > 1 or len(self._readers(operator)) > 1
