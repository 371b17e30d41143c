"""What the checks of the Path Capacity paper's Theorems 1 and 2 share.

Each theorem is tried in several settings: how far Path Capacity is above the optimum on random
instances where its assumptions hold and where they do not, and on counterexamples made by hand.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables
from millpond.lab.path_capacity.instances import same_random
from millpond.lab.tables import picked, table_of

ROUNDING = 1e-9
Measure: TypeAlias = Callable[[np.random.Generator], float | None]
"""The excess on the random instance of a generator, or None where it does not fit the setting."""
Counterexample: TypeAlias = tuple[str, float, float, float, float]
"""What it is; what Path Capacity and another schedule need; both again, worked out by hand."""


def measured_excess(
    measures: Mapping[str, Measure],
    counterexamples: Iterable[Counterexample],
    seeds: Sequence[int],
    instances_a_seed: int,
    offset: int,
) -> Tables:
    """The excess of every instance by setting, and the counterexamples."""
    found = [
        (setting, measure(each))
        for number, (setting, measure) in enumerate(measures.items())
        for each in same_random(seeds, instances_a_seed, offset + number)
    ]
    names = ("what", "path capacity", "another", "path capacity by hand", "another by hand")
    return {
        "excess": table_of(("setting", "excess"), [row for row in found if row[1] is not None]),
        "counterexamples": table_of(names, counterexamples),
    }


def excess_in(tables: Tables, setting: str) -> list[float]:
    """The excess of every instance of one setting."""
    return picked(tables["excess"], "excess", {"setting": setting})


def plot_excess(tables: Tables, figure: Figure, label: str) -> None:
    """The excess of every instance, sorted, a curve for each setting."""
    axes = figure.subplots()
    for setting in dict.fromkeys(tables["excess"]["setting"]):
        values = excess_in(tables, setting)
        axes.plot(np.linspace(0, 1, len(values)), np.sort(values), label=setting)
    axes.set(xlabel="share of the instances", ylabel=label)
    axes.legend()


def none_above(tables: Tables, setting: str, words: str) -> Claim:
    """The claim that no instance of a setting is above the optimum, as the theorem says."""
    values = excess_in(tables, setting)
    worst = max(values, default=float("inf"))
    measured = f"{worst:.1e} at worst, {len(values)} instances"
    return Claim(f"{setting}: above the optimum by", f"{words}: 0", measured, worst < ROUNDING)


def some_above(tables: Tables, setting: str, words: str, unit: str, why: str) -> Claim:
    """The same where the theorem's words reach further than its proof."""
    values = excess_in(tables, setting)
    above = sum(value > ROUNDING for value in values)
    measured = f"{max(values):.2f} {unit} at worst, above 0 in {above} of {len(values)}"
    found = "above the optimum in some, never below"
    instead = Instead(found, why, above > 0 and min(values) > -ROUNDING)
    return Claim(f"{setting}: above the optimum by", f"{words}: 0", measured, above == 0, instead)


def counterexample_claims(tables: Tables, words: str, whys: Sequence[str]) -> list[Claim]:
    """The theorem on instances made by hand, where another schedule needs less."""
    rows = zip(*tables["counterexamples"].values(), whys, strict=True)
    return [
        Claim(
            what,
            f"{words}: no more than another schedule",
            f"{mine:g} against {other:g}",
            mine <= other,
            Instead(
                f"{by_hand:g} against {least:g}, as worked out by hand",
                why,
                (round(mine, 9), round(other, 9)) == (by_hand, least),
            ),
        )
        for what, mine, other, by_hand, least, why in rows
    ]
