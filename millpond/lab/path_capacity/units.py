"""Path Capacity paper, section 3: how many units each strategy schedules, and how stable they are.

There are fewer operator paths than operators, and fewer segments, if not significantly fewer; the
simplified strategy has significantly fewer segments, and is less sensitive to the selectivity and
the service time of an operator.

The plan of 16 queries and 116 operators, its costs and selectivities drawn anew on each seed. To
see what a strategy is sensitive to, both are changed by up to a tenth: the share of its segments
that are no longer among them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.path_capacity.queries import Ranges, sixteen_queries
from millpond.lab.path_capacity.workload import DRAWN_NOTE
from millpond.lab.tables import table_of
from millpond.lab.words import CLEARLY, on_most_seeds, told_by_seed
from millpond.scheduling.charts.ways import Ways
from millpond.scheduling.snapshot import PlanSnapshot
from millpond.scheduling.strategies.segment import Segment
from millpond.scheduling.strategies.simplified_segment import SimplifiedSegment
from millpond.simulator import SimulatedPlan, Simulation

CHANGE = 0.1
CHANGES = 3
"""Each plan is changed so often."""
COLUMNS = ("operators", "paths", "segments", "simplified", "changed", "simplified changed")


def run(seeds: Sequence[int]) -> Tables:
    """Numbers of units, and the share of segments that a change of the plan does away with."""
    rows = []
    for seed in seeds:
        plan = sixteen_queries(Ranges(), seed=seed)
        now = _snapshot(plan)
        generator = np.random.default_rng((33, seed))
        changed = [_snapshot(_changed(plan, generator)) for _ in range(CHANGES)]
        segments, simplified = _segments(now), _simplified(now)
        rows.append(
            (
                len(plan.operators),
                _paths(now),
                len(segments),
                len(simplified),
                float(np.mean([_lost(segments, _segments(each)) for each in changed])),
                float(np.mean([_lost(simplified, _simplified(each)) for each in changed])),
            )
        )
    return {"units": table_of(COLUMNS, rows)}


def _snapshot(plan: SimulatedPlan) -> PlanSnapshot:
    return Simulation(plan, {name: [0.0] for name in plan.streams}).plan()


def _paths(plan: PlanSnapshot) -> int:
    ways = Ways(plan)
    return sum(ways.paths_to[each.id] for each in plan.operators if each.is_output)


def _segments(plan: PlanSnapshot) -> set[tuple[int, ...]]:
    return {tuple(each.operators) for each in Segment().runs(plan)}


def _simplified(plan: PlanSnapshot) -> set[tuple[int, ...]]:
    return {tuple(each.operators) for each in SimplifiedSegment().runs(plan)}


def _lost(before: set[tuple[int, ...]], after: set[tuple[int, ...]]) -> float:
    return len(before - after) / len(before)


def _changed(plan: SimulatedPlan, generator: np.random.Generator) -> SimulatedPlan:
    """The same plan with other costs and selectivities."""
    made = SimulatedPlan()
    for name in plan.streams:
        made.stream(name)
    for operator in plan.operators:
        cost, yields = 1 + generator.uniform(-CHANGE, CHANGE, 2)
        inputs = tuple(
            replace(
                each,
                cost_seconds=float(each.cost_seconds) * cost,  # type: ignore[arg-type]
                selectivity=float(each.selectivity) * yields,  # type: ignore[arg-type]
            )
            for each in operator.inputs
        )
        made.add(operator.name, inputs, ordered=operator.ordered)
    for name, (output, _) in plan.queries.items():
        made.query(name, output)
    return made


def plot(tables: Tables, figure: Figure) -> None:
    """Units of each kind, and what a change does away with, seed by seed."""
    left, right = figure.subplots(1, 2)
    table = tables["units"]
    for name in COLUMNS[:4]:
        left.plot(table[name], marker="o", label=name)
    for name in COLUMNS[4:]:
        right.plot(table[name], marker="o", label=name)
    left.set(xlabel="seed", ylabel="units", ylim=(0, None))
    right.set(xlabel="seed", ylabel="share of the segments", ylim=(0, None))
    left.legend()
    right.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """Fewer units, significantly or not, and less sensitive."""
    fewer = "is less than the number of operators"
    return [
        _ratio(tables, "paths", "operators", f'"the number of operator paths in a system {fewer}"'),
        _ratio(tables, "segments", "operators", f'"the number of segments {fewer}"'),
        _not_significantly(tables),
        _ratio(
            tables,
            "simplified",
            "segments",
            '"the scheduling overhead significantly decreases as well due to the decrease in the '
            'number of segments"',
            1 / CLEARLY,
            "paths of this plan have three to six operators before a join, of which the simplified "
            "strategy makes two segments, Segment hardly more",
        ),
        _ratio(
            tables,
            "simplified changed",
            "changed",
            '"It is less sensitive to the selectivity and service time of an operator"',
        ),
    ]


def _ratios(tables: Tables, mine: str, other: str) -> list[float]:
    table = tables["units"]
    return [one / max(two, 1e-9) for one, two in zip(table[mine], table[other], strict=True)]


def _ratio(
    tables: Tables, mine: str, other: str, words: str, most: float = 1.0, why: str = ""
) -> Claim:
    ratios = _ratios(tables, mine, other)
    so = [ratio < 1 if most == 1.0 else ratio <= most for ratio in ratios]
    fewer = [ratio < 1 for ratio in ratios]
    return Claim(
        f"{mine} over {other}",
        f"{words}: below {most:.2g}",
        told_by_seed(ratios, so),
        on_most_seeds(so),
        Instead("fewer, if not by a fifth", why, on_most_seeds(fewer)) if why else None,
    )


def _not_significantly(tables: Tables) -> Claim:
    ratios = _ratios(tables, "segments", "operators")
    so = [ratio > 1 / CLEARLY for ratio in ratios]
    return Claim(
        "segments over operators, by less than a fifth",
        '"the number of segments [...] is not significantly less than the number of operators": '
        f"above {1 / CLEARLY:.2g}",
        told_by_seed(ratios, so),
        on_most_seeds(so),
        Instead(
            "fewer by a fifth at least",
            "where costs and selectivities are drawn one by one, the next operator frees more in a "
            "second as often as not, and is of the same segment then",
            on_most_seeds([ratio <= 1 / CLEARLY for ratio in ratios]),
        ),
    )


EXPERIMENT = experiment(__name__, "Section 3, scheduling units", note=DRAWN_NOTE, seeds=10)
