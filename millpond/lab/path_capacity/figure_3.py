"""Path Capacity paper, Figure 3: throughput over time, and how bursty it is.

All strategies put out the same tuples, Path Capacity and Simplified Segment much more evenly than
Chain, which holds results back during bursts and puts them out behind them; while the load is
moderate they do not differ much.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.path_capacity.course import BIN_SECONDS
from millpond.lab.path_capacity.figure_sentences import THROUGHPUT
from millpond.lab.path_capacity.searched_setting import (
    NOTE,
    SEEDS,
    chosen_setting,
    courses_of,
)
from millpond.lab.path_capacity.workload import STRATEGIES, Setting, record_of
from millpond.lab.sentences import judged, measured


def run(seeds: Sequence[int], setting: Setting | None = None) -> Tables:
    """Outputs over time for the first seed, and what each sentence measures on each."""
    chosen = setting or chosen_setting()
    longest = max(record_of(name, chosen, seeds[0]).finished_seconds for name in STRATEGIES)
    bins = int(np.ceil(longest / BIN_SECONDS))
    over_time: dict[str, list[float]] = {"seconds": (np.arange(bins) * BIN_SECONDS).tolist()}
    for name in STRATEGIES:
        counts = record_of(name, chosen, seeds[0]).throughput(BIN_SECONDS, longest)
        over_time[name] = (counts[:bins] / BIN_SECONDS).tolist()
    return {
        "throughput over time": over_time,
        "by seed": measured(THROUGHPUT, (courses_of(chosen, seed) for seed in seeds)),
    }


def plot(tables: Tables, figure: Figure) -> None:
    """Outputs a second."""
    table = tables["throughput over time"]
    panels = figure.subplots(len(STRATEGIES), 1, sharex=True, sharey=True)
    for axes, name in zip(panels, STRATEGIES, strict=True):
        axes.plot(table["seconds"], table[name], label=name, lw=1)
        axes.legend(loc="upper left")
        axes.set_ylabel("outputs / s")
    panels[-1].set_xlabel("time (s)")


def check(tables: Tables) -> Sequence[Claim]:
    """Every sentence, seed by seed."""
    return judged(THROUGHPUT, tables["by seed"])


EXPERIMENT = experiment(
    __name__,
    "Figure 3, throughput",
    note=NOTE,
    seeds=SEEDS,
    long=True,
    together="path-capacity-figures",
)
