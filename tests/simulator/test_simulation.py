from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from millpond.errors import StateError, StrategyError
from millpond.scheduling.decisions import Decision, RunOperator
from millpond.scheduling.registry import make
from millpond.scheduling.runtime import SchedulingLoop
from millpond.scheduling.snapshot import Observation, PlanSnapshot
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, SimulatedPlan, Simulation, Window, simulate
from millpond.simulator.record import Record, Waits
from millpond.workloads import Trace
from tests.drawn_examples import examples
from tests.simulator.plans import STRATEGIES, arrivals, plans, strategy, two_operators

FLUID = Conditions(tuples="fluid")


def test_a_plan_without_operators_is_refused() -> None:
    plan = SimulatedPlan()
    plan.stream("s")
    with pytest.raises(StrategyError, match="the plan has no operators; add at least one"):
        simulate(plan, make("chain"), {"s": [1.0]})


def test_arrivals_for_a_stream_that_the_plan_has_not_are_refused() -> None:
    with pytest.raises(StrategyError, match='stream "t", which the plan has not; it has s'):
        simulate(two_operators(), make("chain"), {"t": [1.0]})


def test_memory_counts_arrivals_of_the_same_instant() -> None:
    record = simulate(two_operators(), make("fifo", slice_seconds=1.0), {"s": [1, 2]}, FLUID)
    assert record.memory.at([0.5, 1, 2, 3, 4, 5]).round(9).tolist() == [0, 1, 1.2, 1, 0.2, 0]


def test_fluid_tuples_of_a_trace_have_sizes(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("time,size\n10,1\n11,3\n99,5\n")
    sized = Trace(str(tmp_path / "trace.csv")).sized_until(50.0)
    record = simulate(two_operators(), make("chain", slice_seconds=1.0), {"s": sized}, FLUID)
    assert record.memory.at([0, 1, 4]).round(9).tolist() == [1, 3.2, 0.8]
    assert record.busy_seconds == pytest.approx((1 + 3) * 2)
    with pytest.raises(StrategyError, match='"s" have sizes, which whole tuples cannot have'):
        simulate(two_operators(), make("chain"), {"s": sized})


def test_waiting_times_of_each_operator_are_recorded() -> None:
    plan = SimulatedPlan()
    plan.path("q", plan.stream("s"), [(1.0, 1.0)])
    record = simulate(plan, make("fifo", max_tuples=1), {"s": [0, 0, 5]})
    assert record.waits[0] == Waits(steps=3, total_seconds=0.0, longest_seconds=0.0)
    plan.path("other", plan.stream("t"), [(4.0, 1.0)])
    record = simulate(plan, make("fifo"), {"s": [1.0, 8.0], "t": [0.0]})
    assert record.waits[0] == Waits(steps=2, total_seconds=3.0, longest_seconds=3.0)
    assert (record.waits[0].mean_seconds, record.longest_wait_seconds) == (1.5, {0: 3.0, 1: 0.0})


def test_latency_runs_from_arrival_to_the_end_of_the_last_step() -> None:
    record = simulate(two_operators(), make("fifo", slice_seconds=1.0), {"s": [1, 2]}, FLUID)
    assert record.output_seconds.tolist() == pytest.approx([3, 5])
    assert record.output_latency_seconds.tolist() == pytest.approx([2, 3])
    assert record.output_mass.tolist() == pytest.approx([0.2, 0.2])


def test_a_tuple_keeps_its_size_until_its_work_is_complete() -> None:
    plan = SimulatedPlan()
    plan.chart("q", plan.stream("s"), [(0, 1), (3, 0.5), (4, 0)])
    record = simulate(plan, make("chain", slice_seconds=1.0), {"s": [0]}, FLUID)
    assert record.memory.at([0, 1, 2, 3, 4]).tolist() == pytest.approx([1, 1, 1, 0.5, 0])


def test_a_slice_without_preemption_ends_between_tuples() -> None:
    plan = SimulatedPlan()
    plan.path("q", plan.stream("s"), [(3.0, 1.0)])
    conditions = Conditions(preemptive=False, trace=True)
    record = simulate(plan, make("fifo", slice_seconds=1.0), {"s": [0, 0]}, conditions)
    assert [step[:2] for step in record.trace] == [(0.0, 3.0), (3.0, 6.0)]


def test_switching_operators_and_threads_is_counted_and_charged() -> None:
    conditions = Conditions(switch_seconds=0.1, thread_switch_seconds=1.0)
    plan = SimulatedPlan()
    plan.path("q", plan.stream("s"), [(1.0, 1.0), (1.0, 1.0)])
    record = simulate(plan, make("fifo", max_tuples=1), {"s": [0, 0]}, conditions)
    assert (record.context_switches, record.thread_switches) == (4, 1)
    assert record.finished_seconds == pytest.approx(4 + 4 * 0.1 + 1.0)


def test_queues_cost_what_was_set() -> None:
    plan = SimulatedPlan()
    plan.path("q", plan.stream("s"), [(1.0, 1.0), (1.0, 1.0)])
    conditions = Conditions(enqueue_seconds=0.1, dequeue_seconds=0.01)
    record = simulate(plan, make("fifo"), {"s": [0]}, conditions)
    assert record.finished_seconds == pytest.approx(2 + 0.1 + 2 * 0.01)


def test_the_fixed_part_of_a_step_is_paid_once_a_step() -> None:
    plan = SimulatedPlan()
    plan.query("q", plan.operator("a", plan.stream("s"), 1.0, step_cost_seconds=10.0))
    record = simulate(plan, make("fifo"), {"s": [0, 0, 0]})
    assert record.finished_seconds == 13.0
    assert record.output_seconds.tolist() == [11, 12, 13]


def test_two_processors_run_two_operators_at_once() -> None:
    plan = SimulatedPlan()
    for name in ("a", "b"):
        plan.path(name, plan.stream(name), [(5.0, 1.0)])
    record = simulate(plan, make("fifo"), {"a": [0], "b": [0]}, Conditions(processors=2))
    assert record.finished_seconds == 5.0
    assert record.busy_seconds == 10.0


def test_an_operator_never_runs_on_two_processors_at_once() -> None:
    plan = SimulatedPlan()
    plan.path("q", plan.stream("s"), [(5.0, 1.0)])
    conditions = Conditions(processors=2)
    record = simulate(plan, make("fifo", max_tuples=1), {"s": [0, 0]}, conditions)
    assert record.finished_seconds == 10.0


def test_readers_of_one_stream_share_its_tuples_or_have_copies() -> None:
    plan = SimulatedPlan()
    stream = plan.stream("s", tuple_bytes=8.0)
    plan.path("a", stream, [(1.0, 1.0)])
    plan.path("b", stream, [(1.0, 1.0)])
    for shared, expected in ((True, [8, 8, 0]), (False, [16, 8, 0])):
        conditions = Conditions(shared_queues=shared)
        record = simulate(plan, make("fifo"), {"s": [0]}, conditions)
        assert record.memory.at([0, 1, 2]).tolist() == expected


def test_statistics_of_the_last_window_reach_the_strategy() -> None:
    plan = SimulatedPlan()
    plan.query("q", plan.operator("a", plan.stream("s"), cost_seconds=1.0, selectivity=0.5))
    simulation = Simulation(plan, {"s": np.arange(100.0)}, Conditions(measure_seconds=50.0))
    SchedulingLoop(simulation, make("fifo")).run()
    assert simulation.plan_version >= 1
    measured = simulation.plan().operators[0]
    assert measured.cost_seconds == pytest.approx(1.0)
    assert 0.3 < measured.selectivity < 0.7
    assert measured.selectivity != 0.5


def test_a_clairvoyant_simulation_foretells_costs_and_outputs() -> None:
    plan = SimulatedPlan()
    plan.query("q", plan.operator("a", plan.stream("s"), cost_seconds=2.0, selectivity=0.5))
    simulation = Simulation(plan, {"s": [0.0] * 20}, Conditions(clairvoyant=True))
    simulation.wait()
    waiting = simulation.observe(complete=True).changed[0].waiting
    assert waiting is not None
    assert waiting.cost_seconds.tolist() == [2.0] * 20
    simulation.perform(RunOperator(0))
    assert simulation.recorder.close(simulation.now_seconds).outputs == waiting.outputs.sum()


def test_the_end_can_be_set() -> None:
    conditions = Conditions(until_seconds=3.0)
    record = simulate(two_operators(), make("fifo", slice_seconds=1.0), {"s": [1, 2]}, conditions)
    assert record.finished_seconds == 3.0


def test_running_an_operator_without_work_is_refused() -> None:
    plan = two_operators()
    plan.query("j", plan.join("join", plan.stream("r"), "s", cost_seconds=1.0))
    simulation = Simulation(plan, {"s": [0.0, 1.0], "r": [5.0]})
    simulation.wait()
    with pytest.raises(StateError, match="operator 1 has nothing to take"):
        simulation.perform(RunOperator(1))
    with pytest.raises(StateError, match="operator 2 has nothing to take yet"):
        Simulation(plan, {"s": [0.0, 1.0], "r": [5.0]}).perform(RunOperator(2))


def test_running_what_cannot_run_is_refused() -> None:
    with pytest.raises(StateError, match="operator 7 cannot run"):
        Simulation(two_operators(), {}).perform(RunOperator(7))


@pytest.mark.parametrize(
    ("make_conditions", "message"),
    [
        (lambda: Conditions(processors=0), "processors is 0"),
        (lambda: Conditions(tuples="liquid"), "discrete or fluid"),  # type: ignore[arg-type]
        (lambda: Conditions(measure_seconds=0.0), "measure_seconds is 0"),
        (Window, "either seconds or rows"),
        (lambda: Simulation(two_operators(), {"s": [2.0, 1.0]}), "not in order of time"),
    ],
)
def test_bad_settings_are_refused(make_conditions: object, message: str) -> None:
    with pytest.raises(StrategyError, match=message):
        make_conditions()  # type: ignore[operator]


def _runs(plan: SimulatedPlan, times: dict[str, np.ndarray], **conditions: object) -> list[Record]:
    settled = Conditions(**conditions)  # type: ignore[arg-type]
    return [simulate(plan, strategy(place), times, settled) for place in range(len(STRATEGIES))]


@pytest.mark.slow
@examples(20)
@given(plans(), arrivals())
def test_nothing_is_lost_and_no_work_is_added_under_any_strategy(
    plan: SimulatedPlan, times: dict[str, np.ndarray]
) -> None:
    records = _runs(plan, times)
    for record in records:
        assert record.outputs == records[0].outputs
        assert record.busy_seconds == pytest.approx(records[0].busy_seconds)
        assert record.tuples_served == records[0].tuples_served
        assert record.memory.at(record.finished_seconds) == pytest.approx(0.0, abs=1e-9)
        assert (record.memory.values >= -1e-9).all()


def _joins_of_a_stream_and_an_ended_one() -> SimulatedPlan:
    """HMTS fuses the first join with `idle`, which has nothing in flight when the join steps."""
    plan = SimulatedPlan()
    ended, stream = plan.stream("r"), plan.stream("s", tuple_bytes=2.0)
    idle = plan.operator("idle", ended, cost_seconds=0.1, selectivity=0.0)
    plan.join("cheap", stream, idle, cost_seconds=0.1, selectivity=0.0)
    plan.query("q", plan.join("dear", stream, idle, cost_seconds=0.5, selectivity=0.0))
    plan.query("other", idle, weight=0.5)
    return plan


NEVER, SOON = np.empty(0), np.array([0.13, 0.23, 0.73])


@pytest.mark.slow
@examples(20)
@given(plans(), arrivals(), st.integers(1, 3), st.sampled_from(["discrete", "fluid"]))
@example(_joins_of_a_stream_and_an_ended_one(), {"r": NEVER, "s": SOON}, 2, "discrete")
def test_arrival_order_is_kept_at_every_output(
    plan: SimulatedPlan, times: dict[str, np.ndarray], processors: int, tuples: str
) -> None:
    for record in _runs(plan, times, processors=processors, tuples=tuples):
        arrived = record.output_seconds - record.output_latency_seconds
        for operator in np.unique(record.output_operator):
            mine = arrived[record.output_operator == operator]
            assert (np.diff(mine) >= -1e-9).all()
        assert (record.output_latency_seconds >= -1e-9).all()


class _Watched:
    """Passes everything on to a strategy, and notes when it idles although an operator is ready."""

    def __init__(self, inner: Strategy) -> None:
        self.inner, self.ready, self.idled = inner, set[int](), 0

    def plan_changed(self, plan: PlanSnapshot) -> None:
        self.ready.clear()
        self.inner.plan_changed(plan)

    def observe(self, observation: Observation) -> None:
        for state in observation.changed:
            self.ready.discard(state.operator)
            if state.ready:
                self.ready.add(state.operator)
        self.inner.observe(observation)

    def decide(self) -> Decision | None:
        decision = self.inner.decide()
        self.idled += decision is None and bool(self.ready)
        return decision


@pytest.mark.slow
@examples(20)
@given(plans(), arrivals())
def test_the_processor_never_idles_while_something_is_ready(
    plan: SimulatedPlan, times: dict[str, np.ndarray]
) -> None:
    for place, name in enumerate(STRATEGIES):
        watched = _Watched(strategy(place))
        simulate(plan, watched, times)
        assert (name, watched.idled) == (name, 0)


@examples(20)
@given(plans(), arrivals())
def test_without_joins_the_work_alone_says_when_all_is_done(
    plan: SimulatedPlan, times: dict[str, np.ndarray]
) -> None:
    assume(all(len(operator.inputs) == 1 for operator in plan.operators))
    finished = {round(record.finished_seconds, 6) for record in _runs(plan, times)}
    assert len(finished) == 1
