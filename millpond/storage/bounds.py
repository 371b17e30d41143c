"""Bounds: what is known of the values that are still to come in a column of a stream.

A heartbeat says of time what a bound says of another column: nothing smaller follows.
"""

from bisect import bisect_right
from collections.abc import Sequence
from threading import Lock
from typing import Any

import pyarrow as pa

from millpond.storage.frees import Closed, Over
from millpond.storage.thinning import thinned

MOST_KNOWN = 64
"""So many bounds are known at once; of more one is forgotten, so that whoever is so far behind
knows at least one that is not much older."""


class Bounds:
    """The bounds of a column, each with the time after which it holds; both rise."""

    def __init__(self) -> None:
        self._known: tuple[tuple[int, int], ...] = ()

    def note(self, after: int, bound: int) -> None:
        """No element that begins after a time has a smaller value."""
        if self._known and self._known[-1][1] >= bound:
            return
        known = (*(each for each in self._known if each[0] < after), (after, bound))
        self._known = thinned(known, MOST_KNOWN)

    def at(self, time: int) -> int | None:
        """The largest bound that holds for all elements that begin after a time."""
        found = bisect_right(self._known, time, key=lambda each: each[0])
        return self._known[found - 1][1] if found else None


MOST_CLOSED, LEAST_CLOSED = 100_000, 16_384
"""So many closed values are known at once, and so many of them are looked for at least."""

MOST_PARTS = 1_024
"""So many times are known after which some are over."""


class Closings:
    """The values of a column that are over, each with the time after which that holds.

    Steps ask in other threads while tuples come.
    """

    def __init__(self) -> None:
        self._afters: list[int] = []
        self._parts: list[pa.Array] = []
        """What is over after each of these times."""
        self._counts: list[int] = []
        """How many were over then, with those before."""
        self._lock = Lock()

    def note(self, after: int, values: Sequence[Any]) -> None:
        """No element that begins after a time, which rises, has one of some values."""
        if not len(values):
            return
        with self._lock:
            self._afters.append(after)
            self._parts.append(pa.array(values))
            self._counts.append(len(values) + (self._counts[-1] if self._counts else 0))
            old = bisect_right(self._counts, self._counts[-1] - MOST_CLOSED)
            del self._afters[:old], self._parts[:old], self._counts[:old]
            if len(self._parts) > MOST_PARTS:
                self._put_together()

    def _put_together(self) -> None:
        """Of all parts but the last few, small neighbours become one, which holds after the later
        time of both."""
        for at in range(len(self._parts) // 2 - 1, 0, -2):
            pair = self._parts[at - 1 : at + 1]
            if sum(map(len, pair)) <= MOST_CLOSED // 32:
                self._parts[at - 1 : at + 1] = [pa.concat_arrays(pair)]
                del self._afters[at - 1], self._counts[at - 1]

    def count(self, until: int) -> int:
        """How many values were closed for all that begins after a time."""
        with self._lock:
            known = bisect_right(self._afters, until)
            return self._counts[known - 1] if known else 0

    def at(self, until: int, count: int) -> Closed | None:
        """The values that are closed for all that begins after a time: the last, of which so many
        are new."""
        with self._lock:
            known = bisect_right(self._afters, until)
            if not known:
                return None
            enough = self._counts[known - 1] - max(4 * count, LEAST_CLOSED)
            parts = self._parts[bisect_right(self._counts, enough) : known]
        return Closed(pa.concat_arrays(parts))


class Age:
    """How old tuples of a stream must be so that nothing is asked of them any more.

    In ticks that follows from how far a step comes. In rows it is known, of some numbers of tuples,
    that those with a smaller number come before a time; so much later, it is known what is older.
    """

    def __init__(self, within: int, is_of_rows: bool) -> None:
        self.within, self.is_of_rows = within, is_of_rows
        self.narrowed: tuple[int, int] | None = None
        """What has come by a time has adhered to another k, no larger than this."""
        self.since: int | None = None
        """Tuples up to this time are of any age."""
        self._floors: list[tuple[int, int]] = []
        self._bounds = Bounds()

    def use(self, within: int, narrowed: tuple[int, int] | None) -> None:
        """Another k holds from now on."""
        self.within, self.narrowed = within, narrowed

    def came(self, arrived: int, floor: int) -> None:
        """Tuples with this number and later ones do not come before a time."""
        if not self.is_of_rows or (self._floors and self._floors[-1][1] >= floor):
            return
        self._floors.append((arrived, floor))
        first = self._place(arrived)
        known = self._floors[max(first, 0) :]
        self._floors = known if len(known) <= MOST_KNOWN else [*known[:-1:2], known[-1]]

    def note(self, arrived: int, after: int) -> None:
        """What is old enough now that so many have come is so for all that begins after a time."""
        place = self._place(arrived)
        if self.is_of_rows and place >= 0:
            self._bounds.note(after, self._floors[place][1])

    def _place(self, arrived: int) -> int:
        """Of which number it is known last that those before it are old enough."""
        return bisect_right(self._floors, arrived - self.within, key=lambda each: each[0]) - 1

    def at(self, until: int) -> Over | None:
        """Which times of tuples are over for all that begins after a time."""
        least = self._bounds.at(until) if self.is_of_rows else until + 1 - self._within(until)
        return None if least is None else Over(least, self.since)

    def once_met(self, until: int) -> Over | None:
        """The same of tuples whose like cannot come again: if it never may, of all."""
        is_at_once = self.is_of_rows and self._within(until) == 0
        return Over(None, self.since) if is_at_once else self.at(until)

    def _within(self, until: int) -> int:
        """The k to which all has adhered that begins after a time."""
        after, larger = self.narrowed or (until, 0)
        return max(self.within, larger) if until < after else self.within
