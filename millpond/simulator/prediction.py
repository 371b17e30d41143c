"""What each strategy would have done with a plan that was measured on Spark.

Tuples are fluid: one of the simulator stands for a block of rows that came in one slot of time.
Queues stand where they stood, batches are as large as Spark's, and what a step puts out is there at
its end. Operators wait for the others of their inputs as Spark's do: until what came last tells how
far an input is or, with the wall clock, not at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from millpond.errors import InputError, StrategyError
from millpond.scheduling.decisions import Decision, PlaceQueues, RunOperator
from millpond.scheduling.registry import find, make
from millpond.scheduling.runtime import SchedulingLoop
from millpond.scheduling.snapshot import FloatArray, Producer
from millpond.scheduling.strategy_text import parse_strategy
from millpond.simulator.conditions import Conditions
from millpond.simulator.inlets import Inlet
from millpond.simulator.plan import SimulatedInput, SimulatedPlan
from millpond.simulator.record import StepFunction
from millpond.simulator.simulation import Simulation
from millpond.simulator.steps import MemberStep
from millpond.simulator.virtual import VirtualStep
from millpond.workloads import SizedArrivals

BLOCKS = 2_000
"""About so many tuples stand for all rows of a stream."""

FIXED_SHARE = 0.1
"""What the fixed part of a step may be of it, where enough waits: as on Spark."""

CLAIRVOYANT = ("maximum-slope-segment", "per-tuple-greedy")
"""The strategies that must know what each tuple will cost."""


@dataclass(frozen=True)
class Prediction:
    """What a strategy would have done."""

    strategy: str
    peak_bytes: float
    mean_bytes: float
    mean_latency_seconds: float
    p95_latency_seconds: float
    finished_seconds: float
    backlog: StepFunction
    """Bytes that wait, over time."""


@dataclass(frozen=True)
class Refusal:
    """A strategy that cannot run the plan, and why."""

    strategy: str
    reason: str


def predicted(
    measured: Mapping[str, Any],
    strategies: Iterable[str],
    budget_bytes: float,
    blocks: int = BLOCKS,
) -> list[Prediction | Refusal]:
    """What strategies, with settings or without, would have done with a measured plan.

    Data that do not fit are refused. With fewer ``blocks`` it takes less time, and is coarser.
    """
    try:
        known = _Known.of(measured, blocks)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"these are no statistics of an engine ({type(error).__name__}: {error}); "
            "`millpond run --statistics FILE` writes some"
        ) from None
    return [_one(text, known, budget_bytes) for text in strategies]


@dataclass(frozen=True)
class _Known:
    """What was measured, as the simulator wants it."""

    plan: SimulatedPlan
    arrivals: dict[str, SizedArrivals]
    processors: int
    edges: frozenset[tuple[Producer, int]] | None
    """Where queues stood, if that is known."""
    is_timed: bool
    """Whether the wall clock tells operators how far a quiet input is."""
    turn_seconds: float
    """What of a step's fixed part is there once, of however many operators it is."""

    @staticmethod
    def of(measured: Mapping[str, Any], blocks: int) -> _Known:
        plan, places = _plan(measured)
        edges = measured.get("queues")
        queues = None
        if edges is not None:
            queues = frozenset((_source(one, places), places[other]) for one, other in edges)
        is_timed = measured.get("clock", "wall") == "wall"
        turn_seconds = float(measured.get("turn_seconds", 0.0))
        arrivals, processors = _arrivals(measured, blocks), int(measured["processors"])
        return _Known(plan, arrivals, processors, queues, is_timed, turn_seconds)


class _Batches(Simulation):
    """A simulation in which a step is as large as on Spark: where a decision limits the tuples and
    enough wait, the fixed part is a tenth of it."""

    def perform(self, decision: Decision) -> None:
        """Begin a step."""
        if isinstance(decision, RunOperator) and decision.max_tuples is not None:
            decision = decision._replace(max_tuples=self._blocks(decision))
        super().perform(decision)

    def _blocks(self, decision: RunOperator) -> int:
        """How many blocks have as many rows as a step is to have."""
        unit = self.wiring.units[decision.operator]
        members = unit.members if isinstance(unit, VirtualStep) else [unit]
        asked = decision.max_tuples or 1
        least = self._breakeven(decision, members) * (1 / FIXED_SHARE - 1)
        inlets = [inlet for each in members for inlet in each.inlets if not inlet.is_pipe]
        return max(1, *(_blocks_of(inlet, asked, least) for inlet in inlets))

    def _breakeven(self, decision: RunOperator, members: Sequence[MemberStep]) -> float:
        """So many rows cost as much as the step by itself."""
        if decision.breakeven_tuples:
            return decision.breakeven_tuples
        each = self.wiring.plan.operators
        once = self.conditions.turn_seconds * (len(members) - 1)
        fixed = sum(each[member.id].step_cost_seconds for member in members) - once
        row = sum(member.mean_cost for member in members)
        return fixed / row if row else math.inf


def _blocks_of(inlet: Inlet, asked: int, least: float) -> int:
    """How many blocks of a queue a step takes: what waits in even parts, unless more is asked."""
    buffer, cursor = inlet.buffer, inlet.buffer.cursors[inlet.reader]
    masses = buffer.masses(cursor, buffer.tail)
    waiting = float(buffer.tail - cursor) if masses is None else float(masses.sum())
    parts = waiting // least if 0 < least <= waiting else 1
    rows = asked if asked >= least else waiting / parts
    if masses is None:
        return math.ceil(min(rows, waiting))
    return int(np.searchsorted(np.cumsum(masses), rows * (1 - 1e-9))) + 1


def _one(text: str, known: _Known, budget_bytes: float) -> Prediction | Refusal:
    name, settings = parse_strategy(text)
    if "memory_bytes" in signature(find(name)).parameters:
        settings.setdefault("memory_bytes", budget_bytes)
    conditions = Conditions(
        tuples="fluid",
        processors=known.processors,
        on_demand_timestamps=known.is_timed,
        clairvoyant=name in CLAIRVOYANT,
        preemptive=False,
        commits=True,
        turn_seconds=known.turn_seconds,
    )
    try:
        simulation = _Batches(known.plan, known.arrivals, conditions)
        if known.edges is not None:
            simulation.perform(PlaceQueues(known.edges))
        SchedulingLoop(simulation, make(name, **settings)).run()
    except StrategyError as error:
        return Refusal(text, str(error))
    record = simulation.recorder.close(simulation.now_seconds)
    return Prediction(
        text,
        record.peak_bytes,
        record.mean_bytes,
        record.mean_latency_seconds,
        record.latency_percentile_seconds(95),
        record.finished_seconds,
        record.memory,
    )


def _plan(measured: Mapping[str, Any]) -> tuple[SimulatedPlan, dict[int, int]]:
    plan = SimulatedPlan()
    for name, facts in measured["streams"].items():
        plan.stream(name, float(facts["tuple_bytes"]))
    places: dict[int, int] = {}
    for facts in measured["operators"]:
        inputs = tuple(
            SimulatedInput(
                _source(each["source"], places),
                float(each["cost_seconds"]),
                float(each["selectivity"]),
            )
            for each in facts["inputs"]
        )
        place = plan.add(
            facts["name"], inputs, float(facts["output_bytes"]), float(facts["step_cost_seconds"])
        )
        places[facts["id"]] = place
        if facts["delivers"]:
            for query, weight in facts["queries"].items():
                plan.query(query, place, float(weight))
    return plan, places


def _source(source: Any, places: Mapping[int, int]) -> Producer:
    return source if isinstance(source, str) else places[source]


def _arrivals(measured: Mapping[str, Any], blocks: int) -> dict[str, SizedArrivals]:
    return {name: _blocks_in(each, blocks) for name, each in measured["streams"].items()}


def _blocks_in(stream: Mapping[str, Any], blocks: int) -> SizedArrivals:
    counts = np.asarray(stream["arrivals"], dtype=np.float64)
    pages = np.asarray(stream.get("pages", counts), dtype=np.float64)
    return _blocks(counts, pages, stream["slot_seconds"], blocks)


def _blocks(
    counts: FloatArray, pages: FloatArray, slot_seconds: float, blocks: int = BLOCKS
) -> SizedArrivals:
    """The rows of each slot in blocks of about equal size; those of a page come together."""
    largest = max(1.0, counts.sum() / blocks)
    pieces = np.ceil(counts / largest).astype(np.int64)
    slots = np.repeat(np.arange(len(counts)), pieces)
    first = np.cumsum(pieces) - pieces
    within = (np.arange(len(slots)) - first[slots]) / np.maximum(pieces, 1)[slots]
    moments = np.maximum(np.minimum(pages, pieces), 1.0)[slots]
    sizes = (counts / np.maximum(pieces, 1))[slots]
    return SizedArrivals(
        (slots + np.floor(within * moments + 1e-9) / moments) * slot_seconds, sizes
    )
