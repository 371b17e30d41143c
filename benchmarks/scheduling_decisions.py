"""How many decisions a second each strategy makes with 10 to 10,000 operators.

Every operator has work all the time, the worst case. After each decision the strategy observes
what one step changes: the operator that ran and those behind it. One JSON line a case; the case
`growth` is the time of a decision with the most operators over that with the fewest. Seconds are
those of the processor, so that other work on the machine does not count.

    python -m benchmarks.scheduling_decisions [--quick] [--out DIR] [--strategies chain fifo]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.reporting import Report, progress
from millpond.scheduling.decisions import PlaceQueues, RunOperator
from millpond.scheduling.registry import make, names
from millpond.scheduling.snapshot import Observation, OperatorState, PlanSnapshot, WaitingTuples
from millpond.scheduling.strategy import Strategy
from millpond.simulator import SimulatedPlan, Simulation

OPERATORS = (10, 100, 1000, 10_000)
PATH_OPERATORS = 10
GROWTH_GOAL = 8.0
"""Ten thousand operators against ten: O(log n) allows 4, and caches are colder."""


def plan_of(operators: int) -> SimulatedPlan:
    """Paths of ten operators with random costs and selectivities."""
    generator = np.random.default_rng(operators)
    plan = SimulatedPlan()
    for number in range(operators // PATH_OPERATORS):
        costs = generator.uniform(1e-4, 1e-3, PATH_OPERATORS).tolist()
        yields = generator.uniform(0.2, 1.0, PATH_OPERATORS).tolist()
        stream = plan.stream(f"s{number}")
        plan.path(f"q{number}", stream, list(zip(costs, yields, strict=True)))
    return plan


class Crowd:
    """All operators of a plan with ten tuples each, arriving as fast as they are served."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation, self.now = simulation, 0.0
        self.plan: PlanSnapshot = simulation.plan()
        known = np.full(10, 1e-3), np.ones(10)
        self.waiting = WaitingTuples(*known)

    def states(self, operators: Iterator[int] | tuple[int, ...]) -> list[OperatorState]:
        """What is observed of these operators now."""
        waiting = self.waiting
        return [
            OperatorState(each, 10.0, 10.0, self.now + 1e-6 * each, True, False, waiting)
            for each in operators
        ]

    def start(self, strategy: Strategy) -> None:
        """Show the whole plan."""
        self.plan = self.simulation.plan()
        strategy.plan_changed(self.plan)
        strategy.observe(Observation(self.now, self.states(iter(self.plan.by_id)), 1e6))

    def turn(self, strategy: Strategy) -> None:
        """Ask, and show what the decision changes."""
        decision = strategy.decide()
        if isinstance(decision, PlaceQueues):
            self.simulation.perform(decision)
            self.start(strategy)
        elif isinstance(decision, RunOperator):
            self.now += 1e-3
            operator = self.plan.by_id[decision.operator]
            changed = self.states((operator.id, *operator.downstream))
            strategy.observe(Observation(self.now, changed, 1e6))


def decisions_per_second(name: str, operators: int, seconds: float) -> float:
    """The rate of turns once the strategy has warmed up."""
    strategy, crowd = make(name), Crowd(Simulation(plan_of(operators), {}))
    crowd.start(strategy)
    for _ in range(min(1000, 3 * operators)):
        crowd.turn(strategy)
    turns, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        for _ in range(100):
            crowd.turn(strategy)
        turns += 100
    return turns / (time.process_time() - start)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="shorter, within five minutes")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the picture and lines there")
    parser.add_argument("--strategies", nargs="*", default=names())
    parser.add_argument("--operators", nargs="*", type=int, default=OPERATORS)
    parser.add_argument("--seconds", type=float, help="for each case; 1, or 0.3 with --quick")
    return parser.parse_args()


def main() -> None:
    """Measure every strategy with every number of operators."""
    chosen = arguments()
    seconds = chosen.seconds or (0.3 if chosen.quick else 1.0)
    report = Report("scheduling_decisions", chosen.out)
    rates: dict[str, dict[int, float]] = {}
    with progress(len(chosen.strategies)) as start:
        for name in chosen.strategies:
            start(name)
            mine = {n: decisions_per_second(name, n, seconds) for n in chosen.operators}
            for operators, rate in mine.items():
                report.value(f"{name}, {operators} operators", round(rate), "decisions/s")
            growth = mine[min(mine)] / mine[max(mine)]
            sizes = f"{max(mine)} operators over {min(mine)}"
            report.ratio(f"{name}, growth", growth, GROWTH_GOAL, at_most=True, what=sizes)
            rates[name] = mine
    report.draw("rates", lambda figure: plot(figure, rates))
    report.close()


def plot(figure: Figure, rates: Mapping[str, Mapping[int, float]]) -> None:
    """Decisions a second over the number of operators, a line a strategy."""
    axes = figure.subplots()
    for name, mine in rates.items():
        axes.plot(list(mine), list(mine.values()), marker="o", lw=1, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operators")
    axes.set_ylabel("decisions a second")
    axes.legend(ncols=2, fontsize=7)


if __name__ == "__main__":
    main()
