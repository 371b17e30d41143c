"""Bounds: what is known of the values that are still to come in a column of a stream.

A heartbeat says of time what a bound says of another column: nothing smaller follows.
"""

from bisect import bisect_right

MOST_KNOWN = 256
"""So many bounds are known at once; of more every other one is forgotten, which only means that
something is known a little later."""


class Bounds:
    """The bounds of a column, each with the time after which it holds; both rise."""

    def __init__(self) -> None:
        self._known: tuple[tuple[int, int], ...] = ()

    def note(self, after: int, bound: int) -> None:
        """No element that begins after a time has a smaller value."""
        if self._known and self._known[-1][1] >= bound:
            return
        known = (*(each for each in self._known if each[0] < after), (after, bound))
        self._known = known if len(known) <= MOST_KNOWN else (*known[:-1:2], known[-1])

    def at(self, time: int) -> int | None:
        """The largest bound that holds for all elements that begin after a time."""
        found = bisect_right(self._known, time, key=lambda each: each[0])
        return self._known[found - 1][1] if found else None
