import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.errors import StrategyError
from millpond.scheduling.snapshot import InputSnapshot, OperatorSnapshot, PlanSnapshot
from millpond.scheduling.threads.place_queues import place_queues
from millpond.scheduling.threads.rival_placements import (
    place_queues_by_chains,
    place_queues_by_segments,
)
from millpond.scheduling.threads.virtual_operators import (
    capacities,
    virtual_operators,
    without_cycles,
)
from tests.drawn_examples import examples
from tests.scheduling.thread_plans import path, plan


@st.composite
def random_plans(draw: st.DrawFn) -> PlanSnapshot:
    """Directed acyclic graphs of up to twelve operators with two inputs at most."""
    operators: list[tuple[list[int | str], float, float]] = []
    for identity in range(draw(st.integers(1, 12))):
        known: list[int | str] = ["s", *range(identity)]
        sources = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique=True))
        cost, rate = draw(st.floats(0.001, 2.0)), draw(st.floats(0.01, 5.0))
        operators.append((sources, cost, rate))
    return plan(*operators)


def test_the_expensive_aggregation_of_figure_5_is_decoupled() -> None:
    figure = plan((["s"], 0.01, 2.0), ([0], 0.01, 2.0), ([1], 0.01, 2.0), ([1], 0.4, 2.0))
    assert place_queues(figure) == {(1, 3)}


def test_cheap_operators_in_a_row_become_one() -> None:
    assert place_queues(path(0.01, 0.01, 0.01)) == frozenset()


def test_a_row_is_cut_where_capacity_would_turn_negative() -> None:
    # Together c = 0.3 and d = 1/3 for three; a fourth makes 0.4 against 1/4.
    assert place_queues(path(0.1, 0.1, 0.1, 0.1)) == {(2, 3)}


def test_the_source_with_more_capacity_is_taken_first() -> None:
    # Both sources fit the join alone, but not together.
    join = plan((["s"], 0.3, 0.5), (["t"], 0.1, 0.5), ([0, 1], 0.3, 1.0))
    assert place_queues(join) == {(0, 2)}


def test_a_source_shared_by_several_counts_with_all_it_was_merged_with() -> None:
    # o0 fits with o1 and with o2, not with both: the paper's text would join all three.
    fork = plan((["s"], 0.1, 1.0), ([0], 0.25, 1.0), ([0], 0.25, 1.0))
    assert place_queues(fork) == {(0, 2)}


def test_no_circle_of_virtual_operators_is_made() -> None:
    # o2 fits with o0 but o1 in between is too expensive for either.
    triangle = plan((["s"], 0.01, 1.0), ([0], 0.9, 1.0), ([0, 1], 0.01, 1.0))
    assert place_queues(triangle) == {(0, 1), (0, 2), (1, 2)}


@examples(40)
@given(random_plans())
def test_no_virtual_operator_of_several_members_stalls(any_plan: PlanSnapshot) -> None:
    queues = place_queues(any_plan)
    groups, found = virtual_operators(any_plan, queues), capacities(any_plan, queues)
    assert all(found[first] >= -1e-9 for first, members in groups.items() if len(members) > 1)


@examples(40)
@given(random_plans())
def test_virtual_operators_never_read_each_other_in_a_circle(any_plan: PlanSnapshot) -> None:
    queues = place_queues(any_plan)
    assert without_cycles(any_plan, queues) == queues


def _operator(identity: int, source: int | str, cost: float, left: float) -> OperatorSnapshot:
    readers = (identity + 1,) if identity < 3 else ()
    return OperatorSnapshot(identity, f"o{identity}", (InputSnapshot(source, cost, left),), readers)


# Progress chart (0, 1) (1, 0.9) (2, 0.2) (4, 0.1) (5, 0): chains {o0, o1} and {o2, o3}. Freed in a
# second of work: 0.1, 0.7, 0.05 and 0.1, so the first segment ends behind o1 as well.
CHART = PlanSnapshot(
    (
        _operator(0, "s", 1.0, 0.9),
        _operator(1, 0, 1 / 0.9, 0.2 / 0.9),
        _operator(2, 1, 10.0, 0.5),
        _operator(3, 2, 10.0, 1.0),
    )
)


def test_one_rival_keeps_queues_between_chains() -> None:
    assert place_queues_by_chains(CHART) == {(1, 2)}


def test_the_other_rival_cuts_each_path_once_where_release_drops() -> None:
    assert place_queues_by_segments(CHART) == {(1, 2)}
    assert place_queues_by_segments(CHART, gamma=0.01) == frozenset()


@pytest.mark.parametrize("gamma", [0.0, 1.5, float("nan")])
def test_a_gamma_out_of_range_is_refused(gamma: float) -> None:
    with pytest.raises(StrategyError, match="gamma is"):
        place_queues_by_segments(CHART, gamma)
