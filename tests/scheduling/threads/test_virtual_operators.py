from millpond.scheduling.snapshot import OperatorSnapshot, PlanSnapshot
from millpond.scheduling.threads.virtual_operators import (
    capacities,
    capacity,
    is_placed,
    operator_edges,
    stream_edges,
    virtual_operators,
    without_cycles,
)
from tests.scheduling.thread_plans import path, plan

# The right plan of the paper's Figure 5: o0 feeds o1 and the expensive o2.
FORK = plan((["s"], 0.1, 2.0), ([0], 0.1, 2.0), ([0], 0.9, 2.0))


def test_operators_without_a_queue_between_them_are_one() -> None:
    assert virtual_operators(FORK, {(0, 2)}) == {0: (0, 1), 2: (2,)}
    assert virtual_operators(FORK, ()) == {0: (0, 1, 2)}
    assert virtual_operators(FORK, operator_edges(FORK)) == {0: (0,), 1: (1,), 2: (2,)}


def test_edges_are_those_of_operators_and_those_of_streams() -> None:
    assert operator_edges(FORK) == {(0, 1), (0, 2)}
    assert stream_edges(FORK) == {("s", 0)}


def test_capacity_is_time_between_tuples_less_cost() -> None:
    # c = 0.1 + 0.1, 1 / d = 2 + 2
    assert capacity([FORK.by_id[0], FORK.by_id[1]]) == 1 / 4 - 0.2
    assert capacities(FORK, {(0, 2)}) == {0: 1 / 4 - 0.2, 2: 1 / 2 - 0.9}


def test_an_operator_without_input_has_endless_capacity() -> None:
    assert capacity(path(5.0, rate=0.0).operators) == float("inf")


def test_a_plan_is_placed_when_its_operators_are_the_virtual_ones() -> None:
    fused = OperatorSnapshot(0, "o0 + o1", FORK.by_id[0].inputs, (2,), members=("o0", "o1"))
    other = FORK.by_id[2]
    assert is_placed(FORK, operator_edges(FORK))
    assert not is_placed(FORK, {(0, 2)})
    assert is_placed(PlanSnapshot((fused, other), unfused=FORK), {(0, 2)})
    assert not is_placed(PlanSnapshot((fused, other), unfused=FORK), {(0, 1)})


def test_virtual_operators_that_read_each_other_are_taken_apart() -> None:
    # o0 and o2 directly, o1 between them behind queues: a circle.
    circle = plan((["s"], 1.0, 1.0), ([0], 1.0, 1.0), ([0, 1], 1.0, 1.0), ([2], 1.0, 1.0))
    assert without_cycles(circle, {(0, 1), (1, 2)}) == operator_edges(circle)
    assert without_cycles(circle, {(0, 1)}) == {(0, 1)}
