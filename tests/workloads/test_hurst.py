import numpy as np
import pytest

from millpond.errors import InputError
from millpond.workloads import Poisson, SelfSimilar, counts_per_bin, hurst_estimate


@pytest.mark.parametrize("shape", [1.2, 1.4, 1.6])
def test_self_similar_input_has_the_hurst_parameter_of_theory(shape: float) -> None:
    process = SelfSimilar(1000, shape, shape, 0.1, 0.2)
    estimates = [hurst_estimate(counts_per_bin(process.until(400, s), 0.5)) for s in range(6)]
    assert np.mean(estimates) == pytest.approx((3 - shape) / 2, abs=0.08)


def test_poisson_input_has_a_hurst_parameter_of_one_half() -> None:
    estimates = [hurst_estimate(counts_per_bin(Poisson(500).until(400, s), 0.5)) for s in range(6)]
    assert np.mean(estimates) == pytest.approx(0.5, abs=0.05)


def test_a_short_series_is_refused() -> None:
    with pytest.raises(InputError, match="200 counts at least, not 10"):
        hurst_estimate(np.ones(10))


def test_counts_are_taken_per_bin() -> None:
    assert counts_per_bin(np.array([0.0, 0.1, 0.9, 2.5]), 1.0).tolist() == [3.0, 0.0, 1.0]
