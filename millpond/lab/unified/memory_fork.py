"""Figure 9 of the Unified paper: a fork of two paths, partitioned for memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from millpond.lab.experiment import Claim, Experiment, Tables
from millpond.lab.unified.small_instances import SmallInstance, tree
from millpond.scheduling.charts.component_partition import parts
from millpond.scheduling.registry import make
from millpond.scheduling.strategy import Strategy
from millpond.simulator import SimulatedPlan, Simulation
from millpond.snapshot import PlanSnapshot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PARENTS: tuple[int | str, ...] = ("s", 0, "s", 2)
COSTS = (1.0, 6.0, 1.0, 0.5)
BYTES = (0.6, 1.0, 0.5, 1.0)
FORKS = 40
STRATEGIES = ("component-based", "chain", "greedy", "fifo")


def run(seeds: Sequence[int]) -> Tables:
    """The parts, the memory of each strategy on this fork and on random ones."""
    plan = snapshot()
    found = parts(plan, "memory")
    table = {
        "part": ["+".join(f"O{each + 1}" for each in part.operators) for part in found],
        "slope": [part.slope for part in found],
    }
    falls = {"O1": 1 - BYTES[0], "O3": 1 - BYTES[2], "O1+O3": 1 - BYTES[0] - BYTES[2]}
    return {
        "parts": table,
        "first operators": {"operators": list(falls), "bytes freed": list(falls.values())},
        "this fork": _areas([tree(PARENTS, COSTS, 5, BYTES)]),
        "random forks": _areas(random_forks(seeds)),
        "memory": _curves(),
    }


def snapshot() -> PlanSnapshot:
    """The plan of Figure 9(a)."""
    plan = SimulatedPlan()
    plan.stream("s")
    for place, parent in enumerate(PARENTS):
        plan.operator(f"O{place + 1}", parent, COSTS[place], output_bytes=BYTES[place])
    return Simulation(plan, {"s": [0.0]}).plan()


def random_forks(seeds: Sequence[int], count: int = FORKS) -> list[SmallInstance]:
    """Two or three branches of one to three operators on a shared stream."""
    found = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for _ in range(count):
            parents: list[int | str] = []
            for _ in range(int(generator.integers(2, 4))):
                length = int(generator.integers(1, 4 if len(parents) < 3 else 2))
                parents += ["s", *range(len(parents), len(parents) + length - 1)]
            costs = generator.integers(1, 13, len(parents)).astype(float).tolist()
            found.append(tree(parents, costs, 3, generator.random(len(parents)).tolist()))
    return found


def _areas(instances: Sequence[SmallInstance]) -> dict[str, list[float]]:
    table = {"least": [each.least_area("memory") for each in instances]}
    for name in STRATEGIES:
        table[name] = [each.area(_made(name), "memory") for each in instances]
    return table


def _made(name: str) -> Strategy:
    if name == "component-based":
        return make(name, objective="memory", max_tuples=1)
    return make(name, max_tuples=1)


def _curves() -> dict[str, list[float]]:
    instance = tree(PARENTS, COSTS, 5, BYTES)
    seconds = np.arange(0.0, 43.0, 0.25)
    curves = {"seconds": seconds.tolist()}
    for name in STRATEGIES:
        curves[name] = instance.simulate(_made(name)).memory.at(seconds).tolist()
    return curves


def plot(tables: Tables, figure: Figure) -> None:
    """Memory over time on the fork of Figure 9."""
    axes = figure.subplots()
    table = tables["memory"]
    for name, style in zip(STRATEGIES, ("-", "-", "--", ":"), strict=True):
        axes.step(table["seconds"], table[name], style, where="post", label=name)
    axes.set_xlabel("seconds")
    axes.set_ylabel("queue memory")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """The partition, the sign of the first operators, and the memory won."""
    freed = dict(zip(*tables["first operators"].values(), strict=True))
    found = " | ".join(tables["parts"]["part"])
    claims = [
        Claim("partitions of Figure 9", "O1+O3+O4 | O2", found, found == "O1+O3+O4 | O2"),
        Claim(
            "the first operators free memory each by itself, but not on the shared tuple",
            "above 0, above 0, at most 0",
            ", ".join(f"{value:+.1f}" for value in freed.values()),
            freed["O1"] > 0 and freed["O3"] > 0 and freed["O1+O3"] <= 0,
        ),
    ]
    for name in ("this fork", "random forks"):
        least = np.array(tables[name]["least"])
        ours = np.array(tables[name]["component-based"]) / least - 1
        chain = np.array(tables[name]["chain"]) / least - 1
        claims.append(
            Claim(
                f"{name}: mean memory above the least of all schedules, against Chain's",
                "not above Chain's",
                f"{ours.mean():+.1%} against {chain.mean():+.1%}; worst {ours.max():+.1%} "
                f"against {chain.max():+.1%}",
                bool(ours.mean() <= chain.mean() + 1e-9),
            )
        )
    return claims


EXPERIMENT = Experiment(
    name="unified-memory-fork",
    paper="Unified",
    title="Figure 9, a fork partitioned for memory",
    claim=(
        "On two paths with a common input the first operators are kept together and take in O4: "
        "{O1, O3, O4}, {O2}; memory is below that of Chain, which treats the paths as independent."
    ),
    run=run,
    plot=plot,
    check=check,
    seeds=3,
    note=(
        "Sizes and costs were chosen to have the shape the text describes: O1 takes 1 s and makes "
        "0.6 of 1, O2 takes 6 s, O3 takes 1 s and makes 0.5, O4 takes 0.5 s. The procedure is "
        "greedy; the paper claims no optimality, and on small random forks it is not optimal, nor "
        "is it below Chain on each single one."
    ),
)
