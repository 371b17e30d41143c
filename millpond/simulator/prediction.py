"""What each strategy would have done with a plan that was measured on Spark.

Tuples are fluid: one of the simulator stands for a block of rows that came in one slot of time.
Operators wait for no quiet input, as Spark's do: heartbeats tell them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from millpond.errors import InputError, StrategyError
from millpond.scheduling.registry import find, make
from millpond.simulator.conditions import Conditions
from millpond.simulator.plan import SimulatedInput, SimulatedPlan
from millpond.simulator.simulation import simulate
from millpond.snapshot import Producer
from millpond.workloads import SizedArrivals

BLOCKS = 2_000
"""About so many tuples stand for all rows of a stream."""

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


@dataclass(frozen=True)
class Refusal:
    """A strategy that cannot run the plan, and why."""

    strategy: str
    reason: str


def predicted(
    measured: Mapping[str, Any], strategies: Iterable[str], budget_bytes: float
) -> list[Prediction | Refusal]:
    """What strategies would have done with a measured plan; data that do not fit are refused."""
    try:
        plan, arrivals = _plan(measured), _arrivals(measured)
        processors = int(measured["processors"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"these are no statistics of an engine ({type(error).__name__}: {error}); "
            "`millpond run --statistics FILE` writes some"
        ) from None
    return [_one(name, plan, arrivals, processors, budget_bytes) for name in strategies]


def _one(
    name: str,
    plan: SimulatedPlan,
    arrivals: Mapping[str, SizedArrivals],
    processors: int,
    budget_bytes: float,
) -> Prediction | Refusal:
    knows = signature(find(name)).parameters
    settings = {"memory_bytes": budget_bytes} if "memory_bytes" in knows else {}
    conditions = Conditions(
        tuples="fluid",
        processors=processors,
        on_demand_timestamps=True,
        clairvoyant=name in CLAIRVOYANT,
    )
    try:
        record = simulate(plan, make(name, **settings), arrivals, conditions)
    except StrategyError as error:
        return Refusal(name, str(error))
    return Prediction(
        name,
        record.peak_bytes,
        record.mean_bytes,
        record.mean_latency_seconds,
        record.latency_percentile_seconds(95),
        record.finished_seconds,
    )


def _plan(measured: Mapping[str, Any]) -> SimulatedPlan:
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
            facts["name"],
            inputs,
            float(facts["output_bytes"]),
            float(facts["step_cost_seconds"]),
        )
        places[facts["id"]] = place
        if facts["delivers"]:
            for query, weight in facts["queries"].items():
                plan.query(query, place, float(weight))
    return plan


def _source(source: Any, places: Mapping[int, int]) -> Producer:
    return source if isinstance(source, str) else places[source]


def _arrivals(measured: Mapping[str, Any]) -> dict[str, SizedArrivals]:
    return {
        name: _blocks(np.asarray(facts["arrivals"], dtype=np.float64), facts["slot_seconds"])
        for name, facts in measured["streams"].items()
    }


def _blocks(counts: np.ndarray[Any, np.dtype[np.float64]], slot_seconds: float) -> SizedArrivals:
    """The rows of each slot in blocks of about equal size, spread over the slot."""
    largest = max(1.0, counts.sum() / BLOCKS)
    pieces = np.ceil(counts / largest).astype(np.int64)
    slots = np.repeat(np.arange(len(counts)), pieces)
    first = np.cumsum(pieces) - pieces
    within = (np.arange(len(slots)) - first[slots]) / np.maximum(pieces, 1)[slots]
    sizes = (counts / np.maximum(pieces, 1))[slots]
    return SizedArrivals((slots + within) * slot_seconds, sizes)
