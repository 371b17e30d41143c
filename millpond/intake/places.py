"""Where numbers came first, or last, in arrays: to note and to ask costs what is noted or asked,
not what is known."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from millpond.intake.packing import packed, unpacked
from millpond.kernels.groups import Ints
from millpond.storage.transitions import Noted

NOWHERE = -1
"""The place of a number that is not known."""


@dataclass(frozen=True, eq=False)
class Sightings(Noted):
    """Different numbers, and the place of each, which is no other's."""

    values: Ints
    places: Ints

    @staticmethod
    def none() -> Sightings:
        """Of no number."""
        return Sightings(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sightings) and self.to_data() == other.to_data()

    def __hash__(self) -> int:
        return hash(self.to_data())

    def to_data(self) -> str:
        """As the log has it."""
        return packed(np.stack([self.places, self.values]))

    @staticmethod
    def read(told: Sightings | str | Iterable[Any], of_first: bool = False) -> Sightings:
        """What a log says; one of before has a value, its first and its last place, one by one."""
        if isinstance(told, Sightings):
            return told
        if isinstance(told, str):
            places, values = unpacked(told, 2)
            return Sightings(values, places)
        triples: list[Any] = list(told)
        rows = [(_number(value), first, last) for value, first, last in triples]
        listed = np.array(rows, dtype=np.int64).reshape(-1, 3)
        return Sightings(listed[:, 0], listed[:, 1 if of_first else 2])

    @staticmethod
    def joined(parts: Iterable[Sightings]) -> Sightings:
        """All of them."""
        listed = list(parts)
        if len(listed) == 1:
            return listed[0]
        values = [np.empty(0, dtype=np.int64), *(each.values for each in listed)]
        places = [np.empty(0, dtype=np.int64), *(each.places for each in listed)]
        return Sightings(np.concatenate(values), np.concatenate(places))

    def chosen(self, which: Any) -> Sightings:
        """Some of them."""
        return Sightings(self.values[which], self.places[which])

    def by_place(self) -> Sightings:
        """In order of place."""
        if np.all(self.places[1:] > self.places[:-1]):
            return self
        return self.chosen(np.argsort(self.places, kind="stable"))

    def by_value(self, since: int, keeps_first: bool) -> Sightings:
        """In order of value, the first or the last place of each that is not before one."""
        if np.all(self.values[1:] > self.values[:-1]):
            return self if self.places.min(initial=since) >= since else self.since(since)
        order = np.lexsort((self.places, self.values))
        ranked = self.chosen(order[self.places[order] >= since])
        changes = ranked.values[1:] != ranked.values[:-1]
        if changes.all():
            return ranked
        return ranked.chosen(np.insert(changes, 0 if keeps_first else len(changes), True))

    def since(self, place: int) -> Sightings:
        """Those that are not before a place."""
        return self.chosen(self.places >= place)

    def places_of(self, values: Ints) -> Ints:
        """Where values came, if these are in order of value."""
        at = np.minimum(self.values.searchsorted(values), len(self) - 1)
        return np.where(self.values[at] == values, self.places[at], NOWHERE)


def _number(value: int | Sequence[int]) -> int:
    """A number, or one that two of 32 bits make."""
    if isinstance(value, int):
        return value
    high, low = value
    return (high << 32) | (low & 0xFFFFFFFF)


class Line:
    """Sightings in order of place, behind which others come, and of which the first go."""

    def __init__(self) -> None:
        self._parts: deque[Sightings] = deque()
        self._count = 0

    def add(self, come: Sightings) -> None:
        """More have come."""
        if not len(come):
            return
        self._count += len(come)
        behind = come.by_place()
        if self._parts and len(self._parts[-1]) + len(come) <= _PART:
            behind = Sightings.joined([self._parts.pop(), behind])
        self._parts.append(behind)

    def take_before(self, place: int) -> Sightings:
        """Takes away those whose place is before one."""
        gone = []
        while self._parts and self._parts[0].places[0] < place:
            first = self._parts.popleft()
            count = int(first.places.searchsorted(place))
            gone.append(first.chosen(slice(0, count)))
            if count < len(first):
                self._parts.appendleft(first.chosen(slice(count, None)))
        taken = Sightings.joined(gone)
        self._count -= len(taken)
        return taken

    def keep(self, limit: int) -> int:
        """Forgets the first of more than so many, and says where the others begin."""
        while self._count > limit:
            first, over = self._parts.popleft(), self._count - limit
            if len(first) > over:
                self._parts.appendleft(first.chosen(slice(over, None)))
            self._count -= min(over, len(first))
        return int(self._parts[0].places[0])

    @property
    def listed(self) -> Sightings:
        """All of them."""
        return Sightings.joined(self._parts)


_PART = 1_024
"""Fewer sightings are put together."""


class Places:
    """Where numbers came first, or last; what came before a place is forgotten.

    A number may be in several runs, each of which is in order of value and at least twice as large
    as the next one.
    """

    def __init__(self, keeps_first: bool) -> None:
        self._runs: list[Sightings] = []
        self._keeps_first = keeps_first
        self.since = 0
        """The place before which all is forgotten."""

    def note(self, come: Sightings) -> None:
        """Numbers have come, behind all that is known."""
        run = self._run(come)
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = self._run(Sightings.joined([self._runs.pop(), run]))
        self._runs.append(run)

    def _run(self, come: Sightings) -> Sightings:
        return come.by_value(self.since, self._keeps_first)

    def of(self, values: Ints) -> Ints:
        """Where some numbers came."""
        found = np.full(len(values), NOWHERE)
        if not len(values):
            return found
        least, largest = values.min(), values.max()
        for run in self._runs:  # what came later is further behind
            if run.values[-1] < least or run.values[0] > largest:
                continue
            places = run.places_of(values)
            is_new = places >= self.since
            if self._keeps_first:
                is_new &= found == NOWHERE
            found[is_new] = places[is_new]
        return found

    # -- as those ask who look at one tuple after the other -------------------------------------

    def __contains__(self, value: int) -> bool:
        return self._place(value) != NOWHERE

    def __getitem__(self, value: int) -> tuple[int, int]:
        return (place := self._place(value)), place

    def _place(self, value: int) -> int:
        return int(self.of(np.array([value], dtype=np.int64))[0])
