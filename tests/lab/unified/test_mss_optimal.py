import pytest

from millpond.lab.unified import mss_optimal


def test_mss_has_the_least_latency() -> None:
    ratios = mss_optimal._ratios(mss_optimal.random_queues(3, count=20), "latency")
    assert ratios["maximum-slope-segment"] == pytest.approx([1.0] * 20)
    assert max(ratios["per-tuple-greedy"]) > 1.01


def test_the_memory_variant_of_mss_is_near_the_least() -> None:
    ratios = mss_optimal._ratios(mss_optimal.random_paths(3, count=20), "memory")
    assert sum(ratios["maximum-slope-segment"]) < 20 * 1.01


def test_mss_does_not_wait_for_what_has_not_arrived() -> None:
    assert mss_optimal.late_arrival() == 20.0 > mss_optimal.WAITING_FOR_IT


@pytest.mark.parametrize(("mss", "verdict"), [(13.0, "holds"), (20.0, "differs"), (15.0, "fails")])
def test_optimality_with_arrivals_is_compared_with_what_was_worked_out(
    mss: float, verdict: str
) -> None:
    late = {"maximum-slope-segment": [mss], "waiting for it": [13.0]}
    assert mss_optimal._late({"late arrival": late}).verdict == verdict
