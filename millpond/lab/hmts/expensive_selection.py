"""The query of the HMTS paper's Figures 9 and 10, under GTS and HMTS, with either kind of source.

A projection (2.7 µs), a selection (0.53 µs, selectivity 0.0009) and a selection of 2 s work on
70,000 elements that come in two bursts, each followed by 80 s at 250 a second. Once the source is
autonomous, and once the thread that schedules must emit the elements itself. Chain serves as FIFO
does until it has profiled the operators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from millpond.scheduling.snapshot import FloatArray, Observation, OperatorState, PlanSnapshot
from millpond.scheduling.strategies.gts import Gts
from millpond.scheduling.strategies.hmts import Hmts
from millpond.scheduling.threads.configuration import Configuration, Partition
from millpond.scheduling.threads.three_levels import Configure, ThreeLevels
from millpond.scheduling.threads.virtual_operators import operator_edges
from millpond.simulator import Conditions, Listed, Record, SimulatedPlan, simulate

PHASES = ((10_000, 500_000.0), (20_000, 250.0), (20_000, 500_000.0), (20_000, 250.0))
"""Elements, and elements a second."""
PROJECTION_SECONDS, NARROW_SECONDS, EXPENSIVE_SECONDS = 2.7e-6, 530e-9, 2.0
NARROW_SELECTIVITY, EXPENSIVE_SELECTIVITY = 9e-4, 0.3
QUEUE_SECONDS = 0.75e-6
SLICE_SECONDS = 0.05
FIFO_BLOCK = 20
TOGETHER = 5
"""So many elements of a slow phase arrive at one instant, which spares simulating idle waits."""
LAST_FILTERED = 2_000
"""So many of the last elements the first selection filters out, as the text tells."""
SOURCES = ("autonomous", "same thread")
STRATEGIES = ("fifo", "chain", "hmts")


@dataclass(frozen=True)
class Elements:
    """What all strategies face: when elements come, and which of them the selections keep."""

    gap_seconds: FloatArray
    narrow_keeps: FloatArray
    expensive_keeps: FloatArray

    @classmethod
    def drawn(cls, seed: int, share: float = 1.0, reaching: int | None = None) -> Elements:
        """Exponential gaps around each phase's mean, and independent selections.

        With `reaching`, so many reach the last selection, and none of the last 2,000 elements does.
        """
        generator = np.random.default_rng(seed)
        gaps = []
        for count, per_second in PHASES:
            blocks = np.zeros((int(count * share) // TOGETHER, TOGETHER))
            blocks[:, 0] = generator.exponential(TOGETHER / per_second, len(blocks))
            gaps.append(blocks.ravel())
        between = np.concatenate(gaps)
        keeps = generator.random(len(between)) < NARROW_SELECTIVITY
        last = generator.random(len(between)) < EXPENSIVE_SELECTIVITY
        if reaching is not None:
            keeps = np.zeros(len(between), dtype=bool)
            keeps[generator.choice(len(between) - LAST_FILTERED, reaching, replace=False)] = True
        return cls(between, keeps.astype(np.float64), last.astype(np.float64))

    @property
    def reaching(self) -> int:
        """How many reach the expensive selection."""
        return int(self.narrow_keeps.sum())

    @property
    def second_burst_seconds(self) -> float:
        """When the second burst comes from a source that never waits."""
        before = sum(count for count, _ in PHASES[:2]) / sum(count for count, _ in PHASES)
        return float(self.gap_seconds[: round(before * len(self.gap_seconds))].sum())

    @property
    def emission_seconds(self) -> float:
        """How long the source emits."""
        return float(self.gap_seconds.sum())


def simulated(source: str, name: str, elements: Elements, profiling_seconds: float = 0.0) -> Record:
    """One run: on two processors, or, where one thread does everything, on one."""
    emits = source == "same thread"
    conditions = Conditions(
        processors=1 if emits and name != "hmts" else 2,
        preemptive=False,
        enqueue_seconds=QUEUE_SECONDS,
        dequeue_seconds=QUEUE_SECONDS,
    )
    gaps = elements.gap_seconds
    arrivals = np.zeros(len(gaps)) if emits else np.cumsum(gaps)
    configured = _emitting if emits else _beside_the_source
    strategy = ThreeLevels(configured(name))
    if name == "chain":
        strategy = Profiled(configured("fifo"), configured(name), profiling_seconds)
    return simulate(_query(elements, emits), strategy, {"s": arrivals}, conditions)


class Profiled(ThreeLevels):
    """One configuration until the operators are profiled, another from then on."""

    def __init__(self, first: Configure, then: Configure, seconds: float) -> None:
        super().__init__(first)
        self._then: Configure | None = then
        self._seconds = seconds
        self._plan = PlanSnapshot(())
        self._states: dict[int, OperatorState] = {}

    def plan_changed(self, plan: PlanSnapshot) -> None:
        """Keep the plan for the other configuration."""
        self._plan = plan
        self._states.clear()
        super().plan_changed(plan)

    def observe(self, observation: Observation) -> None:
        """Go over as soon as it is time."""
        self._states.update((state.operator, state) for state in observation.changed)
        super().observe(observation)
        if self._then is not None and observation.now_seconds >= self._seconds:
            self._configure, self._then = self._then, None
            super().plan_changed(self._plan)
            super().observe(observation._replace(changed=list(self._states.values())))


def _query(elements: Elements, emits: bool) -> SimulatedPlan:
    """The three operators, behind one that takes the source's time if the thread emits."""
    plan = SimulatedPlan()
    below: int | str = plan.stream("s", tuple_bytes=0.0 if emits else 1.0)
    if emits:
        below = plan.operator("source", below, Listed.of(elements.gap_seconds), output_bytes=1.0)
    below = plan.operator("projection", below, PROJECTION_SECONDS)
    below = plan.operator("narrow", below, NARROW_SECONDS, Listed.of(elements.narrow_keeps))
    keeps = Listed.of(elements.expensive_keeps)
    plan.query("q", plan.operator("expensive", below, EXPENSIVE_SECONDS, keeps))
    return plan


def _beside_the_source(name: str) -> Configure:
    if name == "hmts":
        return Hmts(turn_seconds=SLICE_SECONDS).hybrid
    if name == "fifo":
        return Gts(name, max_tuples=FIFO_BLOCK).graph_threaded
    return Gts(name, slice_seconds=SLICE_SECONDS).graph_threaded


def _emitting(name: str) -> Configure:
    return {"fifo": _fifo_in_turn, "chain": _chain_in_turn, "hmts": _hybrid_with_source}[name]


def _fifo_in_turn(plan: PlanSnapshot) -> Configuration:
    return _in_turn(plan, Partition(frozenset({1, 2, 3}), settings={"max_tuples": FIFO_BLOCK}))


def _chain_in_turn(plan: PlanSnapshot) -> Configuration:
    settings = {"slice_seconds": SLICE_SECONDS}
    return _in_turn(plan, Partition(frozenset({1, 2, 3}), "chain", settings=settings))


def _in_turn(plan: PlanSnapshot, query: Partition) -> Configuration:
    """The source and the query by turns on the one processor, each for half of the time."""
    source = Partition(frozenset({0}))
    return Configuration((source, query), operator_edges(plan), SLICE_SECONDS)


def _hybrid_with_source(plan: PlanSnapshot) -> Configuration:
    """One thread emits and runs the cheap operators, the other the expensive one."""
    settings = {"slice_seconds": SLICE_SECONDS}
    first = Partition(frozenset({0, 1, 2}), "round-robin", settings=settings)
    return Configuration((first, Partition(frozenset({3}))), frozenset({(0, 1)}), SLICE_SECONDS)
