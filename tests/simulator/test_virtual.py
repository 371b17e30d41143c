from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from millpond.errors import StrategyError
from millpond.scheduling.decisions import Decision, PlaceQueues
from millpond.scheduling.registry import make
from millpond.scheduling.runtime import SchedulingLoop
from millpond.scheduling.snapshot import Observation, Producer
from millpond.simulator import Conditions, SimulatedPlan, Simulation, simulate
from millpond.simulator.record import Record
from tests.drawn_examples import examples
from tests.simulator.plans import arrivals, plans, two_operators

Edges = frozenset[tuple[Producer, int]]


class _Placing:
    """Goes on as FIFO, and after some decisions places queues, as soon as nothing runs."""

    def __init__(self, edges: Edges, after: int, max_tuples: int | None = 2) -> None:
        self.inner, self.edges = make("fifo", max_tuples=max_tuples), edges
        self.plan_changed = self.inner.plan_changed
        self.running, self.countdown = set[int](), after

    def observe(self, observation: Observation) -> None:
        for state in observation.changed:
            (self.running.add if state.running else self.running.discard)(state.operator)
        self.inner.observe(observation)

    def decide(self) -> Decision | None:
        self.countdown -= 1
        if self.countdown > 0 or self.edges is None:
            return self.inner.decide()
        if self.running:
            return None
        edges, self.edges = self.edges, None
        return PlaceQueues(edges)


class _HeldToItsPromises(Simulation):
    """Fails when the time up to which an operator's input is complete goes back."""

    promised: dict[int, float] | None = None

    def observe(self, complete: bool) -> Observation:
        now = {each.id: self.wiring.bound(each) for each in self.wiring.plan.operators}
        for operator, bound in (self.promised or {}).items():
            assert now[operator] >= bound, f"operator {operator} at {self.now_seconds}"
        self.promised = now
        return super().observe(complete)


def _run(
    plan: SimulatedPlan,
    times: dict[str, np.ndarray],
    strategy: _Placing,
    conditions: Conditions,
    kind: Callable[..., Simulation] = Simulation,
) -> Record:
    simulation = kind(plan, times, conditions)
    try:
        SchedulingLoop(simulation, strategy).run()
    except StrategyError as refused:
        assume("read each other in a loop" not in str(refused))
        raise
    return simulation.recorder.close(simulation.now_seconds)


@st.composite
def placements(draw: st.DrawFn, plan: SimulatedPlan) -> _Placing:
    edges = sorted(Simulation(plan, {}).wiring.all_edges(), key=str)
    kept = frozenset(edge for edge in edges if draw(st.booleans()))
    return _Placing(kept, draw(st.integers(1, 5)), draw(st.sampled_from([None, 1, 2])))


CONDITIONS = st.builds(
    Conditions,
    tuples=st.sampled_from(["discrete", "fluid"]),
    processors=st.integers(1, 3),
    on_demand_timestamps=st.booleans(),
    shared_queues=st.booleans(),
)


@examples(50)
@given(plans(), arrivals(), st.data(), CONDITIONS)
def test_virtual_operators_give_the_same_answers(
    plan: SimulatedPlan, times: dict[str, np.ndarray], data: st.DataObject, conditions: Conditions
) -> None:
    fused = _run(plan, times, data.draw(placements(plan)), conditions)
    plain = simulate(plan, make("fifo"), times, conditions)
    assert fused.outputs == pytest.approx(plain.outputs)
    assert fused.tuples_served == pytest.approx(plain.tuples_served)
    assert fused.busy_seconds == pytest.approx(plain.busy_seconds)
    assert fused.memory.at(fused.finished_seconds) == pytest.approx(0.0, abs=1e-9)


@examples(50)
@given(plans(), arrivals(), st.data(), CONDITIONS)
def test_no_operator_takes_back_what_it_promised(
    plan: SimulatedPlan, times: dict[str, np.ndarray], data: st.DataObject, conditions: Conditions
) -> None:
    record = _run(plan, times, data.draw(placements(plan)), conditions, _HeldToItsPromises)
    arrived = record.output_seconds - record.output_latency_seconds
    for operator in np.unique(record.output_operator):
        assert (np.diff(arrived[record.output_operator == operator]) >= -1e-9).all()


def test_what_a_running_virtual_operator_made_is_promised_when_it_is_done() -> None:
    plan = SimulatedPlan()
    shared = plan.operator("shared", plan.stream("r"), cost_seconds=1.0)
    plan.query("inside", plan.operator("inside", shared, cost_seconds=1.0))
    plan.query("outside", plan.union("outside", shared, plan.stream("s")))
    kept = frozenset({("r", 0), ("s", 2), (0, 2)})
    times = {"r": np.array([1.0, 1.5, 2.5, 9.0]), "s": np.array([2.0, 9.0])}
    conditions = Conditions(processors=2)
    record = _run(plan, times, _Placing(kept, 1, None), conditions, _HeldToItsPromises)
    mine = record.output_operator == 2
    arrived = (record.output_seconds - record.output_latency_seconds)[mine]
    assert arrived.tolist() == pytest.approx([1, 1.5, 2, 2.5, 9, 9])


def test_a_virtual_operator_saves_its_inner_queues() -> None:
    plan = SimulatedPlan()
    plan.path("q", plan.stream("s"), [(1.0, 1.0)] * 3)
    conditions = Conditions(enqueue_seconds=0.1, dequeue_seconds=0.1)
    simulation = Simulation(plan, {"s": [1.0]}, conditions)
    SchedulingLoop(simulation, _Placing(frozenset({("s", 0)}), after=1)).run()
    assert simulation.now_seconds == pytest.approx(1 + 3 + 0.1)
    fused = simulation.plan()
    assert [operator.members for operator in fused.operators] == [("q.1", "q.2", "q.3")]
    assert fused.operators[0].cost_seconds == pytest.approx(3.1)
    assert fused.unfused is not None
    assert len(fused.unfused.operators) == 3


def test_virtual_operators_that_would_wait_for_each_other_are_refused() -> None:
    plan = SimulatedPlan()
    first = plan.operator("first", plan.stream("s"), 1.0)
    detour = plan.operator("detour", first, 1.0)
    plan.query("q", plan.union("last", first, detour))
    kept = frozenset({("s", 0), (0, 1), (1, 2)})
    with pytest.raises(StrategyError, match="read each other in a loop"):
        Simulation(plan, {}).perform(PlaceQueues(kept))


def test_queues_only_go_on_edges_that_exist() -> None:
    with pytest.raises(StrategyError, match="no edge"):
        Simulation(two_operators(), {}).perform(PlaceQueues(frozenset({(1, 0)})))
