from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from millpond.lab.path_capacity import threshold_factor
from millpond.lab.path_capacity.threshold_factor import NONE, PAPERS, SENTENCES, check
from millpond.lab.path_capacity.watched_threshold import Course, Watched, course_of, smoothness
from millpond.lab.path_capacity.workload import DRAWN
from millpond.scheduling.snapshot import Observation
from millpond.simulator import Record

TINY = replace(DRAWN, loads=(1.1,), phase_seconds=20.0)
POINT = {"memory share": 0.3, "course": 3.0, "interval seconds": 0.1}


def test_changes_of_mode_are_noted() -> None:
    watched = Watched(memory_bytes=100.0, beta=0.9, interval_seconds=0.1)
    for second, queued in enumerate((10.0, 95.0, 96.0, 5.0, 5.0)):
        watched.observe(Observation(now_seconds=float(second), changed=[], queue_bytes=queued))
    assert watched.change_seconds == [1.0, 3.0]
    assert watched.saving_seconds(4.0) == [(1.0, 3.0)]
    watched.observe(Observation(now_seconds=5.0, changed=[], queue_bytes=95.0))
    assert watched.saving_seconds(7.0) == [(1.0, 3.0), (5.0, 7.0)]


def test_a_run_with_little_memory_saves_most_of_the_time() -> None:
    little, much = (course_of(TINY, 1, size, PAPERS, 0.1) for size in (5.0, 1e6))
    assert little.saving_share > 0.5
    assert (much.changes, much.saving_share, much.saving_bins) == (0, 0.0, [])


def of_bins(counts: list[float], saving: list[int]) -> Course:
    return Course(1, 0.5, 1.0, saving, np.array(counts))


def test_smoothness_is_told_of_the_bins_in_which_it_saves() -> None:
    chain = Record(
        output_seconds=np.array([1.0] * 2 + [6.0] * 2 + [11.0] * 2 + [16.0] * 6 + [21.0] * 90),
        output_latency_seconds=np.zeros(102),
        output_mass=np.ones(102),
        finished_seconds=25.0,
    )
    even = of_bins([3.0, 3.0, 3.0, 3.0, 9.0], [0, 1, 2, 3])
    assert smoothness(even, chain) == pytest.approx(0.5)
    assert smoothness(of_bins([1.0] * 5, [0, 1]), chain) == float("inf")


def test_what_is_measured_is_drawn_and_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threshold_factor, "SECONDS", 20.0)
    tables = threshold_factor.run([1], POINT)
    threshold_factor.plot(tables, Figure())
    claims = check(tables)
    assert len(claims) == 1 + len(SENTENCES)
    assert claims[0].verdict == "holds"


def test_without_beta_there_is_no_room_where_the_mean_is_the_memory() -> None:
    zones = threshold_factor._zones()
    assert zones[str(NONE)][-1] == pytest.approx(NONE * (1 - NONE))
    assert min(zones[str(PAPERS)]) == pytest.approx(0.09)
