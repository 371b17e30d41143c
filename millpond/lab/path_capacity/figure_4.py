"""Path Capacity paper, Figure 4: total queue memory over time.

Chain needs the least memory, Simplified Segment a little more; Path Capacity needs much more when
bursts come, and about as much while the load is low.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.path_capacity.course import BIN_SECONDS
from millpond.lab.path_capacity.figure_sentences import MEMORY
from millpond.lab.path_capacity.searched_setting import (
    NOTE,
    SEEDS,
    chosen_setting,
    courses_of,
)
from millpond.lab.path_capacity.workload import STRATEGIES, Setting, plot_over_time, record_of
from millpond.lab.sentences import judged, measured


def run(seeds: Sequence[int], setting: Setting | None = None) -> Tables:
    """Memory over time for the first seed, and what each sentence measures on each."""
    chosen = setting or chosen_setting()
    times = np.arange(0.0, chosen.seconds, BIN_SECONDS)
    over_time: dict[str, list[float]] = {"seconds": times.tolist()}
    for name in STRATEGIES:
        over_time[name] = record_of(name, chosen, seeds[0]).memory.at(times).tolist()
    return {
        "memory over time": over_time,
        "by seed": measured(MEMORY, (courses_of(chosen, seed) for seed in seeds)),
    }


def plot(tables: Tables, figure: Figure) -> None:
    """Tuples in all queues."""
    plot_over_time(tables["memory over time"], figure.subplots(), "total queue memory (tuples)")


def check(tables: Tables) -> Sequence[Claim]:
    """Every sentence, seed by seed."""
    return judged(MEMORY, tables["by seed"])


EXPERIMENT = experiment(
    __name__,
    "Figure 4, memory",
    note=NOTE,
    seeds=SEEDS,
    long=True,
    together="path-capacity-figures",
)
