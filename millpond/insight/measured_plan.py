"""The plan of a running engine as it was measured, as plain data that can be written down.

`millpond/simulator/prediction.py` reads it, in another process and without Spark.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from millpond.catalog import QueryEntry
from millpond.errors import StateError
from millpond.planning.physical import name_of
from millpond.scheduling.snapshot import InputSnapshot, OperatorSnapshot

if TYPE_CHECKING:
    from millpond.facade.engine import Engine

FORM = 1
"""Which form the data have."""


def measured_plan(engine: Engine) -> dict[str, Any]:
    """Operators with costs, selectivities and sizes, arrivals over time, and what came of it."""
    if not engine.has_runtime or not engine.runtime.tally.steps:
        raise StateError("nothing has run, so nothing was measured; feed the queries first")
    plan = engine.runtime.picture.elementary()
    backlog = engine.runtime.backlog
    return {
        "form": FORM,
        "strategy": engine.settings.strategy,
        "processors": engine.runtime.limits.processors,
        "clock": engine.settings.clock,
        "turn_seconds": engine.runtime.picture.turns.mean_seconds,
        "queues": _queues(engine, plan.operators),
        "streams": _streams(engine, plan.operators),
        "operators": [_operator(engine, plan.by_id[each]) for each in plan.upstream_first],
        "backlog": {"peak_bytes": backlog.peak_bytes, "mean_bytes": backlog.mean_bytes()},
        "latency": {
            entry.name: asdict(engine.latency(entry.name))
            for entry in engine.catalog.of_kind(QueryEntry)
        },
    }


def _streams(engine: Engine, operators: tuple[OperatorSnapshot, ...]) -> dict[str, Any]:
    read = {name: each for op in operators for each in op.inputs if (name := each.stream)}
    courses = {name: engine.inputs.queues[name].course for name in read}
    return {
        name: {
            "tuple_bytes": each.tuple_bytes,
            "slot_seconds": courses[name].slot_seconds,
            "arrivals": list(courses[name].counts),
            "pages": list(courses[name].times),
        }
        for name, each in read.items()
    }


def _queues(engine: Engine, operators: tuple[OperatorSnapshot, ...]) -> list[list[Any]]:
    """The edges on which queues stand: those from streams, and between virtual operators."""
    unit_of = engine.runtime.units.of
    return [
        [each.source, operator.id]
        for operator in operators
        for each in operator.inputs
        if isinstance(each.source, str)
        or unit_of[name_of(each.source)] is not unit_of[name_of(operator.id)]
    ]


def _operator(engine: Engine, operator: OperatorSnapshot) -> dict[str, Any]:
    """An operator with what all its steps have cost, and what a turn costs beside a step."""
    picture = engine.runtime.picture
    measured = picture.statistics[name_of(operator.id)]
    line = measured.whole.line
    return {
        "id": operator.id,
        "name": operator.name,
        "inputs": [_input(each, line.row * measured.rows_a_tuple) for each in operator.inputs],
        "output_bytes": operator.output_bytes,
        "step_cost_seconds": line.step + picture.turns.mean_seconds,
        "queries": {share.name: share.weight for share in operator.queries},
        "delivers": operator.delivers,
    }


def _input(each: InputSnapshot, cost_seconds: float) -> dict[str, Any]:
    return {
        "source": each.source,
        "cost_seconds": cost_seconds,
        "selectivity": each.selectivity,
        "tuples_per_second": each.tuples_per_second,
    }
