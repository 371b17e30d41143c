"""Traffic for Linear Road: who is where on which expressway, every 30 seconds, by seed.

    python -m benchmarks.road.traffic TUPLES FILE.csv [SEED]

Vehicles enter, drive as fast as the road lets them, cross jams, and leave by the exit lane. Some
pairs drive one behind the other until both stop at the same place: an accident, which clears when
they go on. One report in a hundred comes with a request for the balance of the account.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

SEGMENTS = 100
FEET = 5280
REPORT_SECONDS = 30
FEET_PER_REPORT = 44
"""What one mile an hour covers between two reports."""
ENTRY_LANE, EXIT_LANE = 0, 4
REQUEST_SHARE = 0.01
CARS_PER_EXPRESSWAY = 800
PAIRS_PER_EXPRESSWAY = 4
COLUMNS = ("type", "ts", "vid", "speed", "xway", "lane", "dir", "seg", "pos", "qid")


@dataclass(frozen=True)
class Traffic:
    """A number of tuples; more of them take longer and need more expressways."""

    tuples: int
    seed: int = 7

    @property
    def minutes(self) -> int:
        """How long the road is watched: the square root keeps it as full as it gets longer."""
        return max(8, round(3 * (self.tuples / 1000) ** 0.5))

    @property
    def cars(self) -> int:
        """How many are on the road at a time."""
        return -(-self.tuples // (2 * self.minutes)) + 1

    @property
    def expressways(self) -> int:
        return max(1, self.cars // CARS_PER_EXPRESSWAY)

    def table(self) -> pa.Table:
        """The input stream in order of time: the first so many tuples."""
        drawn = np.random.default_rng(self.seed)
        reports = _reports(self, drawn)
        asks = drawn.random(len(reports["ts"])) < REQUEST_SHARE
        requests = {name: np.full(asks.sum(), -1) for name in COLUMNS}
        requests |= {"type": np.full(asks.sum(), 2), "qid": np.arange(asks.sum())}
        requests |= {name: reports[name][asks] for name in ("ts", "vid")}
        whole = {name: np.concatenate([reports[name], requests[name]]) for name in COLUMNS}
        order = np.lexsort((whole["type"], drawn.random(len(whole["ts"])), whole["ts"]))
        kept = order[: self.tuples]
        narrow = {name: column[kept].astype(np.int32) for name, column in whole.items()}
        return pa.table(narrow | {"ts": narrow["ts"].astype(np.int64)})

    def write(self, file: Path) -> None:
        """The same as a file of comma-separated values."""
        pyarrow.csv.write_csv(self.table(), file)


def _reports(traffic: Traffic, drawn: np.random.Generator) -> dict[str, np.ndarray]:
    """The position reports, a round of one report of everybody after the other."""
    rounds = 2 * traffic.minutes + 2
    # Cars leave all the time, so others wait for their turn to enter.
    count = int(traffic.cars * (1.2 + traffic.minutes / 35)) // 2 * 2
    pairs = PAIRS_PER_EXPRESSWAY * traffic.expressways
    car = _cars(count, pairs, traffic, drawn)
    jam = _speed_limits(traffic.expressways, drawn)
    mile = car["mile"].copy()
    found: dict[str, list[np.ndarray]] = {name: [] for name in COLUMNS}
    for turn in range(rounds):
        age = turn - car["first"]
        segment = np.clip(mile.astype(int), 0, SEGMENTS - 1)
        halted = (age >= car["stops"]) & (age < car["stops"] + car["stands"])
        speed = np.minimum(car["speed"], jam[car["xway"], car["dir"], segment])
        speed = np.where(halted, 0, np.maximum(speed + car["mood"][turn % 8], 3)).astype(int)
        is_last = (age == car["rounds"]) | (mile >= SEGMENTS - 1)
        here = (age >= 0) & (age <= car["rounds"]) & (mile < SEGMENTS)
        lane = np.where(age == 0, ENTRY_LANE, np.where(is_last, EXIT_LANE, 1 + car["pair"] % 3))
        feet = (mile * FEET).astype(int)
        # Direction 1 counts segments down: its vehicles start at the far end.
        where = np.where(car["dir"] == 0, feet, SEGMENTS * FEET - 1 - feet)
        rows = {
            "type": np.zeros(count, int), "ts": turn * REPORT_SECONDS + car["second"],
            "vid": car["vid"], "speed": speed, "xway": car["xway"], "lane": lane,
            "dir": car["dir"], "seg": where // FEET, "pos": where, "qid": np.full(count, -1),
        }  # fmt: skip
        for name, column in rows.items():
            found[name].append(column[here])
        mile = np.where(age >= 0, mile + speed * FEET_PER_REPORT / FEET, mile)
        mile = np.where(is_last & (age >= 0), SEGMENTS + 1.0, mile)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _cars(
    count: int, pairs: int, traffic: Traffic, drawn: np.random.Generator
) -> dict[str, np.ndarray]:
    """What is known of each car when it enters; the first ones are pairs that will crash."""
    rounds = 2 * traffic.minutes
    pair = np.arange(count) // 2
    crashes = pair < pairs
    # The pair shares its draws; everybody else has their own.
    own = np.where(crashes, pair * 2, np.arange(count))
    first = np.where(np.arange(count) < traffic.cars, 0, drawn.integers(1, rounds, count))
    first = np.where(crashes, 0, first)
    mile = np.where(
        drawn.random(count) < 0.75, drawn.normal(31, 2, count), drawn.uniform(0, 90, count)
    )
    shared = {
        "mile": np.clip(mile, 0, 95), "xway": drawn.integers(0, traffic.expressways, count),
        "dir": drawn.integers(0, 2, count), "speed": drawn.integers(25, 70, count),
        "stops": np.where(crashes, drawn.integers(2, max(3, rounds // 2), count), 10**6),
        "stands": drawn.integers(6, 14, count), "rounds": drawn.integers(8, 120, count),
    }  # fmt: skip
    car = {name: column[own] for name, column in shared.items()}
    mood = drawn.integers(-4, 5, (8, count))[:, own]
    return car | {
        "vid": drawn.permutation(count), "pair": pair, "first": first[own], "mood": mood,
        "second": drawn.integers(0, REPORT_SECONDS, count),
        "rounds": np.where(crashes, 10**6, car["rounds"]),
    }  # fmt: skip


def _speed_limits(expressways: int, drawn: np.random.Generator) -> np.ndarray:
    """How fast each segment is driven: jams around the middle of the rush, the rest is free."""
    centre = drawn.uniform(32, 34, (expressways, 2, 1))
    depth = np.exp(-(((np.arange(SEGMENTS) - centre) / 4) ** 2))
    return 65 - 50 * depth


if __name__ == "__main__":
    Traffic(int(sys.argv[1]), *map(int, sys.argv[3:4])).write(Path(sys.argv[2]))
