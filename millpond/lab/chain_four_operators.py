"""Chain paper, second figure pair: a selective operator sandwiched between unproductive ones."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.lab.chain_bursts import Setting, at_most, plot_queues, run_setting
from millpond.lab.experiment import Claim, Experiment, Tables
from millpond.simulator import SimulatedPlan

POINTS = ((0.0, 1.0), (0.002, 0.9), (0.004, 0.89), (0.005, 0.1), (0.009, 0.0))


def plan() -> SimulatedPlan:
    """The operator path of the chart."""
    made = SimulatedPlan()
    made.chart("q", made.stream("s"), POINTS)
    return made


SETTING = Setting(plan, {"s": 80.0})


def run(seeds: Sequence[int]) -> Tables:
    """Queue sizes under all strategies."""
    return run_setting(SETTING, seeds)


def check(tables: Tables) -> Sequence[Claim]:
    """Chain far ahead of all others."""
    return [
        *at_most(tables, "chain", "greedy", 0.5),
        *at_most(tables, "chain", "fifo", 0.5),
        *at_most(tables, "chain", "round-robin", 0.8),
    ]


EXPERIMENT = Experiment(
    name="chain-four-operators",
    paper="Chain",
    title="Queue size, four operators",
    claim=(
        "Chain recognises the fast, selective third operator although two unproductive ones stand "
        "before it; Greedy does not, and does as badly as FIFO; Round-robin does badly too."
    ),
    run=run,
    plot=plot_queues,
    check=check,
    note=(
        "Chart chosen: (0, 1), (2 ms, 0.9), (4 ms, 0.89), (5 ms, 0.1), (9 ms, 0); 80 tuples a "
        "second, load 0.72."
    ),
)
