"""HMTS paper, Figure 8: OTS and direct interoperability with 1 to 200 queries alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from millpond.lab.experiment import Claim, Experiment, Tables
from millpond.lab.hmts.selections import SELECTIVITIES, THREAD_SWITCH_SECONDS, simulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUERIES = (1, 2, 5, 10, 20, 50, 100, 200)
ELEMENTS = 100_000
SECONDS_FOR_A_THREAD = 2e-6
"""What each thread adds to the cost of a switch, where threads are taken to weigh on each other."""
COLUMNS = ("di", "ots", "ots, switches dearer with threads")


def run(seeds: Sequence[int], queries: Sequence[int] = QUERIES, elements: int = ELEMENTS) -> Tables:
    """Seconds by number of queries; OTS also with switches that cost more the more threads."""
    table: dict[str, list[float]] = {"queries": [float(each) for each in queries]}
    for name in ("di", "ots"):
        table[name] = [_mean(name, count, elements, seeds) for count in queries]
    threads = [len(SELECTIVITIES) * count for count in queries]
    table[COLUMNS[2]] = [
        _mean("ots", count, elements, seeds, SECONDS_FOR_A_THREAD * each)
        for count, each in zip(queries, threads, strict=True)
    ]
    return {"seconds": table}


def _mean(
    name: str, queries: int, elements: int, seeds: Sequence[int], more_seconds: float = 0.0
) -> float:
    switch = THREAD_SWITCH_SECONDS + more_seconds
    ends = [
        simulated(name, elements, queries, switch_seconds=switch, seed=seed).finished_seconds
        for seed in seeds
    ]
    return float(np.mean(ends))


def plot(tables: Tables, figure: Figure) -> None:
    """Seconds, and seconds in relation to direct interoperability."""
    left, right = figure.subplots(1, 2)
    table = tables["seconds"]
    for name in COLUMNS:
        left.plot(table["queries"], table[name], marker="o", label=name)
        relative = np.array(table[name]) / np.array(table["di"])
        right.plot(table["queries"], relative, marker="o", label=name)
    left.set_ylabel("seconds")
    left.legend()
    right.set_ylabel("times as long as di")
    right.set_xscale("log")
    for axes in (left, right):
        axes.set_xlabel("queries")


def check(tables: Tables) -> Sequence[Claim]:
    """The gap in seconds grows throughout, the ratio only until DI has a second thread."""
    table = tables["seconds"]
    queries = table["queries"]
    di, ots, dearer = (np.array(table[name]) for name in COLUMNS)
    gap, ratio, dear = ots - di, ots / di, dearer / di
    return [
        Claim(
            "the gap between OTS and direct interoperability grows with the number of queries",
            "more seconds with every step",
            "; ".join(f"{n:g}: {each:.2f}" for n, each in zip(queries, gap, strict=True)) + " s",
            bool((np.diff(gap) > 0).all()),
        ),
        Claim(
            "OTS takes more times as long with many queries than with one",
            "more",
            f"{ratio[0]:.2f} times with {queries[0]:g}, {ratio[-1]:.2f} with {queries[-1]:g}",
            bool(ratio[-1] > ratio[0]),
        ),
        Claim(
            "beyond two queries the ratio stays where it is, unless threads weigh on each other",
            "within 3 %; above with 2 µs more a switch for each thread",
            f"{ratio[1]:.2f} to {ratio[-1]:.2f}; {dear[-1]:.2f}",
            bool(abs(ratio[-1] / ratio[1] - 1) < 0.03 and dear[-1] > ratio[-1]),
        ),
    ]


EXPERIMENT = Experiment(
    name="hmts-many-queries",
    paper="HMTS",
    title="Figure 8: scalability of OTS",
    claim="The more queries run, the further direct interoperability is ahead of OTS.",
    run=run,
    plot=plot,
    check=check,
    seeds=2,
    note=(
        "Costs as for Figure 7. In this model the lead grows in seconds with every query; as a "
        "ratio it grows from 1.4 to 2.8 when a second query gives direct interoperability a second "
        "thread, and stays there: the paper's further growth needs threads that slow each other "
        "down, here tried with 2 µs more a switch for each thread."
    ),
)
