import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import InputError
from millpond.workloads import (
    CHUNK_ARRIVALS,
    ArrivalProcess,
    Constant,
    OnOff,
    ParetoOnOff,
    Phases,
    Poisson,
    PoissonFlows,
    SelfSimilar,
    Trace,
    counts_per_bin,
    make,
)

ENDLESS: list[ArrivalProcess] = [
    Constant(100),
    Poisson(100),
    OnOff(1000, 0.5, 2.0, 3.0),
    ParetoOnOff(100, on_seconds=0.1, off_seconds=0.2),
    SelfSimilar(100, flows=16),
    PoissonFlows(10, 20, flow_seconds=0.5),
]


@pytest.mark.parametrize("process", ENDLESS, ids=lambda p: type(p).__name__)
@given(seed=st.integers(0, 2**32))
def test_times_go_forward_from_zero_and_repeat_with_the_seed(
    process: ArrivalProcess, seed: int
) -> None:
    times = process.times(500, seed)
    assert len(times) == 500
    assert times[0] >= 0
    assert np.all(np.diff(times) >= 0)
    assert np.array_equal(times, process.times(500, seed))


@pytest.mark.parametrize("process", ENDLESS, ids=lambda p: type(p).__name__)
def test_times_and_until_cut_the_same_sequence(process: ArrivalProcess) -> None:
    chunks = list(itertools.islice(process.arrivals(7), 4))
    assert all(len(chunk) for chunk in chunks)
    whole = np.concatenate(chunks)
    assert np.array_equal(process.times(len(whole), 7), whole)
    middle = (whole[len(whole) // 2] + whole[len(whole) // 2 + 1]) / 2
    assert np.array_equal(process.until(middle, 7), whole[whole < middle])


@pytest.mark.parametrize("process", [Poisson(100), SelfSimilar(100), PoissonFlows(5, 10)])
def test_another_seed_gives_other_times(process: ArrivalProcess) -> None:
    assert not np.array_equal(process.times(50, 1), process.times(50, 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "tolerance"),
    [
        (Constant(50), 0.001),
        (Poisson(50), 0.01),
        (OnOff(100, 1, 3, 10), 0.001),
        # Shapes near 2: with heavier tails a mean needs far more time than a test has.
        (ParetoOnOff(50, 1.9, 1.9, 0.02, 0.04), 0.05),
        (SelfSimilar(50, 1.9, 1.9, 0.2, 0.4, 32), 0.05),
        (PoissonFlows(5, 20, 1.9, 0.5), 0.05),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_mean_rate_is_kept(process: ArrivalProcess, tolerance: float) -> None:
    measured = np.mean([len(process.until(500, seed)) / 500 for seed in range(8)])
    assert measured == pytest.approx(process.mean_arrivals_per_second, rel=tolerance)


def test_self_similar_input_is_burstier_than_poisson() -> None:
    def relative_deviation(process: ArrivalProcess) -> float:
        counts = [counts_per_bin(process.until(200, seed), 10.0) for seed in range(8)]
        return float(np.mean([c.std() / c.mean() for c in counts]))

    assert relative_deviation(SelfSimilar(500)) > 4 * relative_deviation(Poisson(500))


def test_a_long_silence_is_skipped() -> None:
    process = ParetoOnOff(0.01, 1.5, 1.5, 1e-3, 1e6)
    assert process.times(100_000, 4)[-1] > 10**6


def test_flows_start_in_their_steady_state() -> None:
    first_second = [len(SelfSimilar(100).until(1.0, seed)) for seed in range(200)]
    assert np.mean(first_second) == pytest.approx(100, rel=0.1)


def test_a_flow_that_stays_on_does_not_fill_the_memory() -> None:
    process = ParetoOnOff(1000, on_shape=1.05, off_shape=1.9, on_seconds=1000, off_seconds=0.1)
    lengths = [len(chunk) for chunk in itertools.islice(process.arrivals(5), 50)]
    assert max(lengths) < 2 * CHUNK_ARRIVALS


def test_a_burst_by_the_clock_has_exact_times() -> None:
    assert OnOff(2, 1, 2, 1).times(6).tolist() == [0.0, 0.5, 1.0, 2.0, 3.0, 3.5]
    assert OnOff(10, 0.3, 0.7).until(1.0).round(6).tolist() == [0.0, 0.1, 0.2]


def test_phases_end_after_the_last() -> None:
    process = Phases(((10_000, 500_000.0), (20_000, 250.0)))
    times = process.times(10**6)
    assert len(times) == 30_000
    assert times[9_999] < 0.02
    assert times[10_000] == pytest.approx(0.02)
    assert process.mean_arrivals_per_second == pytest.approx(30_000 / 80.02)


def test_a_trace_counts_from_its_first_time(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("time,size\n10.5,100\n11.0,200\n\n12.5,50\n")
    trace = Trace(str(path))
    assert trace.times(10).tolist() == [0.0, 0.5, 2.0]
    assert [sizes.tolist() for _, sizes in trace.records()] == [[100.0, 200.0, 50.0]]
    assert trace.mean_arrivals_per_second == 1.0


def test_a_trace_may_have_spaces_and_no_sizes(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_text("1 10\n2\n")
    assert [(t.tolist(), s.tolist()) for t, s in Trace(str(path)).records()] == [
        ([0.0, 1.0], [10.0, 1.0])
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [("1,1\nx,1\n", "line 2: 'x,1' is not a time"), ("2,1\n1,1\n", "must not go back")],
)
def test_a_faulty_trace_names_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Trace(str(path)).times(10)


def test_a_missing_trace_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        Trace(str(tmp_path / "none")).times(1)


def test_processes_are_made_by_name() -> None:
    assert make("self-similar", arrivals_per_second=10, flows=128) == SelfSimilar(10, flows=128)
    with pytest.raises(InputError, match='no arrival process "poison"; did you mean "poisson"'):
        make("poison")
    with pytest.raises(InputError, match="its parameters: arrivals_per_second"):
        make("poisson", speed=3)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("poisson", {"arrivals_per_second": 0}),
        ("poisson", {"arrivals_per_second": "many"}),
        ("constant", {"arrivals_per_second": -1}),
        ("selfsimilar", {"arrivals_per_second": 1, "on_shape": 1.0}),
        ("onoff", {"on_arrivals_per_second": 1, "on_seconds": 0.5, "off_seconds": 1}),
        ("flows", {"flows_per_second": 1, "flow_arrivals_per_second": float("nan")}),
    ],
)
def test_impossible_parameters_are_refused(name: str, parameters: dict[str, float]) -> None:
    with pytest.raises(InputError):
        make(name, **parameters)


def test_a_period_of_any_length_is_made_in_pieces():
    process = OnOff(10_000_000, 1_000, 1)  # ten thousand million arrivals
    assert process.mean_arrivals_per_second == 10**10 / 1_001
    pieces = list(itertools.islice(process.arrivals(), 3))
    assert [len(piece) for piece in pieces] == [CHUNK_ARRIVALS] * 3
    assert np.array_equal(np.concatenate(pieces), np.arange(3 * CHUNK_ARRIVALS) / 10_000_000)


def test_pieces_of_a_period_follow_each_other_like_the_periods():
    process = OnOff(3_000, 2.5, 1.5, 2_000)
    period = np.concatenate([np.arange(7_500) / 3_000, 2.5 + np.arange(3_000) / 2_000])
    expected = np.concatenate([number * 4.0 + period for number in range(3)])
    assert np.array_equal(process.times(31_500), expected)
