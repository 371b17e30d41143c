"""Climbs from the nearest point that a search has recorded, where it has found none that stands.

Round by round the neighbours of the best point are looked at, which differ from it in one value,
the one before or behind it in its list; the nearest of them is the next, until one stands or none
is nearer. Random points tell how large the region is in which sentences stand, and miss a small
one; climbing finds it if the way there goes up.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from millpond.errors import StateError
from millpond.lab.search import (
    Effort,
    Point,
    Search,
    Standing,
    Tried,
    nearest,
    nearness,
    region,
    stands,
)

OF_THE_NEAREST = ("nearest", "failing", "room")


def climb(
    search: Search,
    record: Mapping[str, Any],
    rounds: int,
    effort: Effort,
    told: Callable[[str], None],
) -> dict[str, Any]:
    """The record with what climbing has found; neighbours are looked at on a few seeds first."""
    if "nearest" not in record:
        raise StateError(f"{search.name} has a point that stands: there is nowhere to climb to")
    begin = time.process_time()
    tried, reached = _reached(search, search.found, rounds, effort, told)
    kept = {name: value for name, value in record.items() if name not in OF_THE_NEAREST}
    stood = reached[0].stands
    found = region(search, [reached], effort, told) if stood else nearest(reached)
    climbed = {
        "repeat": f"millpond lab search {search.name} --climb {rounds}",
        "from": dict(search.found),
        "tried": tried,
        "processor_seconds": round(time.process_time() - begin),
    }
    return kept | {"climbed": climbed} | found


def _reached(
    search: Search, start: Point, rounds: int, effort: Effort, told: Callable[[str], None]
) -> tuple[int, Tried]:
    """How many points were tried, and the first that stands, or the nearest on all seeds."""
    met, best = [start], (_on_few_seeds(search, start, effort), start)
    for number in range(rounds):
        beside = [each for each in neighbouring(search, best[1]) if each not in met]
        met += beside
        looked = [(_on_few_seeds(search, each, effort), each) for each in beside]
        for _, point in sorted(filter(_stands, looked), key=_room, reverse=True):
            whole = stands(search, point, effort.seeds)
            if whole.stands:
                return len(met) - 1, (whole, point)
        near = max([best, *looked], key=lambda each: nearness(each[0]))
        told(f"round {number + 1}: {len(beside)} tried, the nearest {near[0].room:.3f}")
        if near is best:
            break
        best = near
    ends = [stands(search, each, effort.seeds, to_the_end=True) for each in (start, best[1])]
    return len(met) - 1, max(zip(ends, (start, best[1]), strict=True), key=_nearness)


def neighbouring(search: Search, point: Point) -> Iterator[Point]:
    """The possible points in which one value is the one before or behind it in its list."""
    for name, values in search.space.items():
        at = [float(value) for value in values].index(point[name])
        for place in (at - 1, at + 1):
            if 0 <= place < len(values):
                other = {**point, name: float(values[place])}
                if search.is_possible(other):
                    yield other


def _on_few_seeds(search: Search, point: Point, effort: Effort) -> Standing:
    return stands(search, point, effort.neighbour_seeds, to_the_end=True)


def _stands(tried: Tried) -> bool:
    return tried[0].stands


def _room(tried: Tried) -> float:
    return tried[0].room


def _nearness(tried: Tried) -> tuple[int, float]:
    return nearness(tried[0])
