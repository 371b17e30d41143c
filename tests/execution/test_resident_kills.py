"""The long run of `tests.resident_kills` in short, and that it would tell what goes wrong."""

import pytest

from tests.execution.test_executor import QUERIES
from tests.resident_kills import compared, expected, trial

pytestmark = pytest.mark.slow

SOME = "large", "counts", "last_rows", "joined"


def test_kills_and_connections_that_are_late_and_cut_change_nothing():
    """One that goes silent takes long to be missed: it is in the long run, and in
    `test_one_that_hangs_is_ended_and_its_task_done_by_another`."""
    outcome = trial(3, kills=3, cuts=3, drops=0, queries={name: QUERIES[name] for name in SOME})
    assert outcome.is_good, outcome
    assert outcome.kills + outcome.cuts > 3


def test_what_is_lost_or_comes_twice_or_in_another_order_is_told():
    rows = expected(*SOME)["counts"]
    for changed, lost, twice in ((rows[1:], 1, 0), ([*rows, rows[0]], 0, 1), (rows[::-1], 0, 0)):
        outcome = compared(expected(*SOME) | {"counts": changed})
        assert (outcome.lost, outcome.twice, outcome.differing) == (lost, twice, ("counts",))
        assert not outcome.is_good
    assert compared(expected(*SOME)).is_good
