"""The segments of all paths to some outputs, each once, without listing the paths.

Whether a path is cut between two operators follows from these two and, where a path is cut only
once, from whether it was before. So the segments are the ways between cuts, and how many there are
is known before they are listed.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from millpond.scheduling.charts.segment_list import Run
from millpond.scheduling.charts.ways import Ways

MOST_SEGMENTS = 256
"""The paths of a query with more segments than that are cut wherever they part and meet, too: n
operators may have 2^n segments of which none contains another, and all of them would be listed."""

Falls: TypeAlias = Callable[[int, int], bool]
"""Whether a path is to be cut between two operators."""


class _Stop(NamedTuple):
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
        self._starts: dict[_Stop, None] = {}
        self._on: dict[_Stop, list[_Stop]] = {}
        self._ends: set[_Stop] = set()
        for operator in sorted(self._members, key=ways.rank.__getitem__):
            self._pass(operator)

    def count(self) -> int:
        """How many there are."""
        found: dict[_Stop, int] = {}
        stops = sorted(self._on, key=lambda stop: self._ways.rank[stop.operator], reverse=True)
        for stop in stops:
            found[stop] = (stop in self._ends) + sum(found[each] for each in self._on[stop])
        return sum(found[start] for start in self._starts)

    def __iter__(self) -> Iterator[Run]:
        for start in self._starts:
            pending: list[tuple[_Stop, ...]] = [(start,)]
            while pending:
                stops = pending.pop()
                if stops[-1] in self._ends:
                    yield tuple(stop.operator for stop in stops)
                pending.extend((*stops, stop) for stop in self._on[stops[-1]])

    def _pass(self, operator: int) -> None:
        """Notes what becomes of the segments that come to an operator."""
        if self._ways.plan.by_id[operator].streams:
            self._begin(_Stop(operator))
        for stop in (_Stop(operator), _Stop(operator, is_rest=True)):
            if stop in self._on:
                if operator in self._outputs:
                    self._ends.add(stop)
                for reader in self._readers(operator):
                    self._go_on(stop, reader)

    def _go_on(self, stop: _Stop, reader: int) -> None:
        falls = not stop.is_rest and self._falls(stop.operator, reader)
        behind = _Stop(reader, stop.is_rest or (falls and self._once))
        if falls or (self._is_short and self._parts_or_meets(stop.operator, reader)):
            self._ends.add(stop)
            self._begin(behind)
        else:
            self._on[stop].append(behind)
            self._on.setdefault(behind, [])

    def _begin(self, stop: _Stop) -> None:
        self._starts[stop] = None
        self._on.setdefault(stop, [])

    def _readers(self, operator: int) -> list[int]:
        downstream = self._ways.plan.by_id[operator].downstream
        return [reader for reader in downstream if reader in self._members]

    def _parts_or_meets(self, operator: int, reader: int) -> bool:
        sources = len(self._ways.producers[reader]) + len(self._ways.plan.by_id[reader].streams)
        return sources > 1 or len(self._readers(operator)) > 1
