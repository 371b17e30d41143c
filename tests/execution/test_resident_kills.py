"""The long run of `tests.resident_kills` in short, and that it would tell what goes wrong."""

import pytest

from tests.execution.test_executor import QUERIES
from tests.resident_kills import compared, expected, trial

pytestmark = pytest.mark.slow


def test_kills_and_connections_that_are_late_cut_and_silent_change_nothing():
    some = {name: QUERIES[name] for name in ("large", "counts", "last_rows", "joined")}
    outcome = trial(3, kills=3, cuts=3, drops=1, queries=some)
    assert outcome.is_good, outcome
    assert outcome.kills + outcome.cuts + outcome.drops > 3


def test_what_is_lost_or_comes_twice_or_in_another_order_is_told():
    rows = expected()["counts"]
    for changed, lost, twice in ((rows[1:], 1, 0), ([*rows, rows[0]], 0, 1), (rows[::-1], 0, 0)):
        outcome = compared(expected() | {"counts": changed})
        assert (outcome.lost, outcome.twice, outcome.differing) == (lost, twice, ("counts",))
        assert not outcome.is_good
    assert compared(expected()).is_good
