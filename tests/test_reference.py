"""The reference evaluator gives the hand-checked results of every fixture."""

import math
from dataclasses import replace

import pytest

from tests import reference
from tests.fixtures_format import load
from tests.matching import difference
from tests.reference_values import AggregateOverflowError, NoValueError


@pytest.mark.parametrize("fixture", load(), ids=str)
def test_reference_gives_the_hand_checked_result(fixture):
    assert not difference(fixture.expected, fixture.case.expected("q"))


@pytest.mark.parametrize("fixture", [f for f in load() if f.names], ids=str)
def test_reference_names_the_output(fixture):
    found = reference.output_names(fixture.case.queries["q"], *fixture.case.reference_arguments())
    assert tuple(found) == fixture.names


@pytest.mark.parametrize("fixture", [f for f in load() if f.late], ids=str)
def test_late_tuples_are_those_beyond_the_delay(fixture):
    late = fixture.case.late()
    assert {name: late[name] for name in fixture.late} == fixture.late


@pytest.mark.parametrize("fixture", [f for f in load() if f.aside is not None], ids=str)
def test_reference_counts_what_each_clause_leaves_out(fixture):
    assert not difference(fixture.aside, fixture.case.left_out("q"))


FAILING = [f for f in load() if f.aside]


@pytest.mark.parametrize("fixture", FAILING, ids=str)
def test_what_is_left_out_stops_the_query_without_skip(fixture):
    with pytest.raises(NoValueError):
        replace(fixture.case, skipping=frozenset()).expected("q")


def test_a_sum_out_of_range_stops_the_query_under_either_policy():
    rows = [(ts, ts, (ts, 2**62)) for ts in (1, 2)]
    streams = {"S": ([("t", "BIGINT"), ("a", "BIGINT")], rows)}
    for policy in ("stop", "skip"):
        with pytest.raises(AggregateOverflowError):
            reference.evaluate("SELECT sum(a) AS s FROM S", streams, on_error=policy)


def test_instants_are_enough():
    """Evaluating at every tick changes nothing: no change is missed between candidate instants."""
    for fixture in load():
        policy = "skip" if fixture.case.skipping else "stop"
        database = reference.Database(*fixture.case.reference_arguments(), policy)
        plan = database.top_level(fixture.case.queries["q"])
        plan = plan.relation if plan.is_stream else plan
        instants = sorted(plan.instants())
        if not instants or instants[-1] - instants[0] > 200:
            continue
        ticks = range(instants[0] - 2, instants[-1] + 3)
        before = reference.Counter(plan.rows(reference.BEGINNING, None))
        for tick in ticks:
            now = reference.Counter(plan.rows(tick, None))
            assert now == before or tick in instants, (fixture.title, tick)
            before = now


def test_difference_sees_weights_values_and_times():
    one = [(1, 1, (2.0, None, "x"))]
    assert difference(one, [(1, 1, (2.0 + 1e-13, None, "x"))]) == []
    for other in [
        [(1, 2, (2.0, None, "x"))],
        [(2, 1, (2.0, None, "x"))],
        [(1, 1, (2.1, None, "x"))],
        [(1, 1, (2.0, "x", None))],
        [(None, 1, (2.0, None, "x"))],
        [],
    ]:
        assert difference(one, other)
        assert difference(other, one)
    assert difference([(1, 1, (math.nan,))], [(1, 1, (None,))])


def test_a_selection_below_a_rows_window_join_is_another_query():
    """Pushed down it filters tuples out before the window, from which others leave more slowly."""
    columns = [("t", "BIGINT"), ("k", "INT"), ("x", "INT")]
    streams = {
        "R": (columns, [(1, 0, (1, 7, 1)), (2, 1, (2, 7, 0))]),
        "S": (columns, [(3, 0, (3, 7, 5))]),
    }
    join = "SELECT ISTREAM A.t FROM {} A, S [ROWS 1] B WHERE A.k = B.k"
    above = reference.evaluate(join.format("R [ROWS 1]") + " AND A.x > 0", streams)
    below = reference.evaluate(join.format("R [ROWS 1 PRECEDING WHERE x > 0]"), streams)
    assert above == []
    assert [row for _, _, row in below] == [(1,)]
