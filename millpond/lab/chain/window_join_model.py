"""Chain paper, section 5.1: a window join's selectivity and time follow from those of its inputs.

A join of streams R and S yields λR·wS + λS·wR over λR + λS tuples for each that it serves, wX being
how many of the window of X one of the other stream joins with, and takes the mean of tR and tS by
rate; its output has the rate of both together, times that.

Rates, windows, matches and times are drawn; windows are of tuples, and so many of a window match as
chance has it. Both streams are steady but for chance.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.tables import table_of
from millpond.lab.words import ABOUT
from millpond.scheduling.registry import make
from millpond.simulator import Conditions, SimulatedPlan, Window, simulate
from millpond.workloads import Poisson

SECONDS = 60.0
JOINS_A_SEED = 3
COLUMNS = ("selectivity", "expected selectivity", "time", "expected time", "rate", "expected rate")


def run(seeds: Sequence[int], seconds: float = SECONDS) -> Tables:
    """As measured and by formula, join by join."""
    rows = []
    for seed in seeds:
        generator = np.random.default_rng((51, seed))
        rows += [_join(generator, seed, seconds) for _ in range(JOINS_A_SEED)]
    return {"joins": table_of(COLUMNS, rows)}


def _join(generator: np.random.Generator, seed: int, seconds: float) -> tuple[float, ...]:
    left, right = generator.uniform(10, 60, 2).tolist()
    rows, probability = int(generator.integers(5, 60)), float(generator.uniform(0.01, 0.1))
    costs = (float(generator.uniform(1e-4, 2e-3)), float(generator.uniform(1e-4, 2e-3)))
    plan = SimulatedPlan()
    window = Window(rows=rows, match_probability=probability)
    joined = plan.join("join", plan.stream("r"), plan.stream("s"), costs, window=window)
    plan.query("q", joined)
    arrivals = {
        name: Poisson(rate).until(seconds, 10 * seed + place)
        for place, (name, rate) in enumerate((("r", left), ("s", right)))
    }
    record = simulate(plan, make("fifo"), arrivals, Conditions(seed=seed))
    served = sum(map(len, arrivals.values()))
    matches = rows * probability
    selectivity = (left * matches + right * matches) / (left + right)
    time = (left * costs[0] + right * costs[1]) / (left + right)
    return (
        record.outputs / served,
        selectivity,
        record.busy_seconds / served,
        time,
        record.outputs / seconds,
        selectivity * (left + right),
    )


def plot(tables: Tables, figure: Figure) -> None:
    """Measured over expected."""
    table = tables["joins"]
    for axes, name in zip(figure.subplots(1, 3), COLUMNS[::2], strict=True):
        axes.scatter(table[f"expected {name}"], table[name], s=8)
        axes.set(xlabel=f"{name} by formula", ylabel="measured")


def check(tables: Tables) -> Sequence[Claim]:
    """Each within a tenth of its formula, on every join."""
    table = tables["joins"]
    found = []
    for name in COLUMNS[::2]:
        off = np.array(table[name]) / np.array(table[f"expected {name}"])
        found.append(
            Claim(
                f"{name} of a window join over that by formula",
                f"1, within {ABOUT:.0%} for chance",
                f"{off.min():.3f} to {off.max():.3f}, {len(off)} joins",
                bool((np.abs(off - 1) <= ABOUT).all()),
            )
        )
    return found


EXPERIMENT = experiment(__name__, "Section 5.1, the model of a window join", seeds=10)
