"""HMTS paper, Figure 8: OTS and direct interoperability with 1 to 200 queries alike.

The more queries run, the further direct interoperability is ahead of OTS.

Costs as for Figure 7, so the queue cost is the one fitted there.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.hmts.selections import SELECTIVITIES, THREAD_SWITCH_SECONDS, simulated
from millpond.lab.words import SAME
from millpond.scheduling.snapshot import FloatArray

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
    right.set(ylabel="times as long as di", xscale="log")
    for axes in (left, right):
        axes.set_xlabel("queries")


def check(tables: Tables) -> Sequence[Claim]:
    """The lead as a ratio is said to grow with every query; the gap in seconds does."""
    table = tables["seconds"]
    queries = table["queries"]
    di, ots, dearer = (np.array(table[name]) for name in COLUMNS)
    gap, ratio, dear = ots - di, ots / di, dearer / di
    return [
        Claim(
            "seconds of OTS over those of direct interoperability, by queries",
            f'"the more queries are running, the better is DI": {SAME:.0%} more with every step',
            _by_queries(queries, ratio),
            bool((ratio[1:] > (1 + SAME) * ratio[:-1]).all()),
            Instead(
                f"the gap in seconds grows with every step: {_by_queries(queries, gap)}",
                "a second query gives direct interoperability its second thread; beyond that both "
                "use both processors, and threads do not slow each other down in the model",
                bool((np.diff(gap) > 0).all()),
            ),
        ),
        Claim(
            "seconds of OTS over those of direct interoperability, 2 µs more a switch for a thread",
            f"{SAME:.0%} more with every step",
            _by_queries(queries, dear),
            bool((dear[1:] > (1 + SAME) * dear[:-1]).all()),
            Instead(
                "more from the hundredth query on than without",
                "switches are few beside elements: turns last 20 ms",
                bool((dear[-2:] > (1 + SAME) * ratio[-2:]).all()),
            ),
        ),
    ]


def _by_queries(queries: Sequence[float], values: Sequence[float] | FloatArray) -> str:
    return "; ".join(f"{n:g}: {each:.2f}" for n, each in zip(queries, values, strict=True))


EXPERIMENT = experiment(__name__, "Figure 8: scalability of OTS", seeds=2)
