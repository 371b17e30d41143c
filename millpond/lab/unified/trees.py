"""Trees of operators for the Unified paper's Figures 6 to 8, of drawn costs and of drawn shape.

What the text says of its example, whose costs are not printed, is said here in slopes, apart from
the code that partitions.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from millpond.lab.unified.small_instances import SmallInstance, tree
from millpond.scheduling.snapshot import PlanSnapshot
from millpond.simulator import SimulatedPlan, Simulation

NAMES = "EDCABGHPO"
PARENTS: tuple[int | str, ...] = ("s", 0, 0, 2, 2, 0, 5, 5, 5)
"""E forks into D, C and G; C into A and B; G into H, P and O."""
Costs: TypeAlias = Mapping[str, float]
"""By the name of the operator."""


def snapshot(parents: Sequence[int | str], costs: Sequence[float]) -> PlanSnapshot:
    """The plan of a tree of operators with selectivity one."""
    plan = SimulatedPlan()
    plan.stream("s")
    for place, (parent, cost) in enumerate(zip(parents, costs, strict=True)):
        plan.operator(str(place), parent, cost)
    return Simulation(plan, {"s": [0.0]}).plan()


def drawn_costs(seeds: Sequence[int], count: int) -> Iterator[Costs]:
    """Costs between a quarter and sixteen seconds, as often small as large."""
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for row in np.exp2(generator.uniform(-2, 4, (count, len(NAMES)))):
            yield dict(zip(NAMES, row.tolist(), strict=True))


def rate(cost: Costs, operators: str, outputs: int) -> float:
    """Outputs a second of these operators."""
    return outputs / sum(cost[name] for name in operators)


def as_in_the_text(cost: Costs) -> bool:
    """C+A+B is one part, G+H+P and O are two, and Figure 8 draws D, G+H+P, C+A+B, O."""
    one = cost["A"] < cost["B"] <= cost["C"] + cost["A"]
    two = rate(cost, "O", 1) < rate(cost, "GHP", 2) > max(rate(cost, "GH", 1), rate(cost, "GP", 1))
    order = [rate(cost, *each) for each in (("D", 1), ("GHP", 2), ("CAB", 2), ("O", 1))]
    return one and two and order == sorted(order, reverse=True)


def is_the_papers(cost: Costs) -> bool:
    """The steepest line from the top of E's chart ends behind G+H+P, the next behind C+A+B."""
    ends = [rate(cost, *each) for each in (("ED", 1), ("EDGHP", 3), ("EDGHPCAB", 5), (NAMES, 6))]
    return ends.index(max(ends)) == 1 and rate(cost, "CAB", 2) > rate(cost, "O", 1)


def random_trees(seeds: Sequence[int], count: int) -> list[SmallInstance]:
    """Trees of two to seven operators, some of which make two tuples of one."""
    found = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for _ in range(count):
            size = int(generator.integers(2, 8))
            parents: list[int | str] = ["s"]
            parents += [int(generator.integers(0, place)) for place in range(1, size)]
            costs = generator.integers(1, 13, size).astype(float).tolist()
            outputs = [1 + int(generator.random() < 0.15) for _ in range(size)]
            found.append(tree(parents, costs, 2, outputs=outputs))
    return found
