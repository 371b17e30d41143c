from __future__ import annotations

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.snapshot import (
    InputSnapshot,
    OperatorPath,
    OperatorSnapshot,
    PlanSnapshot,
    WeightedQuery,
)
from tests.scheduling.every_path import every_path
from tests.scheduling.pictures import path


def _operator(
    identity: int, *sources: int | str, downstream: tuple[int, ...] = ()
) -> OperatorSnapshot:
    inputs = tuple(InputSnapshot(source, 1.0, 1.0) for source in sources)
    return OperatorSnapshot(identity, f"o{identity}", inputs, downstream)


def test_a_join_weighs_its_inputs_by_their_rates() -> None:
    left = InputSnapshot("r", cost_seconds=1.0, selectivity=0.5, tuple_bytes=8, tuples_per_second=3)
    right = InputSnapshot(
        "s", cost_seconds=2.0, selectivity=1.5, tuple_bytes=4, tuples_per_second=1
    )
    join = OperatorSnapshot(0, "join", (left, right))
    assert (join.cost_seconds, join.selectivity) == (1.25, 0.75)
    assert (join.input_bytes, join.tuples_per_second) == (7.0, 4)


def test_inputs_without_rates_count_alike() -> None:
    inputs = (InputSnapshot("r", 1.0, 1.0, 1.0, 0.0), InputSnapshot("s", 3.0, 1.0, 1.0, 0.0))
    assert OperatorSnapshot(0, "join", inputs).cost_seconds == 2.0


def test_the_weight_is_the_mean_of_the_queries_served() -> None:
    shared = (WeightedQuery("a", 1.0), WeightedQuery("b", 3.0))
    operator = OperatorSnapshot(0, "o", (InputSnapshot("s", 1.0, 1.0),), queries=shared)
    assert operator.weight == 2.0
    assert _operator(0, "s").weight == 1.0


def test_output_takes_no_queue_unless_somebody_reads_it() -> None:
    first, last = path((1.0, 0.5), (1.0, 0.5)).operators
    assert (first.queued_output_bytes, first.is_output) == (1.0, False)
    assert (last.queued_output_bytes, last.is_output) == (0.0, True)


def test_paths_lead_from_each_stream_to_each_output() -> None:
    plan = PlanSnapshot(
        (
            _operator(0, "r", downstream=(1,)),
            _operator(1, 0, "s", downstream=(2, 3)),
            _operator(2, 1),
            _operator(3, 1),
        )
    )
    assert every_path(plan) == (
        OperatorPath("r", (0, 1, 2)),
        OperatorPath("r", (0, 1, 3)),
        OperatorPath("s", (1, 2)),
        OperatorPath("s", (1, 3)),
    )
    assert plan.depth == {0: 0, 1: 1, 2: 2, 3: 2}


def test_a_result_that_others_read_ends_a_path_and_continues_it() -> None:
    first, last = path((1.0, 0.5), (1.0, 0.5)).operators
    view = OperatorSnapshot(0, "view", first.inputs, (1,), delivers=True)
    paths = every_path(PlanSnapshot((view, last)))
    assert paths == (OperatorPath("s", (0,)), OperatorPath("s", (0, 1)))


def test_a_cycle_is_refused() -> None:
    plan = PlanSnapshot((_operator(0, 1, downstream=(1,)), _operator(1, 0, downstream=(0,))))
    with pytest.raises(StrategyError, match="cycle"):
        _ = plan.upstream_first


def test_an_operator_without_input_is_refused() -> None:
    with pytest.raises(StrategyError, match="has no input"):
        _operator(0)
