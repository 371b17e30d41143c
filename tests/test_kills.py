"""`kill -9` of a run on a store, really: the same command again ends as if nothing had happened."""

from __future__ import annotations

import pytest

from tests.kills import trial

pytestmark = [
    pytest.mark.spark,
]


@pytest.mark.parametrize(("driver_rows", "kills"), [(50_000, 3), (0, 1)])
def test_a_run_that_is_killed_goes_on(tmp_path, driver_rows, kills):
    outcome = trial(tmp_path / "trial", 40 + kills, kills, [f"driver_rows={driver_rows}"])
    assert outcome.is_good, outcome
    assert outcome.kills == kills
