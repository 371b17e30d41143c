"""How far a tuple may be from its like, and how far it might be before.

Where k has grown at a place w, what was freed by then was freed by the old k. So the *reach* of a
place p, before which nothing may be that a tuple at p must not meet, is no less than that of
min(p, w) was, until that of the new k has caught up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from millpond.catalog import MOST_ROWS
from millpond.kernels.groups import Ints
from millpond.storage.transitions import Noted

Change: TypeAlias = tuple[int, int]
"""A place from which on k was larger, or a time after which it is smaller, and the k before."""


@dataclass(frozen=True)
class Widened(Noted):
    """How large k is, and where it has changed, as far as that still matters."""

    within: int
    before: tuple[Change, ...] = ()
    narrowed: Change | None = None
    """What has come by this time has adhered to another k, no larger than this."""

    def to_data(self) -> tuple[Any, ...]:
        """As the log has it."""
        return self.within, self.before, self.narrowed

    @staticmethod
    def read(told: Widened | Sequence[Any]) -> Widened:
        """What a log says."""
        if isinstance(told, Widened):
            return told
        within, before, *narrowed = told
        changes = tuple((place, k) for place, k in before)
        after = narrowed[0] if narrowed else None
        return Widened(within, changes, None if after is None else (after[0], after[1]))

    def reach(self, place: int) -> int:
        """What is before it is too far from a tuple at a place."""
        reaches = (min(place, since) - within for since, within in self.before)
        return max((place - self.within, *reaches))

    def reaches(self, places: Ints) -> Ints:
        """The same of many places."""
        found = places - self.within
        for since, within in self.before:
            found = np.maximum(found, np.minimum(places, since) - within)
        return found

    @property
    def complete_from(self) -> int | None:
        """The place from which on all tuples that adhere to k are part of the stream, if there
        are others before it."""
        places = [since - within + self.within for since, within in self.before]
        return max(places, default=None)

    def changed(self, within: int, place: int, after: int | None) -> Widened:
        """With another k from a place on, when tuples up to a time have come."""
        if within >= self.within or after is None:
            return replace(self.grown(place, within), within=within)
        larger = self.within if self.narrowed is None else max(self.within, self.narrowed[1])
        return replace(self, within=within, narrowed=(after, larger))

    def grown(self, place: int, within: int) -> Widened:
        """With a larger k from a place on."""
        if within <= self.within:
            return self
        return replace(self, within=within, before=(*self.before, (place, self.within)))

    def after_violation(self, place: int, behind: int, is_of_rows: bool) -> Widened:
        """With a k that has grown to twice as much at least, as a tuple came so far behind; not if
        it is put aside only because of what an earlier k has freed."""
        if behind <= self.within:
            return self
        within = max(2 * self.within, behind)
        return self.grown(place, min(within, MOST_ROWS) if is_of_rows else within)

    def caught_up(self, least_place: int) -> Widened:
        """Without what matters no more when no tuple comes before a place."""
        late = [each for each in self.before if each[0] - each[1] > least_place - self.within]
        return self if len(late) == len(self.before) else replace(self, before=tuple(late))
