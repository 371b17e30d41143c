"""Figure 12 of the Unified paper: average latency by the percentage of outlier tuples.

Component-based scheduling stays within 4 % of the optimal MSS at every outlier level, per-tuple
greedy is affected most and up to 50 % above, and round-robin is significantly worse.

The levels of the figure's axis are not readable; 0 to 20 % were taken.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.unified import outliers
from millpond.lab.words import CLEARLY, about
from millpond.simulator import Conditions, SimulatedPlan, simulate


def run(seeds: Sequence[int], percents: Sequence[int] = outliers.PERCENTS) -> Tables:
    """Average latency in milliseconds for each strategy, level and seed."""
    return {"latency": outliers.by_level(latency_milliseconds, seeds, percents)}


def latency_milliseconds(name: str, share: float, seed: int) -> float:
    """Two operators with 300 waiting tuples each, τ_A ~ N(1, 0.2²) and τ_B ~ N(5, 1²) ms."""
    plan = SimulatedPlan()
    cheap, dear = outliers.costs(6.0, share)
    plan.query("qA", plan.operator("A", plan.stream("sA"), cheap, outliers.SELECTIVITY))
    plan.query("qB", plan.operator("B", plan.stream("sB"), dear, outliers.SELECTIVITY))
    arrivals = {stream: [0.0] * outliers.TUPLES for stream in plan.streams}
    conditions = Conditions(seed=seed, clairvoyant=True)
    record = simulate(plan, outliers.strategy(name, "latency"), arrivals, conditions)
    return record.mean_latency_seconds / outliers.MILLISECOND


def plot(tables: Tables, figure: Figure) -> None:
    """Average latency over the percentage of outliers."""
    outliers.draw(tables["latency"], figure, "average latency (ms)")


def check(tables: Tables) -> Sequence[Claim]:
    """What both figures show, and by how much greedy is above."""
    table = tables["latency"]
    single = outliers.excess(table, outliers.GREEDY)
    seeds = np.array(table["seed"])
    worst = np.array([single[seeds == seed].max() for seed in np.unique(seeds)])
    mean = float(outliers.by_percent(table, single).max())
    return [
        *outliers.claims(table, "latency", 0.04, '"always stay within 4% of each other"'),
        Claim(
            "latency: per-tuple greedy above MSS at its worst level, a figure for each seed",
            '"latencies that are up to 50% higher": about 50 % in the middle one',
            " ".join(f"{each:+.0%}" for each in np.sort(worst)),
            about(float(np.median(worst)), 0.5),
            Instead(
                f"significantly above at the worst level, mean of the seeds: {mean:+.0%}",
                "how much greedy loses depends on how early a dear outlier stands at the head of "
                "A's queue, so that figures of other draws differ",
                mean >= CLEARLY - 1,
            ),
        ),
    ]


EXPERIMENT = experiment(__name__, "Figure 12, average latency by outlier percentage", seeds=5)
