"""Unified paper, section 4: forks of any selectivities, behind a shared stem, and nested ones.

In the most general case operators have selectivities, and forks are nested: for latency a fork is
processed as a whole where its second branch puts out faster than the stem with its first, and is
partitioned elsewhere. For memory nested forks become serial one by one, and first operators stay
together.

Costs of 1 to 8 s, one to three outputs a tuple, one or two operators before the fork; three tuples,
of which all schedules are tried. For memory a fork in a branch of a fork, two tuples, sizes drawn.
The paper claims no optimality for memory.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.tables import table_of
from millpond.lab.unified.areas import InOrder
from millpond.lab.unified.small_instances import tree
from millpond.scheduling.registry import make

FORKS, NESTED = 20, 12
TUPLES, FEW_TUPLES = 3, 2
ROUNDING = 1e-6
NESTED_PARENTS: tuple[int | str, ...] = ("s", "s", 0, 0, 2)
"""Two branches; the first forks again, and one of those goes on."""


def run(seeds: Sequence[int]) -> Tables:
    """Areas of forks as a whole, partitioned, as chosen, and the least; and of nested ones."""
    forks, nested = [], []
    for seed in seeds:
        generator = np.random.default_rng((44, seed))
        forks += [_fork(generator) for _ in range(FORKS)]
        nested += [_nested(generator) for _ in range(NESTED)]
    names = ("rate of the second over the first", "whole", "partitioned", "chosen", "least")
    return {
        "forks": table_of(names, forks),
        "nested": table_of(("component-based", "chain", "least"), nested),
    }


def _fork(generator: np.random.Generator) -> tuple[float, ...]:
    """A stem of one or two operators, and two branches of one."""
    stem = int(generator.integers(1, 3))
    costs = generator.integers(1, 9, stem + 2).astype(float).tolist()
    outputs = [1] * (stem - 1) + generator.integers(1, 4, 3).tolist()
    parents: list[int | str] = ["s", *range(stem - 1), stem - 1, stem - 1]
    instance = tree(parents, costs, TUPLES, outputs=outputs)
    made = outputs[stem - 1]
    before = sum(costs[:stem])
    rates = [each / cost for each, cost in zip(outputs[stem:], costs[stem:], strict=True)]
    first, second = (stem, stem + 1) if rates[0] >= rates[1] else (stem + 1, stem)
    with_stem = made * outputs[first] / (before + made * costs[first])
    ratio = min(rates) / with_stem
    stems = list(range(stem - 1, -1, -1))
    whole = instance.area(InOrder(first, second, *stems), "latency")
    partitioned = instance.area(InOrder(first, *stems, second), "latency")
    chosen = instance.area(make("component-based", max_tuples=1), "latency")
    return ratio, whole, partitioned, chosen, instance.least_area("latency")


def _nested(generator: np.random.Generator) -> tuple[float, float, float]:
    costs = generator.integers(1, 9, len(NESTED_PARENTS)).astype(float).tolist()
    instance = tree(NESTED_PARENTS, costs, FEW_TUPLES, generator.random(len(costs)).tolist())
    ours = make("component-based", objective="memory", max_tuples=1)
    chain = make("chain", max_tuples=1)
    return (
        instance.area(ours, "memory"),
        instance.area(chain, "memory"),
        instance.least_area("memory"),
    )


def plot(tables: Tables, figure: Figure) -> None:
    """Whole over partitioned by the slopes; nested forks above the least."""
    left, right = figure.subplots(1, 2)
    table = tables["forks"]
    names = list(table)
    left.scatter(table[names[0]], np.array(table["whole"]) / np.array(table["partitioned"]), s=8)
    left.axhline(1.0, color="grey", lw=0.8)
    left.axvline(1.0, color="grey", lw=0.8)
    left.set(xlabel=names[0], ylabel="area, whole over partitioned", xscale="log")
    nested = tables["nested"]
    for name in ("component-based", "chain"):
        right.plot(np.sort(np.array(nested[name]) / np.array(nested["least"])), label=name)
    right.set(xlabel="nested forks", ylabel="memory over the least")
    right.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """The rule of the slopes, the optimum for latency, and memory of nested forks."""
    ratio, whole, partitioned, chosen, least = (np.array(each) for each in tables["forks"].values())
    decided = np.abs(ratio - 1) > ROUNDING
    so = ((whole < partitioned) == (ratio > 1))[decided]
    alike = np.abs(whole - partitioned)[~decided]
    excess = chosen / least - 1
    return [
        Claim(
            "forks of any selectivities: whole is better where the second branch's rate is above "
            "that of the stem with the first",
            "on all, and the same where they are equal",
            f"on {int(so.sum())} of {len(so)}; {len(alike)} equal",
            bool(so.all() and (alike < ROUNDING).all()),
            Instead(
                "the better way is not above the other by more than a tuple's share",
                "a fork of few tuples ends with one that is served to its end",
                bool(so.mean() >= 0.9),
            ),
        ),
        Claim(
            "forks of any selectivities behind a stem: component-based above the least of all "
            "schedules",
            "0 %",
            f"at most {excess.max():+.2%}, {len(excess)} forks",
            bool(excess.max() <= ROUNDING),
        ),
        _nested_claim(tables),
    ]


def _nested_claim(tables: Tables) -> Claim:
    ours, chain, least = (np.array(each) for each in tables["nested"].values())
    mine, theirs = ours / least - 1, chain / least - 1
    return Claim(
        "nested memory forks: mean above the least of all schedules, against Chain's",
        "not above Chain's, which takes branches for independent",
        f"{mine.mean():+.1%} against {theirs.mean():+.1%}; worst {mine.max():+.1%} against "
        f"{theirs.max():+.1%}; {len(mine)} forks",
        bool(mine.mean() <= theirs.mean()),
        Instead(
            "above Chain's, and at most twice the least",
            "the procedure keeps all first operators together, of inner forks too, and takes what "
            "frees fastest then; where few tuples wait, one branch after the other frees sooner",
            bool(mine.max() <= 1.0),
        ),
    )


EXPERIMENT = experiment(__name__, "Section 4, forks of any kind", seeds=2)
