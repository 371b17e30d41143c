"""Partitions that users have made: strategies, threads and priorities of their own, at any time."""

from collections import Counter
from dataclasses import replace

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.decisions import PlaceQueues, RunOperator
from millpond.scheduling.snapshot import Observation, PartitionSnapshot, PlanSnapshot
from millpond.scheduling.strategies.gts import Gts
from millpond.scheduling.strategies.ots import Ots
from millpond.scheduling.strategy_text import engine_strategy, partition_strategy
from millpond.scheduling.threads.three_levels import ThreeLevels
from millpond.scheduling.threads.unthreaded import OTHERS, Unthreaded
from tests.scheduling.thread_plans import begin, idle, plan, ready, running, turns

FOUR = plan(*[(["s"], 1.0, 1.0)] * 4)


def divided(whole: PlanSnapshot, *made: PartitionSnapshot, **places: str) -> PlanSnapshot:
    """A plan with partitions; operators by name say in which they are."""
    operators = tuple(replace(o, partition=places.get(o.name, "")) for o in whole.operators)
    return replace(whole, operators=operators, partitions=made)


def partition(name: str = "p", **facts: object) -> PartitionSnapshot:
    return replace(PartitionSnapshot(name), **facts)


def names(levels: ThreeLevels) -> list[str]:
    return [each.name for each in levels.configuration.partitions]


def test_a_partition_decides_by_its_own_strategy_beside_the_others() -> None:
    made = divided(FOUR, partition(strategy="round-robin"), o2="p", o3="p")
    free = Unthreaded("fifo", {})
    begin(free, made, *ready(0, 1, 2, 3))
    inside, others = free.configuration.partitions
    assert (inside.strategy, inside.operators) == ("round-robin", {2, 3})
    assert (others.name, others.strategy, others.operators) == (OTHERS, "fifo", {0, 1})
    ran = turns(free, 40)
    assert [each for each in ran if each > 1] == [2, 3] * 10
    assert len(ran) == 40


@pytest.mark.parametrize(("threads", "at_once"), [(1, 1), (2, 2), (3, 2)])
def test_a_partition_runs_as_many_at_once_as_it_has_threads(threads: int, at_once: int) -> None:
    made = divided(FOUR, partition(threads=threads), o0="p", o1="p", o2="p", o3="p")
    free = Unthreaded("fifo", {})
    begin(free, made, *ready(0, 1), *idle(2, 3))
    ran = []
    while isinstance(decision := free.decide(), RunOperator):
        ran.append(decision.operator)
        free.observe(Observation(0.0, running(decision.operator)))
    assert len(ran) == at_once


def test_what_is_in_no_partition_runs_on_any_number_of_processors() -> None:
    free = Unthreaded("fifo", {})
    begin(free, divided(FOUR, partition(), o3="p"), *ready(0, 1, 2, 3))
    ran = []
    while isinstance(decision := free.decide(), RunOperator):
        ran.append(decision.operator)
        free.observe(Observation(0.0, running(decision.operator)))
    assert sorted(ran) == [0, 1, 2, 3]


def test_priorities_of_partitions_divide_the_time_and_change_while_it_runs() -> None:
    def made(priority: float) -> PlanSnapshot:
        return divided(FOUR, partition("a", priority=priority), partition("b"), o0="a", o1="b")

    free = Unthreaded("fifo", {})
    begin(free, made(3.0), *ready(0, 1))
    assert Counter(turns(free, 40)) == {0: 30, 1: 10}
    begin(free, made(1.0), *ready(0, 1))
    assert Counter(turns(free, 40)) == {0: 20, 1: 20}


def test_a_partition_keeps_its_strategy_while_operators_threads_and_priority_change() -> None:
    free = Unthreaded("fifo", {})
    begin(free, divided(FOUR, partition(), o0="p", o1="p"))
    before = free._threads[0].strategy
    begin(free, divided(FOUR, partition(threads=2, priority=5.0), o0="p", o2="p"))
    assert free._threads[0].strategy is before
    assert free.configuration.partitions[0].operators == {0, 2}
    begin(free, divided(FOUR, partition(strategy="chain"), o0="p", o2="p"))
    assert free._threads[0].strategy is not before


def test_a_partition_keeps_its_strategy_and_place_in_time_when_the_mode_changes() -> None:
    made = divided(FOUR, partition("a"), partition("b"), o0="a", o1="b")
    free = Unthreaded("fifo", {})
    begin(free, made, *ready(0, 1))
    assert turns(free, 1, seconds=10.0) == [0]
    gts = Gts()
    gts.succeed(free)
    begin(gts, made, *ready(0, 1))
    assert gts._threads[0] is free._threads[0]
    assert isinstance(gts.decide(), RunOperator)  # nothing is to be moved: all stand alone
    assert names(gts) == ["a", "b", ""]


def test_modes_divide_what_is_left_over() -> None:
    row = plan((["s"], 1.0, 1.0), ([0], 1.0, 1.0), ([1], 1.0, 1.0), ([2], 1.0, 1.0))
    made = divided(row, partition(), o1="p", o2="p")
    ots, di = Ots(), engine_strategy("fifo", 1.0, "di")
    begin(ots, made)
    assert names(ots) == ["p", "", ""]
    assert isinstance(di, ThreeLevels)
    everything = replace(made.by_id[0], downstream=(), members=("o0", "o1", "o2", "o3"))
    fused = PlanSnapshot((everything,), 0, made)
    begin(di, fused)
    assert di.decide() == PlaceQueues(frozenset({("s", 0), (0, 1), (2, 3)}))


def test_a_partition_without_operators_is_no_thread() -> None:
    free = Unthreaded("fifo", {})
    begin(free, divided(FOUR, partition("a"), partition("b"), o0="b"), *ready(0))
    assert names(free) == ["b", OTHERS]


def test_a_strategy_of_threads_needs_no_threads_around_it() -> None:
    assert isinstance(engine_strategy("chain", 1.0, has_partitions=True), Unthreaded)
    assert isinstance(engine_strategy("hmts", 1.0, has_partitions=True), ThreeLevels)
    assert not isinstance(engine_strategy("chain", 1.0), ThreeLevels)


@pytest.mark.parametrize("text", ["gts", "hmts(threads = 2)", "chian", "chain(("])
def test_what_cannot_drive_a_partition_is_refused(text: str) -> None:
    with pytest.raises(StrategyError, match=r"threads of its own|no strategy|cannot be read"):
        partition_strategy(text, 1.0)
