"""The answers of Linear Road in plain Python, second by second, as the specification says it.

It shares nothing with the CQL program: no windows, no views, only what is known of each vehicle and
each segment at the time.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import groupby

Row = dict[str, int]
Segment = tuple[int, int, int]
"""Expressway, direction, segment."""
Answers = dict[str, Counter[tuple[object, ...]]]
"""For each query how often it gives which row, its time first."""
EXIT_LANE, STOPPED_AFTER, REACH = 4, 4, 5


class Road:
    """What is known of the road after each second."""

    def __init__(self) -> None:
        self.answers: Answers = {
            name: Counter() for name in ("toll_alerts", "accident_alerts", "balance_answers")
        }
        self._speeds: dict[int, dict[Segment, dict[int, list[int]]]] = defaultdict(dict)
        self._crashed: dict[int, set[Segment]] = defaultdict(set)
        self._places: dict[int, tuple[tuple[int, ...], int]] = {}
        self._pending: dict[int, tuple[Segment, int]] = {}
        self._balances: Counter[int] = Counter()
        self._minute = 0
        self._statistics: dict[int, dict[Segment, tuple[float, int]]] = {}

    def second(self, ts: int, rows: list[Row]) -> None:
        """Everything that comes at one second: reports first, then questions about them."""
        self._until(ts // 60)
        reports = [row for row in rows if row["type"] == 0]
        crossings = [row for row in reports if self._crosses(row)]
        for row in crossings:
            self._notify(ts, row)
        for row in reports:
            self._take(row)
        self._note_crashes()
        for row in rows:
            if row["type"] == 2:
                answer = (ts, row["vid"], row["qid"], self._balances[row["vid"]])
                self.answers["balance_answers"][answer] += 1

    # -- minutes ---------------------------------------------------------------------------

    def _until(self, minute: int) -> None:
        """Closes the minutes before; whoever stands still is an accident of each of them."""
        while self._minute < minute:
            speeds = self._speeds.pop(self._minute, {})
            self._statistics[self._minute] = {
                segment: (_mean([_mean(each) for each in cars.values()]), len(cars))
                for segment, cars in speeds.items()
            }
            self._minute += 1
            if self._minute < minute:
                self._note_crashes()

    def _velocity(self, segment: Segment) -> float | None:
        """The latest average velocity: the mean of the five minutes before, as far as known."""
        minutes = [self._statistics.get(self._minute - back, {}) for back in range(5, 0, -1)]
        found = [minute[segment][0] for minute in minutes if segment in minute]
        return _mean(found) if found else None

    def _cars(self, segment: Segment) -> int:
        return self._statistics.get(self._minute - 1, {}).get(segment, (0.0, 0))[1]

    # -- accidents -------------------------------------------------------------------------

    def _note_crashes(self) -> None:
        """Two vehicles that have reported from the same place four times each, last of all."""
        standing = Counter(
            place for place, times in self._places.values() if times >= STOPPED_AFTER
        )
        for (xway, way, _, segment, _), vehicles in standing.items():
            if vehicles > 1:
                self._crashed[self._minute].add((xway, way, segment))

    def _ahead(self, segment: Segment) -> list[Segment]:
        """The accidents of the minute before, here and up to four segments downstream."""
        xway, way, here = segment
        step = 1 if way == 0 else -1
        seen = ((xway, way, here + step * distance) for distance in range(REACH))
        return [each for each in seen if each in self._crashed[self._minute - 1]]

    # -- tolls -----------------------------------------------------------------------------

    def _crosses(self, row: Row) -> bool:
        """Whether a report is the first from a segment; who is leaving crosses nothing."""
        before = self._pending.get(row["vid"])
        return row["lane"] != EXIT_LANE and (before is None or before[0] != _segment(row))

    def _notify(self, ts: int, row: Row) -> None:
        """Charges what was told for the segment left and tells what the new one will cost."""
        segment, vid = _segment(row), row["vid"]
        if vid in self._pending:
            self._balances[vid] += self._pending[vid][1]
        velocity, cars, accidents = (
            self._velocity(segment),
            self._cars(segment),
            self._ahead(segment),
        )
        is_due = velocity is not None and velocity < 40 and cars > 50 and not accidents
        toll = 2 * (cars - 50) ** 2 if is_due else 0
        self._pending[vid] = (segment, toll)
        self.answers["toll_alerts"][(ts, vid, *segment, velocity, toll)] += 1
        for *_, accident in accidents:
            self.answers["accident_alerts"][(ts, vid, *segment, accident)] += 1

    def _take(self, row: Row) -> None:
        vid, segment = row["vid"], _segment(row)
        cars = self._speeds[self._minute].setdefault(segment, {})
        cars.setdefault(vid, []).append(row["speed"])
        place = (row["xway"], row["dir"], row["lane"], row["seg"], row["pos"])
        before, times = self._places.get(vid, (place, 0))
        self._places[vid] = (place, times + 1 if before == place else 1)


def answers_by_hand(rows: Iterable[Row]) -> Answers:
    """The answers to an input in order of time."""
    road = Road()
    for ts, group in groupby(rows, key=lambda row: row["ts"]):
        road.second(ts, list(group))
    return road.answers


def _segment(row: Row) -> Segment:
    return row["xway"], row["dir"], row["seg"]


def _mean(values: list[int] | list[float]) -> float:
    """As exact as a double can be: one rounding of the sum, one of the division."""
    return math.fsum(values) / len(values)
