"""Path Capacity paper, Figure 2: tuple latency over time.

Latency is much better under Path Capacity than under Simplified Segment and Chain, which is worst;
all rise with the load, and the differences become much sharper; in the calm first phase all are
reasonable, but for a few spikes of Chain's.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.path_capacity.course import BIN_SECONDS
from millpond.lab.path_capacity.figure_sentences import LATENCY
from millpond.lab.path_capacity.searched_setting import (
    NOTE,
    SEEDS,
    chosen_setting,
    courses_of,
)
from millpond.lab.path_capacity.workload import STRATEGIES, Setting, plot_over_time, record_of
from millpond.lab.sentences import judged, measured


def run(seeds: Sequence[int], setting: Setting | None = None) -> Tables:
    """Latency over time for the first seed, and what each sentence measures on each."""
    chosen = setting or chosen_setting()
    bins = int(chosen.seconds / BIN_SECONDS)
    over_time: dict[str, list[float]] = {"seconds": (np.arange(bins) * BIN_SECONDS).tolist()}
    for name in STRATEGIES:
        latency = record_of(name, chosen, seeds[0]).latency_over_time(BIN_SECONDS, chosen.seconds)
        over_time[name] = latency[:bins].tolist()
    return {
        "latency over time": over_time,
        "by seed": measured(LATENCY, (courses_of(chosen, seed) for seed in seeds)),
    }


def plot(tables: Tables, figure: Figure) -> None:
    """Mean latency of the outputs of each second."""
    axes = figure.subplots()
    plot_over_time(tables["latency over time"], axes, f"mean latency in {BIN_SECONDS:g} s (s)")
    axes.set_yscale("log")


def check(tables: Tables) -> Sequence[Claim]:
    """Every sentence, seed by seed."""
    return judged(LATENCY, tables["by seed"])


EXPERIMENT = experiment(
    __name__,
    "Figure 2, tuple latency",
    note=NOTE,
    seeds=SEEDS,
    long=True,
    together="path-capacity-figures",
)
