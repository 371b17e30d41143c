from __future__ import annotations

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.charts.component_partition import parts
from millpond.scheduling.snapshot import InputSnapshot, OperatorSnapshot, PlanSnapshot
from tests.scheduling.tree_plans import Op, names, snapshot


def _parts(plan, objective):
    return [names(plan, part.operators) for part in parts(plan, objective)]


def test_latency_never_breaks_a_path():
    plan = snapshot(Op("a", "s", 1, 0.1), Op("b", "a", 9, 0.9), Op("c", "b", 1, 0.5))
    assert _parts(plan, "latency") == ["a b c"]
    (part,) = parts(plan, "latency")
    assert part.slope == pytest.approx(0.1 * 0.9 * 0.5 / (1 + 0.9 + 0.09))


@pytest.mark.parametrize(
    ("cost", "expected"), [(2.9, ["O1 O2 O3"]), (3.0, ["O1 O2", "O3"]), (3.1, ["O1 O2", "O3"])]
)
def test_a_fork_is_partitioned_when_the_second_branch_is_slower_than_the_first_with_the_stem(
    cost, expected
):
    plan = snapshot(Op("O1", "s", 2), Op("O2", "O1", 1), Op("O3", "O1", cost))
    assert _parts(plan, "latency") == expected


def test_the_faster_branch_goes_first_whatever_the_order_of_the_plan():
    plan = snapshot(Op("O1", "s", 2), Op("O3", "O1", 2.5), Op("O2", "O1", 1))
    assert _parts(plan, "latency") == ["O1 O2 O3"]


def nested(stem: float):
    return snapshot(
        Op("E", "s", 1),
        Op("D", "E", 1),
        Op("C", "E", stem),
        Op("A", "C", 1),
        Op("B", "C", 2),
        Op("G", "E", 1),
        Op("H", "G", 0.5),
        Op("P", "G", 0.8),
        Op("O", "G", 10),
    )


def test_nested_forks_are_normalised_bottom_up():
    assert _parts(nested(4), "latency") == ["E D G H P", "C A B", "O"]


def test_a_short_stem_lets_a_nested_fork_be_broken():
    assert _parts(nested(0.2), "latency") == ["E D G H P C A", "B", "O"]


def test_readers_of_one_stream_are_components_of_their_own_for_latency():
    plan = snapshot(Op("a", "s", 1), Op("b", "s", 5))
    assert _parts(plan, "latency") == ["a", "b"]


def test_weights_count_outputs():
    plan = snapshot(Op("a", "s", 1), Op("b", "s", 5, weight=10))
    assert [part.slope for part in parts(plan, "latency")] == [2.0, 1.0]


def test_memory_on_a_path_is_chain():
    plan = snapshot(Op("a", "s", 1, 0.9), Op("b", "a", 1, 0.2), Op("c", "b", 10))
    assert _parts(plan, "memory") == ["a b", "c"]


def memory_fork():
    return snapshot(
        Op("O1", "s", 1, size=0.6),
        Op("O2", "O1", 6),
        Op("O3", "s", 1, size=0.5),
        Op("O4", "O3", 0.5),
    )


def test_memory_forks_are_never_broken_at_the_shared_tuple():
    first, second = parts(memory_fork(), "memory")
    assert names(memory_fork(), first.operators) == "O1 O3 O4"
    assert names(memory_fork(), second.operators) == "O2"
    assert first.slope == pytest.approx((1 - 0.6 - 0.5 + 0.5) / 2.5)
    assert second.slope == pytest.approx(0.1)


def test_nested_memory_forks_become_serial():
    plan = snapshot(
        Op("stem", "s", 3),
        Op("x", "stem", 1, size=0.5),
        Op("y", "stem", 1, size=0.2),
        Op("x1", "x", 1, 0.5, size=0.5),
        Op("x2", "x", 1, size=0.1),
        Op("sink1", "x1", 50),
        Op("sink2", "x2", 1),
        Op("sinky", "y", 10),
    )
    # Behind x: 0.5 - 0.25 - 0.1 in 2 s, with sink2 0.25 in 3 s. Before it 0.3 in 5 s: flatter.
    assert _parts(plan, "memory") == ["stem x y x1 x2 sink2", "sinky", "sink1"]
    assert parts(plan, "memory")[0].slope == pytest.approx(0.55 / 8)


def test_a_join_and_all_before_it_is_one_part_for_latency():
    plan = snapshot(
        Op("a", "s", 1),
        Op("b", "t", 3),
        Op("j", ("a", "b"), 1),
        Op("fast", "j", 1),
        Op("slow", "j", 100),
        Op("alone", "u", 1),
    )
    assert _parts(plan, "latency") == ["alone", "a b j fast", "slow"]
    # Two tuples, one of each stream: 1 + 3 + 2 * 1 + 2 * 1 seconds for two outputs.
    assert parts(plan, "latency")[1].slope == pytest.approx(2 / 8)


def test_a_join_belongs_to_the_memory_tree_of_each_stream():
    plan = snapshot(Op("a", "s", 1, 0.1), Op("b", "t", 1, 1.0), Op("j", ("a", "b"), 10))
    assert _parts(plan, "memory") == ["a", "j", "b j"]


@pytest.mark.parametrize("selectivity", [0.5, 1.1])
def test_branches_that_meet_again_do_not_multiply_what_is_behind(selectivity):
    ops = [Op("a0", "s", 1)]
    for place in range(25):
        last = ops[-1].name
        ops += [Op(f"l{place}", last, 1), Op(f"r{place}", last, 2)]
        ops.append(Op(f"a{place + 1}", (f"l{place}", f"r{place}"), 1, selectivity))
    plan = snapshot(*ops)
    found = parts(plan, "memory")
    assert {each for part in found for each in part.operators} == set(plan.by_id)
    assert len(found) <= len(ops)
    assert len(parts(plan, "latency")) == 1


def test_a_measured_selectivity_of_zero_leaves_the_slopes_behind_it_known():
    plan = snapshot(Op("a", "s", 1, 0.0), Op("b", "a", 2.0), Op("c", "b", 1))
    assert [part.slope for part in parts(plan, "memory")][1:] == [pytest.approx(1 / 3)]


def test_an_empty_plan_has_no_parts():
    assert parts(snapshot(), "latency") == ()


def test_an_unknown_objective_is_refused():
    with pytest.raises(StrategyError, match='objective is "speed"; choose latency or memory'):
        parts(snapshot(), "speed")


def test_a_path_of_thousands_of_operators_is_partitioned():
    path = tuple(
        OperatorSnapshot(
            place,
            str(place),
            (InputSnapshot(place - 1 if place else "s", 1.0, 0.999),),
            downstream=(place + 1,) if place < 4999 else (),
        )
        for place in range(5000)
    )
    plan = PlanSnapshot(path)
    assert [len(part.operators) for part in parts(plan, "latency")] == [5000]
    assert sum(len(part.operators) for part in parts(plan, "memory")) == 5000
