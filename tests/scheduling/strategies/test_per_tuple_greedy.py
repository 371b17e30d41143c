from __future__ import annotations

import pytest

from millpond.errors import StrategyError
from millpond.scheduling.decisions import RunOperator
from millpond.scheduling.registry import make
from millpond.scheduling.strategies.per_tuple_greedy import PerTupleGreedy
from tests.scheduling.tree_plans import Op, foretold, shown, snapshot, waits

TWO = snapshot(Op("A", "s", 5), Op("B", "t", 5))


def test_only_the_first_tuples_are_compared():
    strategy = shown(PerTupleGreedy(), TWO, foretold(0, [10, 1]), foretold(1, [9]))
    assert strategy.decide() == RunOperator(1, max_tuples=1)


def test_outputs_do_not_matter_for_latency():
    strategy = shown(PerTupleGreedy(), TWO, foretold(0, [1], [0]), foretold(1, [2], [5]))
    assert strategy.decide() == RunOperator(0, 1)


def test_memory_compares_what_the_first_tuples_free_in_a_second():
    plan = snapshot(Op("O1", "s", 1, size=0.5), Op("O2", "O1", 5))
    first = foretold(0, [10, 0.1], [1, 1])._replace(queued_bytes=2.0)
    second = foretold(1, [4.0], [1])._replace(queued_bytes=0.5)
    assert shown(PerTupleGreedy("memory"), plan, first, second).decide() == RunOperator(1, 1)


def test_averages_stand_in_where_nothing_is_foretold():
    plan = snapshot(Op("slow", "s", 5), Op("fast", "t", 1))
    assert shown(PerTupleGreedy(), plan, waits(0), waits(1)).decide() == RunOperator(1, 1)


def test_bad_settings_are_refused():
    with pytest.raises(StrategyError, match="choose latency or memory"):
        make("per-tuple-greedy", objective="both")
