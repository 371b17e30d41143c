"""GTS, OTS, direct interoperability and HMTS on the simulator: same answers, any switching."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.scheduling.decisions import Decision, PlaceQueues
from millpond.scheduling.registry import make
from millpond.scheduling.runtime import SchedulingLoop
from millpond.scheduling.snapshot import InputSnapshot, PlanSnapshot
from millpond.scheduling.strategies.direct_interoperability import DirectInteroperability
from millpond.scheduling.strategies.fifo import Fifo
from millpond.scheduling.strategies.gts import Gts
from millpond.scheduling.strategies.hmts import Hmts
from millpond.scheduling.strategies.ots import Ots
from millpond.scheduling.threads.three_levels import Configure, ThreeLevels
from millpond.simulator import Conditions, Record, SimulatedPlan, Simulation, simulate
from tests.drawn_examples import examples

TIMES = np.cumsum(np.random.default_rng(3).exponential(1.0, 60))
CONFIGURATIONS: dict[str, Configure] = {
    "gts": Gts("chain", slice_seconds=0.5).graph_threaded,
    "ots": Ots(0.5).operator_threaded,
    "di": DirectInteroperability().directly_connected,
    "hmts": Hmts("chain", turn_seconds=0.5).hybrid,
    "two threads": Hmts("round-robin", threads=2, turn_seconds=0.5).hybrid,
}


def shared_plan() -> SimulatedPlan:
    """Two queries over a shared selection, one with an expensive end and one with a join."""
    plan = SimulatedPlan()
    s, t = plan.stream("s"), plan.stream("t")
    narrow = plan.operator("narrow", s, 0.02, 0.6)
    plan.query("slow", plan.operator("slow", narrow, 1.5, 0.5))
    other = plan.operator("other", t, 0.01, 0.9)
    joined = plan.join("join", narrow, other, 0.05, 0.4)
    plan.query("joined", plan.operator("last", joined, 0.02))
    return plan


def outcome(record: Record) -> tuple[float, ...]:
    """How many tuples each output delivered."""
    places = np.unique(record.output_operator)
    return tuple(float((record.output_operator == each).sum()) for each in places)


ARRIVALS = {"s": TIMES, "t": TIMES + 0.3}
EXPECTED = outcome(simulate(shared_plan(), Fifo(), ARRIVALS))


@pytest.mark.parametrize("processors", [1, 2, 4])
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_configuration_gives_the_same_answers(name: str, processors: int) -> None:
    strategy = ThreeLevels(CONFIGURATIONS[name])
    record = simulate(shared_plan(), strategy, ARRIVALS, Conditions(processors=processors))
    assert outcome(record) == EXPECTED
    assert record.memory.values[-1] == 0


@examples(20)
@given(
    st.lists(st.tuples(st.integers(1, 60), st.sampled_from(sorted(CONFIGURATIONS))), max_size=8),
    st.integers(1, 3),
)
def test_nothing_is_lost_by_switching_while_running(
    switches: list[tuple[int, str]], processors: int
) -> None:
    simulation = Simulation(shared_plan(), ARRIVALS, Conditions(processors=processors))
    loop = SchedulingLoop(simulation, ThreeLevels(CONFIGURATIONS["gts"]))
    for turns, name in switches:
        for _ in range(turns):
            loop.turn()
        loop.strategy = ThreeLevels(CONFIGURATIONS[name])
    loop.run()
    record = simulation.recorder.close(simulation.now_seconds)
    assert outcome(record) == EXPECTED
    assert record.memory.values[-1] == 0


@pytest.mark.parametrize("processors", [1, 2])
def test_nothing_is_lost_while_queues_come_and_go_with_the_load(processors: int) -> None:
    moving = Moving(turn_seconds=0.5)
    conditions = Conditions(processors=processors, measure_seconds=1.0)
    record = simulate(shared_plan(), moving, ARRIVALS, conditions)
    assert outcome(record) == EXPECTED
    assert record.memory.values[-1] == 0
    assert sum(later > before for before, later in pairwise(moving.counts)) >= 2
    assert sum(later < before for before, later in pairwise(moving.counts)) >= 2


class Moving(Hmts):
    """HMTS that is told of a load that rises and falls, and notes how many threads it wants."""

    def __init__(self, turn_seconds: float) -> None:
        super().__init__(turn_seconds=turn_seconds)
        self.counts: list[int] = []
        self._tellings = 0

    def plan_changed(self, plan: PlanSnapshot) -> None:
        self._tellings += 1
        factor = 1.0 if self._tellings % 12 < 6 else 0.01
        super().plan_changed(_loaded(plan, factor))

    def decide(self) -> Decision | None:
        decision = super().decide()
        if isinstance(decision, PlaceQueues):
            self.counts.append(len(self.configuration.partitions))
        return decision


def _loaded(plan: PlanSnapshot, factor: float) -> PlanSnapshot:
    """The plan as if so many times as many tuples came."""
    operators = (
        replace(each, inputs=tuple(_at_rate(entry, factor) for entry in each.inputs))
        for each in plan.operators
    )
    unfused = None if plan.unfused is None else _loaded(plan.unfused, factor)
    return replace(plan, operators=tuple(operators), unfused=unfused)


def _at_rate(entry: InputSnapshot, factor: float) -> InputSnapshot:
    return replace(entry, tuples_per_second=entry.tuples_per_second * factor)


def test_the_loop_can_exchange_one_for_another() -> None:
    simulation = Simulation(shared_plan(), ARRIVALS, Conditions(processors=2))
    loop = SchedulingLoop(simulation, make("ots"))
    for name in ("hmts", "gts", "di", "ots", "hmts"):
        for _ in range(40):
            loop.turn()
        loop.strategy = make(name)
    loop.run()
    assert outcome(simulation.recorder.close(simulation.now_seconds)) == EXPECTED


def test_gts_with_a_strategy_is_that_strategy_alone() -> None:
    conditions = Conditions(trace=True)
    for name in ("fifo", "chain", "greedy", "round-robin"):
        alone = simulate(shared_plan(), make(name, slice_seconds=0.2), ARRIVALS, conditions)
        levels = Gts(name, slice_seconds=0.2)
        assert simulate(shared_plan(), levels, ARRIVALS, conditions).trace == alone.trace


def test_gts_uses_one_processor_only_and_ots_uses_both() -> None:
    conditions = Conditions(processors=2, trace=True)
    assert _overlaps(simulate(shared_plan(), Gts(), ARRIVALS, conditions)) == 0
    assert _overlaps(simulate(shared_plan(), Ots(), ARRIVALS, conditions)) > 0


def _overlaps(record: Record) -> int:
    """Steps that began before an earlier one had ended."""
    trace = sorted(record.trace)
    return sum(
        later.start_seconds < earlier.end_seconds - 1e-9 for earlier, later in pairwise(trace)
    )


def test_no_thread_starves_beside_an_overloaded_one() -> None:
    """A query of low weight beside one that never catches up still waits a few turns at most."""
    plan = SimulatedPlan()
    plan.query("greedy", plan.operator("greedy", plan.stream("s"), 3.0), weight=5.0)
    plan.query("modest", plan.operator("modest", plan.stream("t"), 0.1))
    until = Conditions(until_seconds=100.0)
    arrivals = {"s": np.arange(100.0), "t": np.arange(100.0)}
    record = simulate(plan, Ots(turn_seconds=0.1), arrivals, until)
    assert record.longest_wait_seconds[1] <= 0.1 * (5 + 2)
    starved = simulate(plan, make("fifo"), arrivals, until)
    assert starved.longest_wait_seconds[1] > 20
