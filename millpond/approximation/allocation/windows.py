"""Memory for windows that may be shortened, given to those whose queries gain the most by it.

Of a window that takes W bytes when it is whole and may take M, the part M / W of its tuples is
there; of the others only their number, least and largest values are known. That part is what its
queries get right, in the words of the allocation, with the sum of their weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from millpond.approximation.allocation.allocator import Allocator
from millpond.approximation.allocation.plans import Operator, Option, Query, Stream
from millpond.approximation.precision import Precision, Projection

UNITS = 64
"""The budget has so many units of memory."""


@dataclass(frozen=True)
class WindowNeed:
    """What a window takes: in units, whole and at its shortest; and how much it matters."""

    name: str
    units: int
    least_units: int
    weight: float

    @property
    def operator(self) -> Operator:
        """The window as the allocation sees it."""
        return Operator(self.name, Projection(), (Stream(self.name),), tuple(self._options()))

    def _options(self) -> Iterator[Option]:
        for units in range(min(self.least_units, self.units), self.units + 1):
            yield Option(units, Precision(units / self.units if self.units else 1.0, 0.0))


class WindowAllocation:
    """Allots units to windows; what has not changed since the last time is not computed again."""

    def __init__(self) -> None:
        self._allocators: dict[int, Allocator] = {}
        self._last: tuple[tuple[WindowNeed, ...], int] | None = None
        self._found: dict[str, int] = {}

    @property
    def computed_fronts(self) -> int:
        """How often the choices for a window were computed."""
        return sum(each.computed_fronts for each in self._allocators.values())

    def allot(self, needs: Sequence[WindowNeed], room_units: int) -> dict[str, int]:
        """How many units each window may take, by names; none are named if all can be whole.

        >>> half = [WindowNeed("a", 40, 10, 1.0), WindowNeed("b", 40, 10, 3.0)]
        >>> WindowAllocation().allot(half, 60)
        {'a': 20, 'b': 40}
        """
        if sum(each.units for each in needs) <= room_units:
            return {}
        asked = tuple(needs), room_units
        if asked != self._last:
            self._last, self._found = asked, self._allotted(needs, room_units)
        return dict(self._found)

    def _allotted(self, needs: Sequence[WindowNeed], room_units: int) -> dict[str, int]:
        least = {each.name: min(each.least_units, each.units) for each in needs if each.weight > 0}
        if sum(least.values()) >= room_units:  # none can be shorter
            return {each.name: least.get(each.name, 0) for each in needs}
        allocator = self._allocators.setdefault(room_units, Allocator(room_units))
        queries = [Query(each.name, each.operator, each.weight) for each in needs]
        found = allocator.allocate(queries).units
        return {each.name: found.get(each.name, 0) for each in needs}
