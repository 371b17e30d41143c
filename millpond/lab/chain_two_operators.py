"""Chain paper, first figure pair: one stream, a fast selective operator before a slow one."""

from __future__ import annotations

from collections.abc import Sequence

from millpond.lab.chain_bursts import Setting, at_most, plot_queues, run_setting
from millpond.lab.experiment import Claim, Experiment, Tables
from millpond.simulator import SimulatedPlan

POINTS = ((0.0, 1.0), (0.001, 0.2), (0.006, 0.0))


def plan() -> SimulatedPlan:
    """The operator path of the chart."""
    made = SimulatedPlan()
    made.chart("q", made.stream("s"), POINTS)
    return made


SETTING = Setting(plan, {"s": 120.0})


def run(seeds: Sequence[int]) -> Tables:
    """Queue sizes under all strategies."""
    return run_setting(SETTING, seeds)


def check(tables: Tables) -> Sequence[Claim]:
    """Chain and Greedy alike, Round-robin close, FIFO far behind."""
    return [
        *at_most(tables, "chain", "greedy", 1.01),
        *at_most(tables, "greedy", "chain", 1.01),
        *at_most(tables, "round-robin", "chain", 1.15),
        *at_most(tables, "chain", "fifo", 0.5),
    ]


EXPERIMENT = Experiment(
    name="chain-two-operators",
    paper="Chain",
    title="Queue size, two operators",
    claim=(
        "With a fast, selective operator before a slow one, Chain and Greedy are almost identical, "
        "Round-robin does almost as well, and FIFO does badly."
    ),
    run=run,
    plot=plot_queues,
    check=check,
    note="Chart chosen: (0, 1), (1 ms, 0.2), (6 ms, 0); 120 tuples a second, load 0.72.",
)
