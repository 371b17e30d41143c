"""The plan of a running engine as it was measured, as plain data that can be written down.

`millpond/simulator/prediction.py` reads it, in another process and without Spark.
"""

from dataclasses import asdict
from typing import Any

from millpond.catalog import QueryEntry
from millpond.errors import StateError
from millpond.identities import OperatorId, QueueId
from millpond.scheduling.snapshot import InputSnapshot, OperatorSnapshot
from millpond.sharing.queries import Queries

FORM = 1
"""Which form the data have."""


def measured_plan(queries: Queries) -> dict[str, Any]:
    """Operators with costs, selectivities and sizes, arrivals over time, and what came of it."""
    if not queries.has_runtime or not queries.runtime.tally.steps:
        raise StateError("nothing has run, so nothing was measured; feed the queries first")
    plan = queries.runtime.picture.elementary()
    backlog = queries.runtime.backlog
    return {
        "form": FORM,
        "strategy": queries.ground.settings.strategy,
        "processors": queries.runtime.limits.processors,
        "clock": queries.ground.settings.clock,
        "turn_seconds": queries.runtime.picture.turns.mean_seconds,
        "queues": _queues(queries, plan.operators),
        "streams": _streams(queries, plan.operators),
        "operators": [_operator(queries, plan.by_id[each]) for each in plan.upstream_first],
        "backlog": {"peak_bytes": backlog.peak_bytes, "mean_bytes": backlog.mean_bytes()},
        "latency": {
            entry.name: asdict(queries.ground.deliveries.latency(entry.name))
            for entry in queries.ground.catalog.of_kind(QueryEntry)
        },
    }


def _streams(queries: Queries, operators: tuple[OperatorSnapshot, ...]) -> dict[str, Any]:
    read = {name: each for op in operators for each in op.inputs if (name := each.stream)}
    courses = {name: queries.ground.inputs.queues[QueueId(name)].course for name in read}
    return {
        name: {
            "tuple_bytes": each.tuple_bytes,
            "slot_seconds": courses[name].slot_seconds,
            "arrivals": list(courses[name].counts),
            "pages": list(courses[name].times),
        }
        for name, each in read.items()
    }


def _queues(queries: Queries, operators: tuple[OperatorSnapshot, ...]) -> list[list[Any]]:
    """The edges on which queues stand: those from streams, and between virtual operators."""
    unit_of = queries.runtime.units.of
    return [
        [each.source, operator.id]
        for operator in operators
        for each in operator.inputs
        if isinstance(each.source, str)
        or unit_of[OperatorId.numbered(each.source)]
        is not unit_of[OperatorId.numbered(operator.id)]
    ]


def _operator(queries: Queries, operator: OperatorSnapshot) -> dict[str, Any]:
    """An operator with what all its steps have cost, and what a turn costs beside a step."""
    runtime = queries.runtime
    measured = runtime.statistics[OperatorId.numbered(operator.id)]
    line = measured.whole.line
    return {
        "id": operator.id,
        "name": operator.name,
        "inputs": [_input(each, line.row * measured.rows_a_tuple) for each in operator.inputs],
        "output_bytes": operator.output_bytes,
        "step_cost_seconds": line.step + runtime.picture.turns.mean_seconds,
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
