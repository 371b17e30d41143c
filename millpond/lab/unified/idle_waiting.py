"""Section 4.1 of the Unified paper: idle-waiting before a union, cured by on-demand timestamps.

A union in order of time holds tuples until its slow input brings one; timestamps fetched on demand
free them at once.

The paper describes the effect and shows no figure; rates and costs were chosen here. The time until
the next is taken from the arrivals. With the processor busy for a tenth of the time, a tuple waits
for others about a twentieth of its own work.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.words import CLEARLY, about
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.simulator import Conditions, SimulatedPlan, simulate
from millpond.workloads import Poisson

FAST_PER_SECOND = 20.0
SLOW_PER_SECOND = (0.2, 0.5, 1.0, 2.0, 5.0)
SECONDS = 100.0
Arrivals: TypeAlias = Mapping[str, FloatArray]
COST_SECONDS = 0.002
WORK_SECONDS = 2 * COST_SECONDS
"""A tuple is served by its branch and by the union."""


def run(seeds: Sequence[int], seconds: float = SECONDS) -> Tables:
    """Mean latency by the rate of the slow input, with and without on-demand timestamps."""
    drawn = [[arrivals(rate, seconds, seed) for seed in seeds] for rate in SLOW_PER_SECOND]
    table: dict[str, list[float]] = {
        "slow per second": list(SLOW_PER_SECOND),
        "until the next": [_mean(_until_the_next, row) for row in drawn],
        "waiting": [_mean(partial(_latency, on_demand=False), row) for row in drawn],
        "on demand": [_mean(partial(_latency, on_demand=True), row) for row in drawn],
    }
    return {"latency": table}


def _mean(measure: Callable[[Arrivals], float], drawn: Sequence[Arrivals]) -> float:
    return float(np.mean([measure(each) for each in drawn]))


def arrivals(slow_per_second: float, seconds: float, seed: int) -> Arrivals:
    """Both inputs; the slow one ends with a tuple, so that each wait is seen whole."""
    slow = Poisson(slow_per_second).until(seconds, seed + 1000)
    return {
        "fast": Poisson(FAST_PER_SECOND).until(seconds, seed),
        "slow": np.concatenate([slow, [seconds]]),
    }


def _until_the_next(drawn: Arrivals) -> float:
    """The mean time from a tuple of either input until the other brings its next, if it does."""
    waits = []
    for mine, other in ((drawn["fast"], drawn["slow"]), (drawn["slow"], drawn["fast"])):
        places = np.searchsorted(other, mine)
        waits.append(np.append(other, mine[-1])[places] - mine)
    return float(np.concatenate(waits).mean())


def _latency(drawn: Arrivals, on_demand: bool) -> float:
    plan = SimulatedPlan()
    branches = [plan.operator(f"from {name}", plan.stream(name), COST_SECONDS) for name in drawn]
    plan.query("q", plan.union("union", *branches, cost_seconds=COST_SECONDS))
    conditions = Conditions(on_demand_timestamps=on_demand)
    return simulate(plan, make("component-based"), drawn, conditions).mean_latency_seconds


def plot(tables: Tables, figure: Figure) -> None:
    """Mean latency over the rate of the slow input."""
    axes = figure.subplots()
    table = tables["latency"]
    for name, style in (("waiting", "o-"), ("on demand", "s-")):
        axes.loglog(table["slow per second"], table[name], style, label=name)
    axes.set_xlabel("tuples a second on the slow input (20 on the other)")
    axes.set_ylabel("mean latency (s)")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """Without the cure a tuple waits for the next slow one; with it for the processor only."""
    table = tables["latency"]
    waiting, cured = np.array(table["waiting"]), np.array(table["on demand"])
    of_gaps = (waiting - WORK_SECONDS) / np.array(table["until the next"])
    of_work = cured / WORK_SECONDS
    return [
        Claim(
            "without on-demand timestamps: latency but for a tuple's work, over the time until the "
            "other input brings its next",
            '"idle-waiting [...] until there are new arrivals on the empty input": about 1',
            f"{of_gaps.min():.3f} to {of_gaps.max():.3f}",
            all(about(each, 1.0) for each in of_gaps),
        ),
        Claim(
            "with them: latency over the work of a tuple, at every rate of the slow input",
            f'"to unblock the waiting": below {CLEARLY:g}, whatever the rate',
            f"{of_work.min():.3f} to {of_work.max():.3f}",
            bool(of_work.max() < CLEARLY),
        ),
    ]


EXPERIMENT = experiment(__name__, "Section 4.1, idle-waiting cured by on-demand timestamps")
