from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from millpond.lab.plane import contest, every_strategy, picture
from millpond.lab.plane.bounds import latency_floor, memory_floor
from millpond.scheduling.registry import BUILT_IN, make
from millpond.simulator import Conditions, simulate
from tests.drawn_examples import examples


def test_a_lone_tuple_waits_for_its_work_alone() -> None:
    floor = latency_floor({"q": 4.0}, {"q": 1.0}, {"q": np.array([10.0])})
    assert floor == 4.0


def test_of_two_tuples_the_one_that_yields_more_a_second_goes_first() -> None:
    arrivals = {"a": np.array([0.0]), "b": np.array([0.0])}
    floor = latency_floor({"a": 1.0, "b": 3.0}, {"a": 1.0, "b": 1.0}, arrivals)
    assert floor == pytest.approx((1 + 4) / 2)


def test_memory_falls_along_the_envelope() -> None:
    charts = {"q": ((0.0, 1.0), (2.0, 0.5), (4.0, 0.0))}
    assert memory_floor(charts, {"q": np.array([0.0, 2.0])}) == pytest.approx(1.5)


@examples(15)
@given(
    st.lists(st.floats(0, 0.2), min_size=1, max_size=25),
    st.lists(st.floats(0, 0.2), min_size=1, max_size=25),
    st.sampled_from(["chain", "fifo", "path-capacity", "component-based", "auto"]),
)
def test_no_schedule_beats_the_bounds(
    first: list[float], second: list[float], strategy: str
) -> None:
    times = dict.fromkeys(contest.CHARTS, np.empty(0))
    times |= {"alert": np.sort(first), "heavy": np.sort(second)}
    scheduled = make(strategy, slice_seconds=0.001)
    record = simulate(contest.plan(), scheduled, times, Conditions(tuples="fluid"))
    work = {query: chart[-1][0] for query, chart in contest.CHARTS.items()}
    assert record.peak_bytes >= memory_floor(contest.CHARTS, times) - 1e-6
    assert record.mean_latency_seconds >= latency_floor(work, contest.OUTPUTS, times) - 1e-9


def test_every_strategy_is_on_the_plane() -> None:
    assert {each.strategy for each in contest.contestants()} == set(BUILT_IN)


def test_budgets_and_goals_are_multiples_of_the_bounds() -> None:
    streams = {query: np.linspace(0.0, 1.0, 40) for query in contest.CHARTS}
    least = contest.bounds(streams)
    lean, swift = (
        contest.measured(
            contest.Contestant("", "auto", {"slice_seconds": 0.004}, budget), streams, least
        )
        for budget in (1.1, 100.0)
    )
    assert 1 <= lean.memory < 1.3
    assert 1 <= swift.latency_seconds < 1.1
    assert swift.memory > 1.5 * lean.memory
    assert lean.latency_seconds > 1.1 * swift.latency_seconds


def test_broken_budgets_and_bounds_are_noticed() -> None:
    rows = [
        (each.label, each.strategy, each.budget, each.goal, 0, each.budget or 2.0, 2.0)
        for each in contest.contestants()
    ]
    rows += [
        (f"{every_strategy.AS_LEAN} threshold {budget:g}", "auto", budget, 0.0, 0, budget, 2.1)
        for budget in (*contest.TIGHT, *contest.WIDE)
    ]
    names = ("label", "strategy", "budget", "goal", "seed", "peak", "latency")
    tables = {"runs": dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))}
    expected = [
        True,
        False,
        *[False] * len(contest.WIDE),
        *[True] * len(contest.TIGHT),
        False,
    ]
    assert [claim.holds for claim in every_strategy.check(tables)] == expected
    tables["runs"]["peak"][0] = 0.9
    assert not every_strategy.check(tables)[0].holds
    spots = picture.spots(tables)
    assert len(spots) == len(rows)
    every_strategy.plot(tables, Figure())
