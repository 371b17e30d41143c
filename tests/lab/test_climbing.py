from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from millpond.errors import StateError
from millpond.lab import search
from millpond.lab.climbing import climb, neighbouring
from millpond.lab.search import FIRST_SEED, Effort, Margins, Point, Search

RECORD = {"drawn": 5, "standing": 0, "nearest": {"width": 1.0, "height": 0.0}, "room": 0.1}
HIGHEST = {"width": 4.0, "height": 4.0}
EFFORT = Effort(seeds=10, neighbour_seeds=3)


def hill(failing: tuple[int, ...] = ()) -> Search:
    """Only the highest point stands, but not on failing seeds; every step up is nearer."""

    def measure(point: Point, seed: int) -> Margins:
        high = (point["width"] + point["height"]) / 8
        return {"high": 0.0 if seed - FIRST_SEED in failing and high == 1 else high}

    values = (0.0, 1.0, 2.0, 3.0, 4.0)
    space = {"width": values, "height": values}
    return Search("hill", "none", space, lambda point: True, measure, measure)


def quiet(text: str) -> None:
    pass


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "read", lambda name: RECORD)


def climbed(of: Search, rounds: int = 20) -> dict[str, Any]:
    return climb(of, RECORD, rounds, EFFORT, quiet)


def test_it_climbs_until_a_point_stands() -> None:
    found = climbed(hill())
    assert (found["found"], found["room"], found["points"]) == (HIGHEST, 1.0, [HIGHEST])
    assert found["neighbours"]["width"]["3"] == "high"
    assert (found["drawn"], found["standing"]) == (5, 0)  # of those that were drawn
    assert "nearest" not in found
    assert found["climbed"]["from"] == RECORD["nearest"]
    assert found["climbed"]["repeat"] == "millpond lab search hill --climb 20"
    assert 7 < found["climbed"]["tried"] < 24


def test_it_climbs_no_further_than_it_may() -> None:
    found = climbed(hill(), rounds=2)
    assert sum(found["nearest"].values()) == 3
    assert found["failing"] == ["high"]


def test_no_way_leads_through_what_is_not_printed() -> None:
    walled = replace(hill(), is_possible=lambda point: point["height"] < 4)
    assert climbed(walled)["nearest"] == {"width": 4.0, "height": 3.0}


def test_what_stands_on_few_seeds_only_is_not_reached() -> None:
    assert "found" not in climbed(hill(failing=(5, 6)))


def test_neighbours_differ_in_one_value_by_one_place() -> None:
    assert list(neighbouring(hill(), {"width": 0.0, "height": 2.0})) == [
        {"width": 1.0, "height": 2.0},
        {"width": 0.0, "height": 1.0},
        {"width": 0.0, "height": 3.0},
    ]


def test_where_a_point_stands_there_is_nowhere_to_climb_to() -> None:
    with pytest.raises(StateError, match="hill has a point that stands"):
        climb(hill(), {"found": HIGHEST}, 1, EFFORT, quiet)
