from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import StrategyError
from millpond.scheduling.threads.thread_scheduler import AGING, ThreadScheduler


def take_turns(threads: ThreadScheduler, count: int, seconds: float = 1.0) -> list[int]:
    taken = []
    for _ in range(count):
        thread = threads.next()
        assert thread is not None
        threads.start(thread)
        threads.charge(thread, seconds)
        threads.resume(thread)
        taken.append(thread)
    return taken


def awake(*priorities: float) -> ThreadScheduler:
    threads = ThreadScheduler(priorities)
    for thread in range(len(priorities)):
        threads.wake(thread)
    return threads


def test_nobody_waiting_means_nobody_next() -> None:
    assert ThreadScheduler([1.0]).next() is None


def test_equal_threads_take_turns() -> None:
    assert take_turns(awake(1.0, 1.0, 1.0), 6) == [0, 1, 2, 0, 1, 2]


def test_time_is_divided_in_the_ratio_of_priorities() -> None:
    assert Counter(take_turns(awake(3.0, 1.0), 400)) == {0: 300, 1: 100}


def test_a_running_thread_is_not_next() -> None:
    threads = awake(1.0, 1.0)
    threads.start(0)
    threads.start(1)
    assert threads.next() is None


def test_an_idle_thread_has_no_claim_on_the_past() -> None:
    threads = ThreadScheduler([1.0, 1.0])
    threads.wake(0)
    take_turns(threads, 10)
    threads.wake(1)
    assert take_turns(threads, 4) == [1, 0, 1, 0]


def test_a_long_turn_is_paid_for() -> None:
    threads = awake(1.0, 1.0)
    threads.start(0)
    threads.charge(0, 2.0)
    threads.resume(0)
    assert take_turns(threads, 4) == [1, 1, 0, 1]


def test_priorities_can_change_while_running() -> None:
    threads = awake(1.0, 1.0)
    take_turns(threads, 2)
    threads.set_priority(1, 4.0)
    assert Counter(take_turns(threads, 50)) == {0: 10, 1: 40}


@pytest.mark.parametrize("priority", [0.0, -1.0, float("nan"), float("inf")])
def test_a_priority_that_is_not_positive_is_refused(priority: float) -> None:
    with pytest.raises(StrategyError, match="priority is"):
        awake(1.0).set_priority(0, priority)


@pytest.mark.parametrize("others", [1, 5])
def test_a_thread_of_hardly_any_priority_gets_a_turn_in_so_many_decisions(others: int) -> None:
    """By its share alone it would wait for a billion turns."""
    threads = awake(1e-9, *[1.0] * others)
    taken = take_turns(threads, 5 * AGING * (others + 1))
    places = [place for place, one in enumerate(taken) if one == 0]
    waits = [later - place for place, later in pairwise([*places, len(taken)])]
    assert len(places) >= 4
    assert max(waits) <= AGING * (others + 1) + others + 1


def test_many_that_grow_old_at_once_have_their_turns_one_after_another() -> None:
    threads = awake(1.0, *[1e-9] * 7)
    taken = take_turns(threads, 4 * AGING * 8)
    for thread in range(1, 8):
        places = [place for place, one in enumerate(taken) if one == thread]
        assert max(later - place for place, later in pairwise(places)) <= AGING * 8 + 8


def test_aging_leaves_the_ratio_of_priorities_alone_up_to_there() -> None:
    assert Counter(take_turns(awake(float(AGING), 1.0), 2 * (AGING + 1)))[1] == 2


def test_threads_that_stay_keep_their_time_when_others_come() -> None:
    before = awake(1.0, 1.0)
    before.start(0)
    before.charge(0, 3.0)
    after = before.succeeded([1.0, 1.0, 1.0], [None, 0, 1])
    for thread in range(3):
        after.wake(thread)
    assert [each for each in take_turns(after, 6) if each == 1] == []


def test_threads_that_wait_grow_older_when_others_come() -> None:
    threads, taken = awake(1e9, 1e-9), list[int]()
    for _ in range(4 * AGING):  # with each turn there is another plan
        threads = threads.succeeded([1e9, 1e-9], [0, 1])
        for thread in range(2):
            threads.wake(thread)
        taken += take_turns(threads, 1)
    first, second = (place for place, one in enumerate(taken) if one == 1)
    assert second - first == 2 * AGING + 1


@given(st.lists(st.floats(0.1, 10.0), min_size=2, max_size=8), st.floats(0.001, 1.0))
def test_no_thread_starves(priorities: list[float], seconds: float) -> None:
    """Between two turns of a thread every other has at most its share more than one."""
    threads = awake(*priorities)
    taken = take_turns(threads, 300, seconds)
    for thread, priority in enumerate(priorities):
        bound = sum(other / priority + 2 for other in priorities)
        places = [-1, *(place for place, one in enumerate(taken) if one == thread), len(taken)]
        longest = max(later - place for place, later in pairwise(places))
        assert longest <= bound + 1
