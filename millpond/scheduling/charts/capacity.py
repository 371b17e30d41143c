"""Capacities of runs of operators (Path Capacity paper, sections 2.1 and 3.3).

C^P_O is 1 / `cost_seconds`, σ_i the `selectivity`, T_i and S_o the `queued_output_bytes`, C^M_O is
`released_per_second`. A run is a path or a segment: its operators from the leaf up. In the middle
of a run a join counts with the cost and selectivity of the side the run comes from (the
paper's two semi-joins).
"""

from collections.abc import Sequence
from itertools import accumulate

from millpond.scheduling.charts.progress_chart import slope
from millpond.scheduling.snapshot import OperatorSnapshot, PlanSnapshot, Producer


def released_per_second(operator: OperatorSnapshot) -> float:
    """The bytes an operator frees in a second of work (the Path Capacity paper's C^M)."""
    left = operator.selectivity * operator.queued_output_bytes
    return slope((0.0, operator.input_bytes), (operator.cost_seconds, left))


def remaining_seconds(
    plan: PlanSnapshot, run: Sequence[int], stream: str | None = None
) -> tuple[float, ...]:
    """The work one tuple means for the rest of the run, from each operator on."""
    found: list[float] = []
    behind = 0.0
    for cost_seconds, selectivity in reversed(_steps(plan, run, stream)):
        behind = cost_seconds + selectivity * behind
        found.append(behind)
    return tuple(reversed(found))


def remaining_step_seconds(plan: PlanSnapshot, run: Sequence[int]) -> tuple[float, ...]:
    """What one step of each operator takes without tuples, for the rest of the run."""
    fixed = [plan.by_id[operator].step_cost_seconds for operator in run]
    return tuple(accumulate(reversed(fixed)))[::-1]


def processing_capacity(plan: PlanSnapshot, run: Sequence[int], stream: str | None = None) -> float:
    """Tuples a second that the run consumes: C^P by (2.2) and (3.1); infinite without work."""
    seconds = remaining_seconds(plan, run, stream)[0]
    return 1 / seconds if seconds > 0 else float("inf")


def memory_release_capacity(plan: PlanSnapshot, run: Sequence[int]) -> float:
    """Bytes a second that the run frees: C^M by (3.2)."""
    left = plan.by_id[run[-1]].queued_output_bytes
    for _, selectivity in _steps(plan, run, None):
        left *= selectivity
    seconds = remaining_seconds(plan, run)[0]
    return slope((0.0, plan.by_id[run[0]].input_bytes), (seconds, left))


def rounded(capacity: float) -> float:
    """A capacity without its last digits, so that equal ones are equal however they came about.

    >>> rounded(0.1 + 0.2) == rounded(0.3)
    True
    """
    return float(f"{capacity:.12g}")


def _steps(plan: PlanSnapshot, run: Sequence[int], stream: str | None) -> list[tuple[float, float]]:
    """Cost and selectivity of each operator for the tuples that come along the run."""
    sources: list[Producer | None] = [stream, *run[:-1]]
    return [
        side(plan.by_id[operator], source) for operator, source in zip(run, sources, strict=True)
    ]


def side(operator: OperatorSnapshot, source: Producer | None) -> tuple[float, float]:
    """Cost and selectivity of an operator for the tuples that come from a source."""
    for each in operator.inputs:
        if each.source == source:
            return each.cost_seconds, each.selectivity
    return operator.cost_seconds, operator.selectivity
