"""Figure 13 of the Unified paper: total buffer size by the percentage of outlier tuples.

On a path of two operators Chain stays within 4 % of the memory variant of MSS at every outlier
level; per-tuple greedy suffers most from outliers, and round-robin is worse.

The levels of the figure's axis are not readable; 0 to 20 % were taken.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.unified import outliers
from millpond.lab.words import SAME
from millpond.simulator import Conditions, SimulatedPlan, simulate


def run(seeds: Sequence[int], percents: Sequence[int] = outliers.PERCENTS) -> Tables:
    """Both buffers' size, summed over every millisecond, for each strategy, level and seed."""
    return {"memory": outliers.by_level(summed_size, seeds, percents)}


def summed_size(name: str, share: float, seed: int) -> float:
    """A path with 300 waiting tuples, τ_1 ~ N(1, 0.2²) and τ_2 ~ N(5, 1²) ms; O1 halves tuples."""
    plan = SimulatedPlan()
    cheap, dear = outliers.costs(10.0, share)
    first = plan.operator("O1", plan.stream("s"), cheap, outliers.SELECTIVITY, output_bytes=0.5)
    plan.query("q", plan.operator("O2", first, dear, outliers.SELECTIVITY))
    conditions = Conditions(seed=seed, clairvoyant=True)
    record = simulate(
        plan, outliers.strategy(name, "memory"), {"s": [0.0] * outliers.TUPLES}, conditions
    )
    every = np.arange(0.0, record.finished_seconds, outliers.MILLISECOND)
    return float(record.memory.at(every).sum())


def plot(tables: Tables, figure: Figure) -> None:
    """Summed size over the percentage of outliers."""
    outliers.draw(tables["memory"], figure, "buffer size, summed every ms (input tuples)")


def check(tables: Tables) -> Sequence[Claim]:
    """The same conclusions as for latency."""
    return outliers.claims(
        tables["memory"], "memory", SAME, f'"almost appear to be identical": at most {SAME:.0%}'
    )


EXPERIMENT = experiment(__name__, "Figure 13, total buffer size by outlier percentage", seeds=5)
