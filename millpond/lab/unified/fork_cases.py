"""Figure 5 of the Unified paper: when a fork is partitioned for latency, and the areas of both
ways.

A fork of O1 into O2 and O3 is best processed as a whole while τ3 < τ1 + τ2, and is best partitioned
into O1 + O2 and O3 beyond; both areas follow their formulas.

With the rectangle the areas cross at τ3 = τ1 + τ2, as the rule says.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.unified.small_instances import tree
from millpond.scheduling.by_priority import ByPriority
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray, PlanSnapshot

STEM, FIRST = 2.0, 1.0
SECONDS = (1.5, 2.0, 2.5, 2.9, 3.0, 3.1, 3.5, 4.0, 5.0, 6.0)
TUPLES = 60


class PartitionedFork(ByPriority):
    """All tuples through the stem and the first branch, then all through the second."""

    def priorities(self, plan: PlanSnapshot) -> Mapping[int, float]:
        """The second branch comes last."""
        return {0: 1.0, 1: 1.0, 2: 0.0}


def run(seeds: Sequence[int]) -> Tables:
    """Areas under the output completion curve, by the cost of the second branch."""
    ways = {
        "whole": make("fifo", max_tuples=1),
        "partitioned": PartitionedFork(max_tuples=1),
        "component-based": make("component-based", max_tuples=1),
    }
    table: dict[str, list[float]] = {"tau 3": list(SECONDS)}
    for name, strategy in ways.items():
        table[name] = [
            tree(("s", 0, 0), (STEM, FIRST, second), TUPLES).area(strategy, "latency")
            for second in SECONDS
        ]
    return {"areas": table}


def plot(tables: Tables, figure: Figure) -> None:
    """Areas, measured and by formula, in units of N squared."""
    axes = figure.subplots()
    table, second = tables["areas"], _second(tables)
    for name, marker in (("whole", "o"), ("partitioned", "s"), ("component-based", "x")):
        axes.plot(second, np.array(table[name]) / TUPLES**2, marker, label=f"{name}, measured")
    axes.plot(second, _whole(second) / TUPLES**2, "C0--", label="whole, formula")
    corrected = _printed(second) + _rectangle()
    axes.plot(second, corrected / TUPLES**2, "C1--", label="partitioned, formula and rectangle")
    axes.plot(second, _printed(second) / TUPLES**2, "C3:", label="partitioned, as printed")
    axes.axvline(STEM + FIRST, color="grey", linewidth=0.8)
    axes.set(xlabel="time of O3 (O1 takes 2, O2 takes 1)", ylabel="area / N²")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """The area formulas, and that the better way is taken on either side of τ1 + τ2."""
    table, second = tables["areas"], _second(tables)
    whole = np.array(table["whole"])
    partitioned, chosen = np.array(table["partitioned"]), np.array(table["component-based"])
    tolerance = 1 / TUPLES
    off = float(np.abs(whole / _whole(second) - 1).max())
    missing = (partitioned - _printed(second)) / _rectangle()
    excess = float((chosen / np.minimum(whole, partitioned) - 1).max())
    low, high = second < STEM + FIRST, second > STEM + FIRST
    sides = bool((chosen[low] == whole[low]).all() and (chosen[high] == partitioned[high]).all())
    printed = float(np.abs(partitioned / _printed(second) - 1).max())
    return [
        Claim(
            "whole fork: area off the formula, 1/N being the step of a tuple",
            f"N² (τ1 + τ2 + τ3): at most 1/N = {tolerance:.2%}",
            f"{off:.2%}",
            off <= tolerance,
        ),
        Claim(
            "partitioned fork: area off the formula",
            f"N²/2 (τ1 + τ2) + N²/2 τ3: at most 1/N = {tolerance:.2%}",
            f"{printed:.0%}",
            printed <= tolerance,
            Instead(
                "the printed area plus one rectangle N² (τ1 + τ2): the rest is "
                f"{missing.min():.3f} to {missing.max():.3f} of it",
                "the N outputs of the second branch also wait while the first is served; without "
                "that the partitioned fork would always be better, against the rule it explains",
                bool((np.abs(missing - 1) <= 2 * tolerance).all()),
            ),
        ),
        Claim(
            "whole when τ3 < τ1 + τ2, partitioned when τ3 > τ1 + τ2",
            "the same areas on either side",
            "the same" if sides else "different",
            sides,
        ),
        Claim("component-based takes the better way", "+0 %", f"{excess:+.2%}", excess <= 1e-9),
    ]


def _second(tables: Tables) -> FloatArray:
    return np.array(tables["areas"]["tau 3"])


def _whole(second: FloatArray) -> FloatArray:
    return TUPLES**2 * (STEM + FIRST + second)


def _printed(second: FloatArray) -> FloatArray:
    return TUPLES**2 / 2 * (STEM + FIRST) + TUPLES**2 / 2 * second


def _rectangle() -> float:
    return TUPLES**2 * (STEM + FIRST)


EXPERIMENT = experiment(__name__, "Figure 5, partitioning a fork for latency", seeds=1)
