"""What the checks of the Path Capacity paper's Theorems 1 and 2 share.

Each theorem is tried in several settings: how far Path Capacity is above the optimum on random
instances where its assumptions hold and where they do not, and on counterexamples made by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from millpond.lab.experiment import Claim, Tables
from millpond.lab.path_capacity.instances import same_random

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROUNDING = 1e-9
Measure: TypeAlias = Callable[[np.random.Generator], float | None]
"""The excess on the random instance of a generator, or None where it does not fit the setting."""
Counterexample: TypeAlias = tuple[str, float, float]
"""What happens in it, what Path Capacity needs, and what another schedule needs."""


def measured_excess(
    measures: Mapping[str, Measure],
    counterexamples: Iterable[Counterexample],
    seeds: Sequence[int],
    instances_a_seed: int,
    offset: int,
) -> Tables:
    """The excess of every instance by setting, and the counterexamples."""
    table: dict[str, list[str | float]] = {"setting": [], "excess": []}
    for number, (setting, measure) in enumerate(measures.items()):
        found = [measure(each) for each in same_random(seeds, instances_a_seed, offset + number)]
        kept = [excess for excess in found if excess is not None]
        table["setting"] += [setting] * len(kept)
        table["excess"] += kept
    columns = map(list, zip(*counterexamples, strict=True))
    against = dict(zip(("what", "path capacity", "another"), columns, strict=True))
    return {"excess": table, "counterexamples": against}


def excess_in(tables: Tables, setting: str) -> list[float]:
    """The excess of every instance of one setting."""
    rows = zip(tables["excess"]["setting"], tables["excess"]["excess"], strict=True)
    return [value for name, value in rows if name == setting]


def plot_excess(tables: Tables, figure: Figure, label: str) -> None:
    """The excess of every instance, sorted, a curve for each setting."""
    axes = figure.subplots()
    for setting in dict.fromkeys(tables["excess"]["setting"]):
        values = excess_in(tables, setting)
        axes.plot(np.linspace(0, 1, len(values)), np.sort(values), label=setting)
    axes.set_xlabel("share of the instances")
    axes.set_ylabel(label)
    axes.legend()


def none_above(tables: Tables, setting: str, where: str) -> Claim:
    """The claim that no instance of a setting is above the optimum."""
    values = excess_in(tables, setting)
    worst = max(values, default=float("inf"))
    text = f"{setting}: excess over the optimum at worst, {len(values)} instances{where}"
    return Claim(text, "0", f"{worst:.1e}", worst < ROUNDING)


def some_above(tables: Tables, setting: str, unit: str) -> Claim:
    """The claim that a setting is outside the theorem: some instances are above the optimum."""
    values = excess_in(tables, setting)
    above = sum(value > ROUNDING for value in values)
    measured = f"above in {above} of {len(values)}, by {max(values):.2f} {unit} at worst"
    return Claim(f"{setting}: not optimal", "above the optimum", measured, above > 0)


def counterexample_claims(tables: Tables, unit: str = "") -> list[Claim]:
    """The claims that another schedule does better than Path Capacity."""
    rows = tables["counterexamples"]
    return [
        Claim(
            f"counterexample: {what}",
            "more than another schedule",
            f"{mine:g}{unit} against {other:g}{unit}",
            mine > other,
        )
        for what, mine, other in zip(*rows.values(), strict=True)
    ]
