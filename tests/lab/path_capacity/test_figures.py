"""Figures 2 to 4 of the Path Capacity paper: measured in tiny settings, judged on made up rows."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from millpond.lab.experiment import Table, Tables
from millpond.lab.path_capacity import figure_2, figure_3, figure_4
from millpond.lab.path_capacity.workload import STRATEGIES, Setting

SETTINGS = {"tiny": Setting((0.5, 1.1), 15.0), "shorter": Setting((0.5, 1.1), 10.0)}


@pytest.mark.parametrize("figure", [figure_2, figure_3, figure_4])
def test_figures_are_measured_in_every_setting_and_drawn(figure: object) -> None:
    tables = figure.run([0], SETTINGS)  # type: ignore[attr-defined]
    figure.plot(tables, Figure())  # type: ignore[attr-defined]
    for table in tables.values():
        if "setting" in table:
            assert set(table["setting"]) == set(SETTINGS)
        assert {len(column) for column in table.values()} == {len(table[STRATEGIES[0]])}
        assert all(np.nanmin(table[name]) >= 0 for name in STRATEGIES)
    told = [claim.measured for claim in figure.check(tables)]  # type: ignore[attr-defined]
    assert all("tiny" in each and "shorter" in each for each in told)


def test_all_strategies_put_out_the_same_tuples() -> None:
    outputs = figure_3.run([0], SETTINGS)["outputs"]
    assert outputs["path-capacity"] == outputs["simplified-segment"] == outputs["chain"]
    assert outputs["chain"][0] > 0


def of_one_setting(path_capacity: object, simplified: object, chain: object) -> Table:
    columns = [np.atleast_1d(each).tolist() for each in (path_capacity, simplified, chain)]
    settings = ["one"] * len(columns[0])
    return {"setting": settings, **dict(zip(STRATEGIES, columns, strict=True))}


def verdicts(figure: object, tables: Tables) -> list[str]:
    return [claim.verdict for claim in figure.check(tables)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ((1.0, 2.1, 3.0), ["holds", "holds"]),
        ((1.0, 1.4, 1.5), ["differs", "holds"]),
        ((1.0, 0.9, 0.8), ["fails", "fails"]),
    ],
)
def test_much_better_latency_is_half_at_most(
    means: tuple[float, float, float], expected: list[str]
) -> None:
    phases = of_one_setting([0.1, 1.0], [0.1, 2.0], [0.1, 3.0])
    tables = {"mean latency": of_one_setting(*means), "by phase": phases}
    assert verdicts(figure_2, tables)[:2] == expected


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ((1.0, 2.0, 3.0), ["holds", "holds"]),
        ((1.0, 2.0, 0.1), ["fails", "holds"]),
        ((1.0, 1.05, 1.1), ["holds", "fails"]),
    ],
)
def test_latency_and_differences_must_grow_with_the_load(
    last: tuple[float, float, float], expected: list[str]
) -> None:
    phases = of_one_setting(*([low, high] for low, high in zip((0.1, 0.2, 0.3), last, strict=True)))
    tables = {"mean latency": of_one_setting(1.0, 2.0, 3.0), "by phase": phases}
    assert verdicts(figure_2, tables)[2:] == expected


@pytest.mark.parametrize(
    ("peaks", "late", "expected"),
    [
        ((2.0, 2.4, 5.0), (1, 2, 3), "holds holds holds holds holds holds"),
        ((2.3, 2.4, 2.5), (1, 3, 2), "holds differs differs holds differs differs"),
        ((2.6, 1.6, 1.5), (3, 3, 2), "holds fails fails fails fails fails"),
    ],
)
def test_much_smoother_is_half_the_peak_at_most(
    peaks: tuple[float, float, float], late: tuple[float, float, float], expected: str
) -> None:
    tables = {
        "outputs": of_one_setting(5, 5, 5),
        "peak to mean": of_one_setting(*peaks),
        "outputs behind the input": of_one_setting(*late),
    }
    assert " ".join(verdicts(figure_3, tables)) == expected
    assert verdicts(figure_3, {**tables, "outputs": of_one_setting(5, 5, 4)})[0] == "fails"


@pytest.mark.parametrize(
    ("mean", "first", "last", "peak", "expected"),
    [
        ((9, 5, 4), (1.1, 1, 1), (20, 9, 8), (50, 22, 20), "holds holds holds holds"),
        ((9, 4.99, 5), (1.5, 1, 1), (20, 9, 8), (50, 19, 20), "differs holds differs differs"),
        ((9, 4, 5), (0.5, 1, 1), (9, 9, 8), (50, 30, 20), "fails fails fails fails"),
    ],
)
def test_memory_is_judged_by_the_papers_words(
    mean: tuple[float, ...],
    first: tuple[float, ...],
    last: tuple[float, ...],
    peak: tuple[float, ...],
    expected: str,
) -> None:
    names = (figure_4.WHOLE, figure_4.FIRST, figure_4.LAST, "peak")
    found = zip(names, (mean, first, last, peak), strict=True)
    tables = {name: of_one_setting(*values) for name, values in found}
    assert " ".join(verdicts(figure_4, tables)) == expected
