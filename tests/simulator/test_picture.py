"""What strategies see of a simulated plan."""

import numpy as np
import pytest

from millpond.simulator.picture import stream_rate


@pytest.mark.parametrize(
    ("arrivals", "rate"),
    [([], 0), ([3.0], 1), ([3.0, 3.0], 2), ([0.0, 5e-324], 2), ([1.0, 1.5, 2.0], 2)],
)
def test_a_rate_is_finite_however_close_the_tuples(arrivals: list[float], rate: float) -> None:
    assert stream_rate(np.array(arrivals)) == rate
