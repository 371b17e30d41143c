from dataclasses import replace

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.decisions import PlaceQueues, RunOperator
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import Observation, OperatorSnapshot, OperatorState, PlanSnapshot
from millpond.scheduling.strategies.gts import Gts
from millpond.scheduling.strategies.hmts import Hmts
from millpond.scheduling.strategies.ots import Ots
from millpond.scheduling.threads.configuration import Configuration, Partition
from millpond.scheduling.threads.three_levels import ThreeLevels
from millpond.scheduling.threads.virtual_operators import operator_edges
from tests.scheduling.thread_plans import begin, idle, path, plan, ready, running, turns

ROW = path(1.0, 1.0, 1.0)
CHEAP = path(0.01, 0.01, 0.01, 5.0)


def fused(whole: PlanSnapshot, *members: int) -> PlanSnapshot:
    """The plan of a path with its first operators as one."""
    names = tuple(whole.by_id[each].name for each in members)
    one = OperatorSnapshot(0, " + ".join(names), whole.by_id[0].inputs, (3,), members=names)
    last = OperatorSnapshot(3, "o3", (replace(whole.by_id[3].inputs[0], source=0),))
    return PlanSnapshot((one, last), structure=1, unfused=whole)


def followed_by(
    before: ThreeLevels, after: ThreeLevels, on: PlanSnapshot, *states: OperatorState
) -> ThreeLevels:
    """The second one, in place of the first."""
    after.succeed(before)
    begin(after, on, *states)
    return after


def test_gts_is_one_thread_that_runs_one_operator_at_a_time() -> None:
    gts = Gts()
    begin(gts, ROW, *ready(0, 1, 2))
    assert gts.decide() == RunOperator(2)
    gts.observe(Observation(0.0, running(2)))
    assert gts.decide() is None
    gts.observe(Observation(1.0, idle(2)))
    assert gts.decide() == RunOperator(1)


def test_gts_decides_by_the_strategy_it_is_given() -> None:
    gts = Gts("round-robin", max_tuples=7)
    begin(gts, ROW, *ready(0, 1, 2))
    assert gts.decide() == RunOperator(0, max_tuples=7)


def test_ots_runs_every_operator_in_its_own_thread() -> None:
    ots = Ots(turn_seconds=0.5)
    begin(ots, ROW, *ready(0, 1, 2))
    assert ots.decide() == RunOperator(0, slice_seconds=0.5, thread=0)
    ots.observe(Observation(0.0, running(0)))
    assert ots.decide() == RunOperator(1, slice_seconds=0.5, thread=1)
    ots.observe(Observation(0.0, running(1)))
    assert ots.decide() == RunOperator(2, slice_seconds=0.5, thread=2)
    ots.observe(Observation(0.0, running(2)))
    assert ots.decide() is None


def test_ots_gives_every_thread_its_turn() -> None:
    ots = Ots()
    begin(ots, ROW, *ready(0, 1, 2))
    assert turns(ots, 6) == [0, 1, 2, 0, 1, 2]


def test_weights_of_queries_become_priorities_of_threads() -> None:
    ots = Ots()
    begin(
        ots,
        plan((["s"], 1.0, 1.0), (["s"], 1.0, 1.0), weights=[3.0, 1.0]),
        *ready(0, 1),
    )
    assert turns(ots, 8).count(0) == 6
    decision = ots.decide()
    assert isinstance(decision, RunOperator)
    assert decision.weight == 3.0


def test_direct_interoperability_asks_for_queues_behind_streams_only() -> None:
    di = make("di")
    assert isinstance(di, ThreeLevels)
    begin(di, ROW, *ready(0))
    assert di.decide() == PlaceQueues(frozenset({("s", 0)}))


def test_hmts_decouples_the_expensive_operator_and_gives_it_a_thread() -> None:
    hmts = Hmts(turn_seconds=0.1)
    begin(hmts, CHEAP, *ready(0))
    assert hmts.decide() == PlaceQueues(frozenset({("s", 0), (2, 3)}))
    begin(hmts, fused(CHEAP, 0, 1, 2), *ready(0, 3))
    assert hmts.decide() == RunOperator(0, slice_seconds=0.1, thread=0)
    hmts.observe(Observation(0.0, running(0)))
    assert hmts.decide() == RunOperator(3, slice_seconds=0.1, thread=1)


def test_hmts_with_one_thread_schedules_virtual_operators_by_its_strategy() -> None:
    hmts = Hmts(threads=1)
    begin(hmts, fused(CHEAP, 0, 1, 2), *ready(0, 3))
    assert hmts.decide() == RunOperator(3)
    assert len(hmts.configuration.partitions) == 1


def test_threads_share_virtual_operators_by_load() -> None:
    four = plan(*((["s"], cost, 1.0) for cost in (9.0, 5.0, 4.0, 1.0)))
    hmts = Hmts(threads=2)
    begin(hmts, four)
    found = {each.operators for each in hmts.configuration.partitions}
    assert found == {frozenset({0, 3}), frozenset({1, 2})}


def test_queues_move_only_once_nothing_runs() -> None:
    hmts = Hmts()
    begin(hmts, CHEAP, *running(3), *ready(0))
    assert hmts.decide() is None
    hmts.observe(Observation(1.0, idle(3)))
    assert isinstance(hmts.decide(), PlaceQueues)


def test_a_placement_is_asked_for_once() -> None:
    hmts = Hmts()
    begin(hmts, CHEAP, *ready(0))
    assert isinstance(hmts.decide(), PlaceQueues)
    begin(hmts, CHEAP, *ready(0))
    assert isinstance(hmts.decide(), RunOperator)


def test_new_statistics_leave_queues_where_they_are_while_nothing_stalls() -> None:
    hmts = Hmts()
    begin(hmts, fused(CHEAP, 0, 1, 2), *ready(0))
    begin(hmts, fused(path(0.001, 0.001, 0.001, 0.001), 0, 1, 2), *ready(0))
    assert isinstance(hmts.decide(), RunOperator)


def test_queues_move_when_a_virtual_operator_begins_to_stall() -> None:
    hmts = Hmts()
    begin(hmts, fused(CHEAP, 0, 1, 2), *ready(0))
    begin(hmts, fused(path(0.01, 0.01, 3.0, 5.0), 0, 1, 2), *ready(0))
    assert hmts.decide() == PlaceQueues(frozenset({("s", 0), (1, 2), (2, 3)}))


BUSY, CALM = path(0.01, 0.01, 3.0, 5.0), path(0.01, 0.01, 0.2, 5.0)
"""The third operator takes more than there is time for, and then little of it."""


def apart(whole: PlanSnapshot) -> PlanSnapshot:
    """A path with its first two operators as one, and a queue before each of the others."""
    names = tuple(whole.by_id[each].name for each in (0, 1))
    one = OperatorSnapshot(0, " + ".join(names), whole.by_id[0].inputs, (2,), members=names)
    third = replace(whole.by_id[2], inputs=(replace(whole.by_id[2].inputs[0], source=0),))
    return PlanSnapshot((one, third, whole.by_id[3]), structure=1, unfused=whole)


def placements(hmts: Hmts, *tellings: PlanSnapshot) -> list[frozenset[tuple[int, int]]]:
    """Where queues are wanted after each telling."""
    found = []
    for each in tellings:
        begin(hmts, apart(each))
        assert hmts.configuration.queues is not None
        found.append(hmts.configuration.queues)
    return found


def test_queues_are_taken_out_once_load_has_been_low_for_a_while() -> None:
    hmts = Hmts()
    assert placements(hmts, BUSY, CALM, CALM, CALM) == [
        {(1, 2), (2, 3)},
        {(1, 2), (2, 3)},
        {(1, 2), (2, 3)},
        {(2, 3)},
    ]
    assert hmts.decide() == PlaceQueues(frozenset({("s", 0), (2, 3)}))


def test_load_that_goes_up_and_down_moves_no_queue() -> None:
    hmts = Hmts()
    (first, *later) = placements(hmts, BUSY, *[CALM, CALM, BUSY] * 4)
    assert set(later) == {first}
    # Nor does load that falls by less than the slack: 0.01, 0.01 and 0.27 of d = 1/3 fit, barely.
    assert set(placements(Hmts(), BUSY, *[path(0.01, 0.01, 0.27, 5.0)] * 9)) == {first}
    assert placements(Hmts(slack=0.0), BUSY, *[path(0.01, 0.01, 0.27, 5.0)] * 3)[-1] == {(2, 3)}


def test_ots_becomes_gts_at_once_and_waits_for_the_threads_that_run() -> None:
    levels = ThreeLevels(Ots().operator_threaded)
    begin(levels, ROW, *ready(0, 1, 2))
    assert levels.decide() is not None
    levels.observe(Observation(0.0, running(0)))
    gts = followed_by(levels, Gts(), ROW, *running(0), *ready(1, 2))
    assert gts.decide() is None
    gts.observe(Observation(1.0, idle(0)))
    assert gts.decide() == RunOperator(2)


def test_hmts_becomes_ots_by_decoupling_everything() -> None:
    levels = ThreeLevels(Hmts().hybrid)
    begin(levels, fused(CHEAP, 0, 1, 2), *ready(0))
    ots = followed_by(levels, Ots(), fused(CHEAP, 0, 1, 2), *ready(0))
    assert ots.decide() == PlaceQueues(operator_edges(CHEAP) | {("s", 0)})


def test_priorities_change_at_run_time() -> None:
    ots, three = Ots(), [(["s"], 1.0, 1.0)] * 3
    begin(ots, plan(*three, weights=[1.0, 1.0, 1.0]), *ready(0, 1, 2))
    assert turns(ots, 30).count(2) == 10
    begin(ots, plan(*three, weights=[1.0, 1.0, 4.0]), *ready(0, 1, 2))
    assert turns(ots, 60).count(2) == 40


def test_a_partition_by_chain_keeps_queues_between_chains() -> None:
    # o0 frees 0.9 of a tuple in a second, o1 next to nothing: two chains, which o2 ends.
    first, second, third = ROW.operators
    narrow = replace(first, inputs=(replace(first.inputs[0], selectivity=0.1),))
    whole = PlanSnapshot((narrow, second, third))
    everything = frozenset({0, 1, 2})
    by_fifo = Configuration((Partition(everything),), frozenset()).completed(whole)
    by_chain = Configuration((Partition(everything, "chain"),), frozenset()).completed(whole)
    assert by_fifo.queues == frozenset()
    assert by_chain.queues == {(0, 1)}


def test_queues_between_partitions_are_added() -> None:
    parts = (Partition(frozenset({0})), Partition(frozenset({1, 2})))
    assert Configuration(parts, frozenset()).completed(ROW).queues == {(0, 1)}


@pytest.mark.parametrize(
    ("name", "settings", "fault"),
    [
        ("gts", {"strategy": "chian"}, 'no strategy "chian"; did you mean "chain"'),
        ("gts", {"strategy": "hmts"}, "has threads of its own"),
        ("gts", {"max_tuples": 0}, "max_tuples is 0"),
        ("gts", {"slice_seconds": -1.0}, "slice_seconds is -1.0"),
        ("ots", {"turn_seconds": 0.0}, "turn_seconds is 0.0; give more than 0"),
        ("di", {"threads": 0}, "threads is 0; give at least 1"),
        ("hmts", {"threads": -2}, "threads is -2"),
        ("hmts", {"placement": "random"}, 'placement is "random"; choose one of: stall-avoiding'),
        ("hmts", {"slack": 1.0}, "slack is 1.0; give a number from 0 to below 1"),
        ("hmts", {"gamma": 1.0}, "its settings: strategy, placement"),
    ],
)
def test_bad_settings_are_refused(name: str, settings: dict[str, object], fault: str) -> None:
    with pytest.raises(StrategyError, match=fault):
        make(name, **settings)


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ([{0, 1}], "operator 2 is in no partition"),
        ([{0, 1, 2}, {2}], "operator 2 is in two partitions"),
        ([{0, 1, 2, 9}], "the plan has no operator 9"),
    ],
)
def test_partitions_must_cover_the_plan_once(parts: list[set[int]], fault: str) -> None:
    configuration = Configuration(tuple(Partition(frozenset(each)) for each in parts), frozenset())
    with pytest.raises(StrategyError, match=fault):
        configuration.completed(ROW)


def test_a_queue_on_an_unknown_edge_is_refused() -> None:
    configuration = Configuration((Partition(frozenset({0, 1, 2})),), frozenset({(0, 2)}))
    with pytest.raises(StrategyError, match=r"no edge \(0, 2\)"):
        configuration.completed(ROW)


def test_an_empty_partition_and_an_empty_plan_are_refused() -> None:
    with pytest.raises(StrategyError, match="no operators"):
        Partition(frozenset())
    with pytest.raises(StrategyError, match="the plan is empty"):
        Configuration((), frozenset()).completed(PlanSnapshot(()))


@pytest.mark.parametrize("name", ["gts", "ots", "di", "hmts"])
def test_nothing_is_done_before_the_first_query_comes(name: str) -> None:
    levels = make(name)
    assert isinstance(levels, ThreeLevels)
    begin(levels, PlanSnapshot(()))
    assert levels.decide() is None
    begin(levels, path(1.0), *ready(0))
    assert isinstance(levels.decide(), RunOperator)
