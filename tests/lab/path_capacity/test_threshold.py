from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from millpond.lab.path_capacity import threshold
from millpond.lab.path_capacity.workload import Setting


def test_threshold_with_ample_memory_is_path_capacity() -> None:
    table = threshold.run([0], Setting((0.5, 1.1), 15.0))["limits"]
    assert table["latency"][-1] == table["normal latency"][-1]
    threshold.plot({"limits": table}, Figure())
    assert threshold.check({"limits": table})[0].holds


@pytest.mark.parametrize(("latency", "verdict"), [(1.5, "holds"), (2.5, "differs"), (0.5, "fails")])
def test_its_latency_is_said_to_lie_between_the_two_it_is_made_of(
    latency: float, verdict: str
) -> None:
    row = {"latency": latency, "normal latency": 1.0, "saving latency": 2.0}
    assert threshold._between(0.6, [row]).verdict == verdict
