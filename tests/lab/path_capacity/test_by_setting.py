from __future__ import annotations

from matplotlib.figure import Figure

from millpond.lab.experiment import Instead
from millpond.lab.path_capacity.by_setting import (
    Measured,
    in_every_setting,
    in_most,
    plot_by_setting,
    rows,
)

TABLE = {
    "setting": ["one", "two", "three"],
    "path-capacity": [1.0, 2.0, 250.0],
    "simplified-segment": [2.0, 3.0, 4.0],
    "chain": [3.0, 4.0, 5.0],
}


def best(row: Measured) -> bool:
    return row.path_capacity < row.simplified < row.chain


def test_a_sentence_must_be_so_in_every_setting() -> None:
    found = rows(TABLE)
    claim = in_every_setting(
        "latency", '"best"', found, best, Instead("", "", in_most(found, best))
    )
    assert claim.verdict == "differs"
    assert claim.expected == '"best", in every setting'
    assert (
        claim.measured
        == "so in 2 of 3: one 1.00 2.00 3.00; two 2.00 3.00 4.00; three 250 4.00 5.00"
    )
    assert in_every_setting("latency", '"best"', found[:2], best).verdict == "holds"


def test_most_are_more_than_half() -> None:
    found = rows(TABLE)
    assert in_most(found, best)
    assert not in_most(found[1:], best)


def test_bars_are_drawn_for_every_setting() -> None:
    axes = Figure().subplots()
    plot_by_setting(TABLE, axes, "latency")
    assert len(axes.patches) == 9
