"""How much is kept under load: literal observations in, literal rates out, and a simulated load."""

from itertools import pairwise

import pytest

from millpond.approximation.pace import SLOWEST, Pace
from millpond.approximation.shedding import LONGEST_SECONDS, Shedding, left_percent


def test_what_is_kept_is_what_can_be_done_and_not_less_than_is_tolerated():
    shedding, percent = Shedding(2.0).decide(10.0, 100.0, 5.0, behind_seconds=1.0)
    shedding, percent = shedding.decide(14.0, percent, 5.0, behind_seconds=3.0)
    assert percent == 50  # in four seconds the front has moved by two
    shedding, percent = shedding.decide(18.0, percent, 5.0, behind_seconds=5.0)
    assert percent == 50  # what waits came before that
    shedding, percent = shedding.decide(19.0, percent, 5.0, behind_seconds=4.5)
    shedding, percent = shedding.decide(21.0, percent, 5.0, behind_seconds=6.5)
    assert percent == 5  # the front stands still, and no query tolerates less
    shedding, percent = shedding.decide(30.0, percent, 5.0, behind_seconds=9.0)
    assert shedding.decide(40.0, percent, 5.0, behind_seconds=15.0)[1] == 5


def test_a_query_that_tolerates_nothing_less_is_left_alone():
    shedding, _ = Shedding(1.0).decide(10.0, 100.0, 100.0, behind_seconds=0.0)
    assert shedding.decide(20.0, 100.0, 100.0, behind_seconds=9.0)[1] == 100


def test_more_is_kept_once_it_was_calm_for_a_while():
    shedding, percent, rates = Shedding(2.0, changed_at=10.0), 2.0, []
    for now in range(11, 20):
        behind = 0.1 if now != 14 else 1.5  # for a moment there is more
        shedding, percent = shedding.decide(float(now), percent, 1.0, behind)
        rates.append(percent)
    assert rates == [2, 8, 8, 8, 32, 32, 100, 100, 100]


def simulated(load, seconds=600, allowed=1.0):
    """The rate and how far answers are behind, ten times a second, under a load of so many times
    of what can be done: the front moves by what is kept of what came then."""
    shedding, percent, front = Shedding(allowed), 100.0, 0.0
    kept: dict[int, float] = {}
    course = []
    for tick in range(seconds * 10):
        now, work = tick / 10, 0.1
        kept[tick] = percent
        while work > 0 and front < now:
            cost = load(front) * kept[int(front * 10 + 1e-6)] / 100 * 0.01
            front, work = min(now, front + 0.01), work - cost
        shedding, percent = shedding.decide(now, percent, 0.1, max(0.0, now - front))
        course.append((now, percent, now - front))
    return shedding, course


@pytest.mark.parametrize("times", [1.5, 3, 10])
def test_under_a_load_that_stays_the_rate_is_tried_ever_more_rarely(times):
    shedding, course = simulated(lambda at: times)
    changes = [now for (now, one, _), (_, other, _) in pairwise(course) if one != other]
    assert shedding.patience_seconds == LONGEST_SECONDS
    assert len([now for now in changes if now > 300]) <= 24
    behind = sorted(each for now, _, each in course if now > 300)
    assert behind[len(behind) * 9 // 10] <= 2


def test_after_a_burst_all_is_kept_again_soon():
    _, course = simulated(lambda at: 10 if at < 10 else 0.5, seconds=40)
    assert min(percent for _, percent, _ in course) < 20
    whole = next(now for now, percent, _ in course if now > 10 and percent == 100)
    assert whole < 30  # what came before it was noticed is eleven seconds of work


def test_where_it_is_known_how_much_comes_nobody_waits_until_answers_are_behind():
    seen, percent = Shedding(1.0).decide(10.0, 100.0, 1.0, 0.05, load=5.0, work_seconds=0.2)
    assert percent == 100  # that much is soon done
    seen, percent = seen.decide(10.1, percent, 1.0, 0.15, load=5.0, work_seconds=0.3)
    assert percent == 14  # 0.7 seconds of one are left to do it
    seen, percent = seen.decide(10.2, percent, 1.0, 0.9, load=0.7, work_seconds=0.9)
    assert percent == 14  # it is worked off
    seen, percent = seen.decide(10.3, percent, 1.0, 1.2, load=2.0, work_seconds=0.6)
    assert percent == pytest.approx(14 * 0.4 / 2)  # of 0.6 seconds in one
    assert seen.decide(10.4, percent, 2.5, 1.2, load=2.0, work_seconds=0.9)[1] == 2.5


def test_as_much_is_kept_again_as_can_be_done():
    seen, percent = Shedding(1.0, changed_at=10.0), 10.0
    for now in (10.1, 10.7):
        seen, percent = seen.decide(now, percent, 1.0, 0.1, load=0.8)
    assert percent == 10  # there is no more time
    seen, percent = seen.decide(11.3, percent, 1.0, 0.1, load=0.3)
    assert percent == pytest.approx(30)
    for now in (11.4, 12.0):
        seen, percent = seen.decide(now, percent, 1.0, 0.1, load=0.02)
    assert percent == 100


def test_a_burst_after_more_was_kept_is_no_reason_to_wait_longer():
    seen, percent = Shedding(1.0, changed_at=10.0, was_raised=True), 100.0
    seen, percent = seen.decide(20.0, percent, 1.0, 0.2, load=10.0, work_seconds=0.3)
    assert (percent, seen.patience_seconds) == (7, 0)


def test_what_is_known_is_not_believed_when_answers_are_far_behind():
    seen, percent = Shedding(1.0).decide(10.0, 100.0, 1.0, 5.0, load=0.5)
    seen, percent = seen.decide(11.0, percent, 1.0, 5.5, load=0.5)
    assert percent == 50


def test_so_much_is_left_of_what_waits_that_it_is_done_in_time():
    assert left_percent(40.0, 1.0, 2.0, work_seconds=1.0, free_seconds=0.5) == 40
    assert left_percent(40.0, 1.0, 2.0, work_seconds=2.5, free_seconds=2.0) == 10
    assert left_percent(40.0, 1.0, 2.0, work_seconds=9.0, free_seconds=2.0) == 4
    assert left_percent(40.0, 15.0, 2.0, work_seconds=9.0, free_seconds=2.0) == 15
    assert left_percent(10.0, 15.0, 2.0, work_seconds=9.0, free_seconds=2.0) == 10
    assert left_percent(40.0, 0.0, 1e-9, work_seconds=9.0, free_seconds=9.0) == 0.01


def test_the_pace_is_what_was_done_while_work_waited():
    pace = Pace(2.0)
    done = [(0, 0), (1, 50), (1.5, 50), (2, 120), (4, 400), (5, 400)]
    found = [pace.look(at, {"a": (tuples, 0.01)}, True) for at, tuples in done]
    assert found == [1, 0.5, 0.5, pytest.approx(0.6), 1, 1]
    pace.look(6, {"a": (400, 0.01)}, False)  # who idles shows nothing
    assert pace.look(20, {"a": (401, 0.01), "b": (70, 1.0)}, True) == 1
    assert pace.look(30, {"a": (402, 0.01), "b": (70, 1.0)}, True) == SLOWEST
    assert pace.look(32, {"a": (402, 0.02), "b": (71, 1.8)}, True) == pytest.approx(0.9)
