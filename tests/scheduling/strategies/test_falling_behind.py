"""Strategies that were given a memory or a goal say when they cannot keep to it."""

import pytest

from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import PartitionSnapshot
from millpond.scheduling.strategy import Strategy, falls_behind
from millpond.scheduling.threads.unthreaded import Unthreaded
from tests.scheduling.literal_plans import paths, tell
from tests.scheduling.threads.test_named_partitions import FOUR, divided

PLAN = paths([(1.0, 0.1), (90.0, 1.0)], [(4.0, 0.5), (2.0, 1.0)])


def course(strategy: Strategy, *memory: float) -> list[bool]:
    """Whether it says so with so much in queues, a second later each time."""
    strategy.plan_changed(PLAN)
    found = []
    for second, queue_bytes in enumerate(memory):
        tell(strategy, {}, float(second), queue_bytes)
        found.append(bool(falls_behind(strategy)))
    return found


def test_threshold_says_so_while_saving_leaves_memory_nearly_full() -> None:
    strategy = make("threshold", memory_bytes=100.0, beta=0.9)
    # It saves from 60 on, and until memory is below its mean again.
    assert course(strategy, 10.0, 80.0, 95.0, 92.0, 88.0, 5.0, 20.0) == [
        *(False, False, True, True, True, False, False)
    ]


def test_threshold_tells_how_full_it_is() -> None:
    strategy = make("threshold", memory_bytes=100.0)
    course(strategy, 10.0, 95.0)
    assert falls_behind(strategy) == "it saves memory, and queues have 95% of what it was given"


def test_auto_says_so_once_its_memory_is_full_although_it_saves_all_it_can() -> None:
    strategy = make("auto", memory_bytes=100.0)
    assert course(strategy, 10.0, 80.0, 120.0, 99.0, 2.0, 2.0) == [
        *(False, False, True, True, False, False)
    ]


def test_auto_says_so_while_what_waits_is_older_than_the_goal() -> None:
    strategy = make("auto", memory_bytes=1e9, latency_goal_seconds=2.0)
    strategy.plan_changed(PLAN)
    found = []
    for now, came in ((1.0, 0.0), (3.0, 0.0), (4.0, 3.5), (5.0, 0.0)):
        tell(strategy, {0: (5, came)}, now, 10.0)
        found.append(bool(falls_behind(strategy)))
    assert found == [False, True, False, True]
    assert "what waits is 5 s old, 2 s are the goal" in falls_behind(strategy)


@pytest.mark.parametrize("around", ["periodically-oldest", "dynamic-priority"])
def test_a_cure_for_starvation_says_what_the_strategy_in_it_says(around: str) -> None:
    strategy = make(around, inner="threshold", memory_bytes=100.0)
    assert course(strategy, 10.0, 95.0) == [False, True]


def test_threads_tell_which_of_them_does() -> None:
    given = PartitionSnapshot("p", "threshold", {"memory_bytes": 100.0})
    free = Unthreaded("fifo", {})
    free.plan_changed(divided(FOUR, given, o0="p"))
    inside = free._threads[0]
    for queue_bytes in (10.0, 95.0):
        inside.decide(queue_bytes, queue_bytes)
    assert free.threads_behind == [falls_behind(inside.strategy), ""]
    assert falls_behind(free).startswith("p: it saves memory")


def test_others_say_nothing() -> None:
    assert course(make("chain"), 1e12) == [False]
    assert falls_behind(None) == ""
