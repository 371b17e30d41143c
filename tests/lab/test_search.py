from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from millpond.errors import StateError
from millpond.lab import search
from millpond.lab.catalogue import find_search, searches
from millpond.lab.commands import app
from millpond.lab.search import FIRST_SEED, Effort, Margins, Point, Search, look, stands

SPACE = {"width": (1.0, 2.0, 3.0, 4.0), "height": (1.0, 2.0)}


def made_up(limit: float = 1.0, unlucky: tuple[int, ...] = ()) -> Search:
    """Wide stands from 2 on, tall at 2 only, but not on unlucky seeds; 4 by 2 is not printed."""

    def measure(point: Point, seed: int) -> Margins:
        fails = seed - FIRST_SEED in unlucky
        wide = 0.0 if fails else point["width"] / (2 * limit)
        return {"wide": wide, "tall": point["height"] / 2}

    return Search(
        "made-up",
        "no larger than 6",
        SPACE,
        lambda point: point["width"] * point["height"] <= 6,
        measure,
        lambda point, seed: {"screened": point["width"]},
    )


def quiet(text: str) -> None:
    pass


def test_the_point_with_the_most_room_is_found_and_its_neighbours_told() -> None:
    found = look(made_up(), Effort(draws=8, seeds=10, neighbour_seeds=2), quiet)
    assert (found["drawn"], found["possible"], found["standing"]) == (8, 7, 2)
    assert found["found"] in [{"width": 2.0, "height": 2.0}, {"width": 3.0, "height": 2.0}]
    assert found["points"] == [each for each in found["points"] if each["height"] == 2]
    assert found["neighbours"]["height"] == {"1": "tall", "2": "found"}
    assert found["neighbours"]["width"]["1"] == "wide"
    assert found["neighbours"]["width"]["4"] == "not as printed"
    assert found["repeat"] == "millpond lab search made-up --draws 8"


def test_a_sentence_may_fail_on_one_seed_of_ten_and_on_no_more() -> None:
    point = {"width": 3.0, "height": 2.0}
    assert stands(made_up(unlucky=(4,)), point, 10).stands
    fails = stands(made_up(unlucky=(4, 6)), point, 10)
    assert (fails.stands, list(fails.failing)) == (False, ["wide"])
    assert not stands(made_up(unlucky=(1,)), point, 3).stands


def test_without_a_point_that_stands_the_nearest_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = look(made_up(limit=9.0), Effort(draws=8), quiet)
    assert (nothing["standing"], "found" in nothing) == (0, False)
    assert nothing["nearest"] == {"width": 3.0, "height": 2.0}
    assert nothing["failing"] == ["wide"]
    monkeypatch.setattr(search.read, "__defaults__", (tmp_path,))
    search.write("made-up", nothing, tmp_path)
    assert made_up().found == nothing["nearest"]


def test_without_a_possible_point_what_is_recorded_stays(tmp_path: Path) -> None:
    nothing = look(replace(made_up(), is_possible=lambda point: False), Effort(draws=8), quiet)
    with pytest.raises(StateError, match="no point of made-up was possible"):
        search.write("made-up", nothing, tmp_path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = look(made_up(), Effort(draws=8), quiet)
    search.write("made-up", found, tmp_path)
    assert search.read("made-up", tmp_path) == found
    with pytest.raises(StateError, match="`millpond lab search other --record` writes it"):
        search.read("other", tmp_path)


def test_recorded_settings_are_points_of_their_searches() -> None:
    assert searches()
    for each in searches().values():
        recorded = search.read(each.name)
        assert recorded["space"] == {name: list(values) for name, values in each.space.items()}
        assert recorded["facts"] == each.facts
        assert each.is_possible(each.found)
        assert all(value in each.space[name] for name, value in each.found.items())


def test_an_unknown_search_is_refused() -> None:
    with pytest.raises(StateError, match='no search "chain-four-operator"; did you mean'):
        find_search("chain-four-operator")
    refused = CliRunner().invoke(app, ["search", "nonsense"])
    assert refused.exit_code == 2
    assert 'no search "nonsense"' in refused.stderr
