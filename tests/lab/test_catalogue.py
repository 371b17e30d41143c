from __future__ import annotations

import pytest

from millpond.errors import StateError
from millpond.lab import catalogue

FOLDERS = {
    "STREAM": ("stream",),
    "Chain": ("chain",),
    "Path Capacity": ("path_capacity",),
    "Unified": ("unified",),
    "HMTS": ("hmts",),
    "beyond the papers": ("plane", "joins"),
}


def test_an_experiment_lies_in_the_folder_of_its_paper() -> None:
    for each in catalogue.experiments().values():
        module = getattr(each.run, "func", each.run).__module__
        folder = module.removeprefix("millpond.lab.").split(".")[0]
        assert folder in FOLDERS[each.paper]
        assert each.name.startswith(folder.replace("_", "-"))


def test_an_unknown_experiment_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(StateError, match='did you mean "chain-opening-example"'):
        catalogue.choose(["chain-opening-exmple"])


def test_what_runs_by_the_wall_clock_is_run_only_if_it_is_named() -> None:
    live = [each.name for each in catalogue.choose(["live"])]
    assert set(live) == {"live-hmts", "live-burst", "live-orders", "live-real-threads"}
    assert catalogue.choose(["live-burst", "live"])[0].name == "live-burst"
    assert not set(live) & {each.name for each in catalogue.choose([])}
