"""Figures 2 to 4 of the Path Capacity paper: measured in a tiny setting, judged on made up runs."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from matplotlib.figure import Figure

from millpond.lab.path_capacity import figure_2, figure_3, figure_4
from millpond.lab.path_capacity.course import Course, course_of
from millpond.lab.path_capacity.figure_sentences import ALL, CHAIN, PATH, SIMPLE
from millpond.lab.path_capacity.queries import Ranges, sixteen_queries
from millpond.lab.path_capacity.searched_setting import SEARCH, chosen_setting, courses_of, measure
from millpond.lab.path_capacity.workload import STRATEGIES, Setting, record_of
from millpond.lab.sentences import margins

TINY = Setting((0.5, 1.1), 10.0)


@pytest.mark.parametrize("figure", [figure_2, figure_3, figure_4])
def test_figures_are_measured_and_drawn(figure: ModuleType) -> None:
    tables = figure.run([0, 1], TINY)
    figure.plot(tables, Figure())
    assert all(len(column) == 2 for column in tables["by seed"].values())
    over_time = next(iter(tables.values()))
    assert all(np.nanmin(over_time[name]) >= 0 for name in STRATEGIES)
    assert len(figure.check(tables)) == len(tables["by seed"])


def test_all_strategies_put_out_the_same_tuples() -> None:
    outputs = {course.outputs for course in courses_of(TINY, 0).values()}
    assert len(outputs) == 1
    assert outputs.pop() > 0


def test_a_course_is_told_by_phases() -> None:
    record = record_of("chain", TINY, 0)
    course = course_of(record, TINY)
    assert course.latency == record.mean_latency_seconds
    assert len(course.phase_latency) == len(course.phase_memory) == 2
    late = record.output_seconds > TINY.seconds
    assert course.late_outputs == pytest.approx(late.sum(), abs=course.burst_outputs)
    assert course.burst_outputs + course.late_outputs <= course.outputs


CALM = Course(
    latency=1.0,
    phase_latency=[0.1, 1.0],
    calm_latency_seconds=[0.1] * 20,
    outputs=500.0,
    peak_rate=2.0,
    calm_peak_rate=2.0,
    burst_outputs=200.0,
    silent_share=0.0,
    late_outputs=10.0,
    late_peak_rate=1.0,
    memory=10.0,
    phase_memory=[1.0, 20.0],
    peak_memory=400.0,
)
AS_SAID = {
    PATH: CALM,
    SIMPLE: CALM._replace(
        latency=2.5, phase_latency=[0.1, 2.5], burst_outputs=150.0, memory=4.5, peak_rate=2.2
    )._replace(phase_memory=[1.0, 9.0]),
    CHAIN: CALM._replace(
        latency=3.0,
        phase_latency=[0.11, 3.0],
        calm_latency_seconds=[0.1] * 19 + [0.4],
        peak_rate=5.0,
        burst_outputs=50.0,
        silent_share=0.6,
        late_peak_rate=4.0,
        memory=4.0,
        phase_memory=[0.9, 8.0],
    ),
}


def failing(**changed: object) -> set[str]:
    """What fails when Chain does otherwise than said."""
    courses = {**AS_SAID, CHAIN: AS_SAID[CHAIN]._replace(**changed)}  # type: ignore[arg-type]
    return {text for text, margin in margins(ALL, courses).items() if margin < 1}


def test_what_is_as_said_holds() -> None:
    assert failing() == set()


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"latency": 1.9}, "mean latency of Chain over Path Capacity's"),
        ({"latency": 2.4}, "mean latency of Chain over Simplified Segment's"),
        ({"phase_latency": [0.5, 0.4]}, "smallest ratio of the mean latencies of two phases"),
        ({"calm_latency_seconds": [0.1] * 20}, "first phase: Chain's slowest second"),
        ({"calm_latency_seconds": [0.1, 0.4]}, "first phase: share of the seconds"),
        ({"outputs": 499.0}, "outputs in the end"),
        ({"peak_rate": 3.0}, "peak-to-mean ratio of Chain over Simplified Segment's"),
        ({"peak_rate": 6.0}, "peak-to-mean ratio of Chain"),
        ({"calm_peak_rate": 3.0}, "first phase: largest peak-to-mean ratio"),
        ({"burst_outputs": 180.0}, "outputs in the burst, Simplified Segment's"),
        ({"silent_share": 0.3}, "share of the seconds of the burst without output, Chain"),
        ({"late_peak_rate": 0.5}, "highest rate behind the burst"),
        ({"memory": 5.0}, "mean queue memory of Simplified Segment"),
        ({"phase_memory": [0.9, 12.0]}, "last phase: mean queue memory of Path Capacity"),
        ({"phase_memory": [0.9, 5.0]}, "last phase: mean queue memory of Simplified Segment"),
        ({"phase_memory": [9.0, 8.0]}, "first phase: mean queue memories"),
    ],
)
def test_what_is_otherwise_fails(changed: dict[str, object], text: str) -> None:
    assert any(each.startswith(text) for each in failing(**changed))


def test_the_setting_is_a_point_of_the_search() -> None:
    setting = chosen_setting()
    assert setting.loads[0] < setting.loads[1] < setting.loads[2] < setting.loads[3]
    assert SEARCH.is_possible(SEARCH.found)


def test_costs_rise_with_the_depth() -> None:
    plain, deep = (sixteen_queries(Ranges(deeper=each)) for each in (1.0, 2.0))
    for one, two in zip(plain.operators[:3], deep.operators[:3], strict=True):
        assert two.inputs[0].selectivity == one.inputs[0].selectivity
    ratios = [
        float(two.inputs[0].cost_seconds) / float(one.inputs[0].cost_seconds)  # type: ignore[arg-type]
        for one, two in zip(plain.operators[:3], deep.operators[:3], strict=True)
    ]
    assert ratios == [1.0, 1.0, 2.0]


def test_a_search_measures_every_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millpond.lab.path_capacity.searched_setting.PHASE_SECONDS", 3.0)
    assert set(measure(SEARCH.found, 0)) == {sentence.text for sentence in ALL}
