"""When the tuples came that a page holds or was computed from: a few moments, with their rows.

A moment is that of the process's monotonic clock. What nobody sent, such as the end of a window in
a step in which nothing came, has no origin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

MOST_MOMENTS = 16
"""So many moments are told apart; more of them are drawn together where they are close."""

MOST_FOLLOWED = 16
"""Of those that are followed so many are always told apart, the first ones."""


class Followed(float):
    """A moment at which tuples came that are followed to where they end: in a ``trace``."""

    __slots__ = ("trace",)

    def __new__(cls, moment: float, trace: Any) -> Followed:
        self = super().__new__(cls, moment)
        self.trace = trace
        return self

    trace: Any


Origins: TypeAlias = tuple[tuple[float, float], ...]
"""(seconds, rows), in order of time."""


def mixed(parts: Iterable[tuple[Origins, float]]) -> Origins:
    """The origins of what is made of some parts, each counting as so many rows, none as nothing.

    >>> mixed([(((1.0, 10.0),), 4), (((2.0, 5.0), (1.0, 5.0)), 4)])
    ((1.0, 6.0), (2.0, 2.0))
    >>> mixed([(((1.0, 10.0),), 0)])
    ()
    """
    rows_at: dict[float, float] = {}
    for origins, rows in parts:
        if not rows:
            continue
        total = sum(count for _, count in origins)
        for moment, count in origins if rows else ():
            rows_at[moment] = rows_at.get(moment, 0.0) + rows * count / total
    found = sorted(rows_at.items())
    return tuple(found) if len(found) <= MOST_MOMENTS else _drawn_together(found)


def part(origins: Origins, low: float, high: float) -> Origins:
    """Those of the rows between two shares of all, where what came first stands first.

    >>> part(((1.0, 6.0), (2.0, 2.0)), 0.5, 1.0)
    ((1.0, 2.0), (2.0, 2.0))
    """
    total, begin = sum(rows for _, rows in origins), 0.0
    found = []
    for moment, rows in origins:
        end = begin + rows
        kept = min(end, high * total) - max(begin, low * total)
        if kept > 0:
            found.append((moment, kept))
        begin = end
    return tuple(found) or origins[-1:]


def _drawn_together(found: list[tuple[float, float]]) -> Origins:
    """The moments of each of some equal stretches of time as their mean; those that are followed
    stay as they are."""
    followed = [pair for pair in found if isinstance(pair[0], Followed)][:MOST_FOLLOWED]
    others = [pair for pair in found if pair not in followed] if followed else found
    drawn = others if len(others) <= MOST_MOMENTS else _means(others)
    return tuple(sorted((*followed, *drawn))) if followed else tuple(drawn)


def _means(found: list[tuple[float, float]]) -> list[tuple[float, float]]:
    first, last = found[0][0], found[-1][0]
    stretches: dict[int, tuple[float, float]] = {}
    for moment, rows in found:
        stretch = min(int((moment - first) / (last - first) * MOST_MOMENTS), MOST_MOMENTS - 1)
        sums = stretches.get(stretch, (0.0, 0.0))
        stretches[stretch] = sums[0] + moment * rows, sums[1] + rows
    return [(weighed / rows, rows) for weighed, rows in stretches.values()]
