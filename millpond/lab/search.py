"""Looks for settings that no paper prints: such as all sentences of a figure stand in at once.

A `SEARCH` says which values are tried, what the print says of them, and what is measured. Points
are drawn from its grid; one that what is printed excludes is not tried, one that fails too often
for its sentences to stand is left at once. Of those that stand the one with the most room is kept,
and each of its values is changed until sentences fail. Where none stands, the nearest is kept: of
those that fail in the fewest sentences the one with the most room, from which one may climb
(`climbing.py`). What is found is recorded.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from millpond.errors import StateError
from millpond.lab.words import MOST_SEEDS

RECORDS = Path(__file__).with_name("searches")
FIRST_SEED = 100
"""Searches look at other seeds than experiments, which begin at 2000."""
NEAREST_TRIED = 3
"""So many points are looked at on all seeds where none stands."""
Point: TypeAlias = Mapping[str, float]
"""A value for each name of the space."""
Margins: TypeAlias = Mapping[str, float]
"""For each sentence how far it is from failing: it stands from 1 on."""


@dataclass(frozen=True)
class Search:
    """A setting that is not printed: where it is looked for, and what must stand there.

    `facts` says in words what `is_possible` checks. `measure` runs one seed; `screen`, which may
    be quicker, decides which points are worth it.
    """

    name: str
    facts: str
    space: Mapping[str, Sequence[float]]
    is_possible: Callable[[Point], bool]
    measure: Callable[[Point, int], Margins]
    screen: Callable[[Point, int], Margins]

    @cached_property
    def found(self) -> Point:
        """The point that was recorded: one in which all stands, or else the nearest."""
        record = read(self.name)
        recorded = record.get("found") or record["nearest"]
        return {name: float(recorded[name]) for name in self.space}


@dataclass(frozen=True)
class Effort:
    """How many points are drawn, and on how many seeds one must stand to be kept or a neighbour."""

    draws: int = 400
    seeds: int = 10
    neighbour_seeds: int = 3


@dataclass(frozen=True)
class Standing:
    """Whether all sentences stand at a point, the least room of any, and those that do not."""

    stands: bool
    room: float
    failing: Sequence[str] = ()


Tried: TypeAlias = tuple[Standing, Point]
"""A point, and how it stands."""


def look(search: Search, effort: Effort, told: Callable[[str], None]) -> dict[str, Any]:
    """Search; the record of what was tried and found."""
    begin = time.process_time()
    drawn = list(_drawn(search, effort.draws))
    possible = [point for point in drawn if search.is_possible(point)]
    told(f"{len(possible)} of {len(drawn)} points are possible by what is printed")
    tried: list[Tried] = []
    for number, point in enumerate(possible):
        tried.append((_try(search, point, effort.seeds), point))
        count = sum(found.stands for found, _ in tried)
        told(f"{number + 1} of {len(possible)} tried, {count} stand")
    standing = [each for each in tried if each[0].stands]
    record: dict[str, Any] = {
        "repeat": f"millpond lab search {search.name} --draws {effort.draws}",
        "facts": search.facts,
        "space": {name: list(values) for name, values in search.space.items()},
        "drawn": len(drawn),
        "possible": len(possible),
        "standing": len(standing),
        "seeds": effort.seeds,
    }
    if standing:
        record |= region(search, standing, effort, told)
    elif tried:
        record |= nearest(_nearest(search, tried, effort.seeds))
    return record | {"processor_seconds": round(time.process_time() - begin)}


def region(
    search: Search, standing: Sequence[Tried], effort: Effort, told: Callable[[str], None]
) -> dict[str, Any]:
    """Of a record: the points that stand, the one that is kept, and where sentences stop to."""
    best, chosen = max(standing, key=lambda each: each[0].room)
    return {
        "found": dict(chosen),
        "room": round(best.room, 3),
        "neighbours": neighbours(search, chosen, effort.neighbour_seeds, told),
        "neighbour_seeds": effort.neighbour_seeds,
        "points": [dict(point) for _, point in standing],
    }


def nearest(tried: Tried) -> dict[str, Any]:
    """Of a record: the point that is kept where none stands."""
    near, point = tried
    return {"nearest": dict(point), "room": round(near.room, 3), "failing": list(near.failing)}


def _drawn(search: Search, draws: int) -> Iterator[Point]:
    """Points of the grid, each once."""
    sizes = [len(values) for values in search.space.values()]
    generator = np.random.default_rng(0)
    all_points = math.prod(sizes)
    for place in generator.permutation(all_points)[:draws]:
        places = np.unravel_index(int(place), sizes)
        yield {
            name: float(values[int(at)])
            for (name, values), at in zip(search.space.items(), places, strict=True)
        }


def _nearest(search: Search, tried: Sequence[Tried], seeds: int) -> Tried:
    """Of the few points that were left with the fewest sentences failing the best on all seeds."""
    few = sorted(tried, key=lambda each: nearness(each[0]), reverse=True)[:NEAREST_TRIED]
    looked = [(stands(search, point, seeds, to_the_end=True), point) for _, point in few]
    return max(looked, key=lambda each: nearness(each[0]))


def nearness(found: Standing) -> tuple[int, float]:
    """How near a point is to standing: first by the sentences that fail, then by the room."""
    return -len(found.failing), found.room


def _try(search: Search, point: Point, seeds: int) -> Standing:
    screened = search.screen(point, FIRST_SEED - 1)
    failing = [name for name, margin in screened.items() if margin < 1]
    if failing:
        return Standing(False, min(screened.values()), failing)
    return stands(search, point, seeds)


def stands(search: Search, point: Point, seeds: int, to_the_end: bool = False) -> Standing:
    """Try seed by seed, to the end or until a sentence fails on more than is allowed it."""
    allowed = seeds - math.ceil(MOST_SEEDS * seeds)
    found: dict[str, list[float]] = {}
    failing: list[str] = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        for name, margin in search.measure(point, seed).items():
            found.setdefault(name, []).append(margin)
        failing = [name for name, all_ in found.items() if sum(x < 1 for x in all_) > allowed]
        if failing and not to_the_end:
            break
    return Standing(not failing, _room(found, allowed), failing)


def _room(found: Mapping[str, Sequence[float]], allowed: int) -> float:
    """The least margin of any sentence, but for the seeds that may fail."""
    return min(sorted(margins)[min(allowed, len(margins) - 1)] for margins in found.values())


def neighbours(
    search: Search, point: Point, seeds: int, told: Callable[[str], None]
) -> dict[str, dict[str, str]]:
    """For each name of the space: at each of its values, all others kept, what fails there."""
    table: dict[str, dict[str, str]] = {}
    for name, values in search.space.items():
        row = table[name] = {}
        for value in values:
            other = {**point, name: float(value)}
            if value == point[name]:
                row[f"{value:g}"] = "found"
            elif not search.is_possible(other):
                row[f"{value:g}"] = "not as printed"
            else:
                failing = stands(search, other, seeds).failing
                row[f"{value:g}"] = "; ".join(failing) or "stands"
            told(f"{name} {value:g}: {row[f'{value:g}']}")
    return table


def read(name: str, folder: Path = RECORDS) -> dict[str, Any]:
    """The record of a search."""
    path = folder / f"{name}.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StateError(
            f'cannot read what the search found in "{path}": {error}; '
            f"`millpond lab search {name} --record` writes it"
        ) from None
    if not isinstance(found, dict):
        raise StateError(f'"{path}" is no record of a search')
    return found


def write(name: str, record: Mapping[str, Any], folder: Path = RECORDS) -> Path:
    """Record a search: the setting that it found, or the nearest."""
    if "found" not in record and "nearest" not in record:
        raise StateError(f"no point of {name} was possible: what is recorded stays")
    path = folder / f"{name}.json"
    try:
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StateError(f'cannot record the search in "{path}": {error}') from None
    return path
