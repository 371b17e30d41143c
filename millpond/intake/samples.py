"""Samples of values: where some values of a column of a stream came first and last.

One value in 256 is followed, by its hash, so that it is the same ones in all streams; of those the
last 1,024. What is seen of them is what is seen of a share of all: others may come further apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import NamedTuple, TypeAlias

import numpy as np

from millpond.intake.orderings import Values
from millpond.kernels.groups import Bools, Ints

SHARE = 256
"""One in so many values is followed; a power of two."""
MOST_VALUES = 1_024
"""So many values are remembered."""
TOGETHER_VALUES = 256
"""Fewer values wait for others."""
ENOUGH_VALUES = 20
"""Of fewer values nothing is said."""

Arrived: TypeAlias = Mapping[str, int]
"""How many tuples of each stream have come."""


Place: TypeAlias = tuple[int, int, Arrived]
"""Where a value came first and last, and how many tuples of all streams had come then."""


class Come(NamedTuple):
    """Values that have come, where, and how many tuples of all streams had come then."""

    values: Ints
    places: Ints
    arrived: Sequence[Arrived]


class Seen(NamedTuple):
    """What was seen of the values that are followed."""

    places: Mapping[int, Place] = {}
    """Those that came last are last."""
    clustered: int = 0
    """So many others came between two tuples with one value that follow each other, at most."""
    unique: int = 0
    """So far a tuple came behind the first one with its value, at most."""

    def after(self, come: Iterable[Come]) -> Seen:
        """What was seen after more values."""
        places, clustered, unique = dict(self.places), self.clustered, self.unique
        for values, where, arrived in come:
            for value, place, known in zip(values.tolist(), where.tolist(), arrived, strict=True):
                before = places.pop(value, None)
                if before is None:
                    places[value] = place, place, known
                    continue
                first, last, _ = before
                clustered = max(clustered, place - last - 1)
                unique = max(unique, place - first)
                places[value] = first, place, known
        for value in list(islice(places, max(0, len(places) - MOST_VALUES))):
            del places[value]
        return Seen(places, clustered, unique)


NOTHING = Seen()


@dataclass(frozen=True)
class Sample:
    """The values that are followed; a few wait for others, and are looked at with these."""

    before: Seen = NOTHING
    waiting: tuple[Come, ...] = ()

    @cached_property
    def seen(self) -> Seen:
        """What was seen of all of them."""
        return self.before.after(self.waiting) if self.waiting else self.before

    @property
    def is_enough(self) -> bool:
        """Whether enough values were followed to say something."""
        return len(self.seen.places) >= ENOUGH_VALUES

    def after(self, seqs: Ints, values: Values, pages: Sequence[tuple[int, Arrived]]) -> Sample:
        """What was seen after more tuples; ``pages``: how many came together, and what had come
        of all streams by then."""
        at, numbers = values.there(seqs)
        rows = is_followed(numbers).nonzero()[0]
        if not len(rows):
            return self
        where = at[rows]
        come = Come(numbers[rows], where, _arrived_at(where, int(seqs[0]), pages))
        more = Sample(self.before, (*self.waiting, come))
        is_much = sum(len(each.values) for each in more.waiting) >= TOGETHER_VALUES
        return Sample(more.seen) if is_much else more

    def behind(self, target: Sample, stream: str) -> int | None:
        """How far tuples of another stream came behind those of this one with their values, by
        how many of this one had come; None if too few values came in both."""
        own, others = self.seen.places, target.seen.places
        both = own.keys() & others.keys()
        if len(both) < ENOUGH_VALUES:
            return None
        far = (others[v][2].get(stream, 0) - own[v][0] for v in both)
        return max(0, *far)


def _arrived_at(places: Ints, first: int, pages: Sequence[tuple[int, Arrived]]) -> list[Arrived]:
    """What had come of all streams when the page came that has each place."""
    if len(pages) == 1:
        return [pages[0][1]] * len(places)
    ends = np.cumsum([count for count, _ in pages]) + first
    return [pages[number][1] for number in ends.searchsorted(places, "right").tolist()]


def is_followed(numbers: Ints) -> Bools:
    """Which values are followed, by some bits of their hash."""
    mixed = numbers.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed &= np.uint64((SHARE - 1) << 32)
    return np.asarray(mixed == 0)
