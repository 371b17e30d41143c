"""Figure 9 of the Unified paper: a fork of two paths, partitioned for memory.

On two paths with a common input the first operators are kept together and take in what frees memory
faster, {O1, O3, O4}, {O2} where the slopes say so; that frees memory as fast as possible, and needs
less than Chain, which treats the paths as independent.

Sizes and costs are drawn; those of the picture are chosen: O1 takes 1 s and makes 0.6 of 1, O2
takes 6 s, O3 takes 1 s and makes 0.5, O4 takes 0.5 s. The procedure is greedy; the paper claims no
optimality, and on small random forks it is not optimal, nor is it below Chain on each single one.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.tables import table_of
from millpond.lab.unified.forks import (
    Fork,
    forks_of_figure_9,
    freed_by_first_operators,
    random_forks,
    said,
)
from millpond.lab.unified.small_instances import SmallInstance
from millpond.scheduling.charts.component_partition import parts
from millpond.scheduling.registry import make
from millpond.scheduling.strategy import Strategy

DRAWN = Fork(("s", 0, "s", 2), (1.0, 6.0, 1.0, 0.5), (0.6, 1.0, 0.5, 1.0))
"""The fork of the picture: sizes and costs of the shape that the text describes."""
DRAWS, FORKS = 400, 40
PAPER = "O1+O3+O4 | O2"
STRATEGIES = ("component-based", "chain", "greedy", "fifo")


def run(seeds: Sequence[int]) -> Tables:
    """Partitions of Figure 9's fork, random forks, and the memory of each strategy on these."""
    forks = random_forks(seeds, FORKS)
    return {
        "figure 9": _figure_9(seeds),
        "first operators": _first_operators(forks),
        "random forks": _areas([each.instance(3) for each in forks]),
        "memory": _curves(),
    }


def _figure_9(seeds: Sequence[int]) -> dict[str, list[object]]:
    """Partitions found, and those that the slopes say."""
    rows = []
    for fork in forks_of_figure_9(seeds, DRAWS):
        found = [sorted(part.operators) for part in parts(fork.snapshot(), "memory")]
        named = " | ".join("+".join(f"O{each + 1}" for each in part) for part in found)
        rows.append((said(fork), named))
    return table_of(("slopes say", "found"), rows)


def _first_operators(forks: Sequence[Fork]) -> dict[str, list[object]]:
    """Whether all are in the first part, its rate, the best rate, and what each step frees."""
    rows = []
    for fork in forks:
        first = parts(fork.snapshot(), "memory")[0]
        *others, last = freed_by_first_operators(fork, _made("component-based"))
        has_all = fork.first <= set(first.operators)
        rows.append((has_all, first.slope, fork.best_rate(), max(others), last))
    return table_of(("all", "rate", "best rate", "others", "last"), rows)


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
    instance = DRAWN.instance(5)
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
    axes.set(xlabel="seconds", ylabel="queue memory")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """The partitions, the sign of the first operators, the rate, and the memory won."""
    first = tables["first operators"]
    count = len(first["all"])
    rates = np.array(first["rate"]), np.array(first["best rate"])
    return [
        *_partitions(tables),
        Claim(
            "random forks: the first part has all first operators",
            '"the fork itself should never be partitioned": on all',
            f"on {sum(first['all'])} of {count}",
            all(first["all"]),
        ),
        Claim(
            "random forks: memory freed by first operators but for the last, by the last",
            '"becomes a memory-increasing operator", "still reduces memory": at most 0, above 0',
            f"at most {max(first['others']):+.2f}; at least {min(first['last']):+.2f}",
            max(first["others"]) <= 0 < min(first["last"]),
        ),
        Claim(
            "random forks: memory that the first part frees a second over the most possible",
            '"a memory reduction rate that is as large as possible at the fork": 1',
            f"{(rates[0] / rates[1]).min():.3f} to {(rates[0] / rates[1]).max():.3f}",
            bool(np.allclose(*rates)),
        ),
        _against_chain(tables),
    ]


def _partitions(tables: Tables) -> list[Claim]:
    table = tables["figure 9"]
    rows = list(zip(table["slopes say"], table["found"], strict=True))
    papers = [found for says, found in rows if says == PAPER]
    others = [says == found for says, found in rows if says != PAPER]
    return [
        Claim(
            "fork of Figure 9: partitions where the slopes say the paper's",
            PAPER,
            f"on {papers.count(PAPER)} of {len(papers)}",
            bool(papers) and set(papers) == {PAPER},
        ),
        Claim(
            "fork of Figure 9: partitions where they say others",
            "those",
            f"on {sum(others)} of {len(others)}",
            bool(others) and all(others),
        ),
    ]


def _against_chain(tables: Tables) -> Claim:
    table = tables["random forks"]
    least = np.array(table["least"])
    ours, chain = (np.array(table[name]) / least - 1 for name in STRATEGIES[:2])
    return Claim(
        "random forks: mean memory above the least of all schedules, against Chain's",
        "not above Chain's, which takes branches for independent",
        f"{ours.mean():+.1%} against {chain.mean():+.1%}; worst {ours.max():+.1%} against "
        f"{chain.max():+.1%}; {len(least)} forks",
        bool(ours.mean() <= chain.mean()),
    )


EXPERIMENT = experiment(__name__, "Figure 9, a fork partitioned for memory")
