"""How many decisions a second each strategy makes with 10 to 10,000 operators.

Every operator has work all the time, the worst case. After each decision the strategy observes
what one step changes: the operator that ran and those behind it. One JSON line a case; the case
`growth` is the time of a decision with the most operators over that with the fewest. Seconds are
those of the processor, so that other work on the machine does not count.

    python benchmarks/scheduling_decisions.py [--strategies chain fifo] [--operators 10 100]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

import numpy as np

from millpond.decisions import PlaceQueues, RunOperator
from millpond.scheduling.registry import make, names
from millpond.scheduling.strategy import Strategy
from millpond.simulator import SimulatedPlan, Simulation
from millpond.snapshot import Observation, OperatorState, PlanSnapshot, WaitingTuples

PATH_OPERATORS = 10
GROWTH_GOAL = 8.0
"""Ten thousand operators against ten: O(log n) allows 4, and caches are colder."""


def plan_of(operators: int) -> SimulatedPlan:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strategies", nargs="*", default=names())
    parser.add_argument("--operators", nargs="*", type=int, default=[10, 100, 1000, 10_000])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case")
    options = parser.parse_args()
    for name in options.strategies:
        rates = {n: decisions_per_second(name, n, options.seconds) for n in options.operators}
        for operators, rate in rates.items():
            case = f"{name}, {operators} operators"
            line = {"benchmark": "scheduling_decisions", "case": case, "value": round(rate)}
            print(json.dumps(line | {"unit": "decisions/s"}), flush=True)
        growth = rates[min(rates)] / rates[max(rates)]
        line = {"benchmark": "scheduling_decisions", "case": f"{name}, growth"}
        print(json.dumps(line | {"ratio": round(growth, 2), "goal": GROWTH_GOAL}), flush=True)


if __name__ == "__main__":
    main()
