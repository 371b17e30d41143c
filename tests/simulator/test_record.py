from __future__ import annotations

import numpy as np
import pytest

from millpond.simulator.record import Record, Recorder, StepFunction


def test_changes_of_one_instant_happen_at_once() -> None:
    times, changes = np.array([1.0, 2.0, 2.0]), np.array([5.0, -5.0, 3.0])
    function = StepFunction.of_changes(times, changes)
    assert function.times.tolist() == [1.0, 2.0]
    assert function.values.tolist() == [5.0, 3.0]


def test_values_are_looked_up_at_any_time() -> None:
    function = StepFunction(np.array([1.0, 2.0]), np.array([5.0, 3.0]))
    assert function.at([0.0, 1.0, 1.5, 2.0, 9.0]).tolist() == [0, 5, 5, 3, 3]
    assert function.peak == 5.0


def test_the_mean_weighs_by_time() -> None:
    function = StepFunction(np.array([0.0, 2.0]), np.array([4.0, 1.0]))
    assert function.mean(until_seconds=4.0) == pytest.approx(2.5)


def test_an_empty_function_is_zero() -> None:
    function = StepFunction(np.empty(0), np.empty(0))
    assert function.peak == 0.0
    assert function.at([1.0]).tolist() == [0.0]


def test_rounding_leaves_no_memory_behind() -> None:
    changes = np.array([0.1, 0.2, -0.3])
    assert StepFunction.of_changes(np.arange(3.0), changes).values[-1] == 0.0


def _recorded() -> Record:
    recorder = Recorder()
    recorder.output(1, np.array([1.0, 2.0]), np.array([0.0, 0.0]), np.array([0.5, 1.5]))
    recorder.output_one(2, 1.5, 1.0)
    return recorder.close(4.0)


def test_outputs_are_in_order_of_time_and_count_by_mass() -> None:
    record = _recorded()
    assert record.output_seconds.tolist() == [1.0, 1.5, 2.0]
    assert record.output_operator.tolist() == [1, 2, 1]
    assert record.outputs == 3.0
    assert record.mean_latency_seconds == pytest.approx((0.5 * 1 + 1 * 0.5 + 1.5 * 2) / 3)
    assert record.latency_percentile_seconds(100) == 2.0


@pytest.mark.parametrize(("percent", "expected"), [(10, 0.5), (33, 0.5), (50, 1.0), (51, 2.0)])
def test_percentiles_count_by_mass(percent: float, expected: float) -> None:
    """Half a second for a third of the mass, one for a sixth, two for the rest."""
    assert _recorded().latency_percentile_seconds(percent) == expected


def test_bins_hold_what_left_in_them() -> None:
    record = _recorded()
    assert record.throughput(bin_seconds=1.0).tolist() == [0.0, 1.5, 1.5, 0.0]
    over_time = record.latency_over_time(bin_seconds=2.0)
    assert over_time.tolist() == pytest.approx([(0.5 * 1 + 1 * 0.5) / 1.5, 2.0])
    assert np.isnan(record.latency_over_time(bin_seconds=1.0)[0])


def test_a_run_without_outputs_has_no_latency() -> None:
    record = Recorder().close(1.0)
    assert (record.outputs, record.mean_latency_seconds) == (0.0, 0.0)
    assert record.latency_percentile_seconds(99) == 0.0
    assert record.mean_bytes == 0.0
