"""Path Capacity paper, Figure 2: tuple latency over time.

Latency is much better under Path Capacity than under Simplified Segment and Chain, which is worst;
all rise with the load, and the differences become much sharper.

Curves are means over 5 s, for the rates are below the paper's.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.path_capacity.by_setting import (
    Measured,
    in_every_setting,
    in_most,
    plot_by_setting,
    rows,
)
from millpond.lab.path_capacity.workload import (
    NOTE,
    SETTINGS,
    STRATEGIES,
    Setting,
    in_phase,
    plot_over_time,
    record_of,
)
from millpond.lab.words import MUCH

BIN_SECONDS = 5.0
NEXT_TO_NOTHING = (
    "where selectivities reach down to 0, paths that put out next to nothing go first by their "
    "capacity, though only outputs have a latency (see Theorem 1)"
)


def run(seeds: Sequence[int], settings: Mapping[str, Setting] = SETTINGS) -> Tables:
    """Latency over time for the first setting and seed, and means by setting and phase."""
    first = next(iter(settings.values()))
    bins = int(first.seconds / BIN_SECONDS)
    over_time: dict[str, list[float]] = {"seconds": (np.arange(bins) * BIN_SECONDS).tolist()}
    means: dict[str, list[object]] = {"setting": list(settings)}
    phases: dict[str, list[object]] = {"setting": [], "load": []}
    for name, setting in settings.items():
        phases["setting"] += [name] * len(setting.loads)
        phases["load"] += setting.loads
    for strategy in STRATEGIES:
        latency = record_of(strategy, first, seeds[0]).latency_over_time(BIN_SECONDS)
        over_time[strategy] = latency[:bins].tolist()
        means[strategy] = [_mean(strategy, setting, seeds) for setting in settings.values()]
        phases[strategy] = [
            _mean(strategy, setting, seeds, phase)
            for setting in settings.values()
            for phase in range(len(setting.loads))
        ]
    return {"latency over time": over_time, "mean latency": means, "by phase": phases}


def _mean(strategy: str, setting: Setting, seeds: Sequence[int], phase: int | None = None) -> float:
    """The mean over the seeds of the mean latency, of one phase or, with what is left, of all."""
    records = [record_of(strategy, setting, seed) for seed in seeds]
    if phase is None:
        return float(np.mean([record.mean_latency_seconds for record in records]))
    return float(np.mean([in_phase(record, setting, phase).mean() for record in records]))


def plot(tables: Tables, figure: Figure) -> None:
    """Mean latency of the outputs in each bin, and of the whole run in every setting."""
    above, below = figure.subplots(2, 1)
    label = f"mean latency in {BIN_SECONDS:g} s (s)"
    plot_over_time(tables["latency over time"], above, label)
    above.set_yscale("log")
    plot_by_setting(tables["mean latency"], below, "mean latency (s)")


def check(tables: Tables) -> Sequence[Claim]:
    """Path Capacity is best, Chain worst, and the gap widens with the load."""
    means = rows(tables["mean latency"])
    text = "mean latency, s"
    return [
        in_every_setting(
            text,
            '"much better under the path capacity strategy", half at most',
            means,
            lambda row: MUCH * row.path_capacity <= min(row.simplified, row.chain),
            Instead(
                "the least of the three in most settings",
                f"how far apart depends on costs and loads, not printed; {NEXT_TO_NOTHING}",
                in_most(means, lambda row: row.path_capacity < min(row.simplified, row.chain)),
            ),
        ),
        in_every_setting(
            f"{text}, the worst",
            '"the Chain strategy performs worst among them"',
            means,
            lambda row: row.chain > max(row.path_capacity, row.simplified),
            Instead(
                "in most settings",
                NEXT_TO_NOTHING,
                in_most(means, lambda row: row.chain > max(row.path_capacity, row.simplified)),
            ),
        ),
        *_with_the_load(tables),
    ]


def _with_the_load(tables: Tables) -> list[Claim]:
    phases = rows(tables["by phase"])
    by_setting: dict[str, list[Measured]] = {}
    for row in phases:
        by_setting.setdefault(row.setting, []).append(row)
    rises = [
        Measured(name, *(_rise(found, place) for place in (1, 2, 3)))
        for name, found in by_setting.items()
    ]
    gaps = {name: (_gap(found[0]), _gap(found[-1])) for name, found in by_setting.items()}
    told = "; ".join(f"{name} {first:.2f} to {last:.2f}" for name, (first, last) in gaps.items())
    return [
        in_every_setting(
            "smallest ratio of the mean latencies of two phases that follow each other",
            '"the overall tuple latency increases as the system load increases", above 1',
            rises,
            lambda row: min(row[1:]) > 1,
        ),
        Claim(
            "largest difference of the mean latencies, from the first to the last phase",
            '"the difference among them becomes much sharper", at least twice, in every setting',
            f"{told} s",
            all(last >= MUCH * first for first, last in gaps.values()),
        ),
    ]


def _rise(found: Sequence[Measured], place: int) -> float:
    values = np.array([row[place] for row in found], dtype=np.float64)
    return float((values[1:] / values[:-1]).min())


def _gap(row: Measured) -> float:
    return max(row[1:]) - min(row[1:])


EXPERIMENT = experiment(
    __name__, "Figure 2, tuple latency", note=NOTE, long=True, together="path-capacity-figures"
)
