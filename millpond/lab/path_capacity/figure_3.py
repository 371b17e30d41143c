"""Path Capacity paper, Figure 3: throughput over time, and how bursty it is.

All strategies put out the same tuples, Path Capacity and Simplified Segment much more evenly than
Chain, which holds results back during bursts and puts them out behind them.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.path_capacity.by_setting import Measured, in_every_setting, in_most, rows
from millpond.lab.path_capacity.workload import NOTE, SETTINGS, STRATEGIES, Setting, record_of
from millpond.lab.words import MUCH, about
from millpond.simulator import Record

BIN_SECONDS = 5.0


def run(seeds: Sequence[int], settings: Mapping[str, Setting] = SETTINGS) -> Tables:
    """Outputs over time for the first setting and seed; peaks, totals, late ones by setting."""
    first = next(iter(settings.values()))
    longest = max(record_of(name, first, seeds[0]).finished_seconds for name in STRATEGIES)
    bins = int(np.ceil(longest / BIN_SECONDS))
    over_time: dict[str, list[float]] = {"seconds": (np.arange(bins) * BIN_SECONDS).tolist()}
    peaks, totals, late = (_table(settings) for _ in range(3))
    for name in STRATEGIES:
        counts = record_of(name, first, seeds[0]).throughput(BIN_SECONDS, longest)
        over_time[name] = (counts / BIN_SECONDS).tolist()
        runs = [[record_of(name, each, seed) for seed in seeds] for each in settings.values()]
        peaks[name] = [float(np.mean([_peak(record) for record in found])) for found in runs]
        totals[name] = [sum(record.outputs for record in found) for found in runs]
        late[name] = [
            sum(int((record.output_seconds > setting.seconds).sum()) for record in found)
            for setting, found in zip(settings.values(), runs, strict=True)
        ]
    return {
        "throughput over time": over_time,
        "peak to mean": peaks,
        "outputs": totals,
        "outputs behind the input": late,
    }


def _table(settings: Mapping[str, Setting]) -> dict[str, list[object]]:
    return {"setting": list(settings)}


def _peak(record: Record) -> float:
    counts = record.throughput(BIN_SECONDS)
    return float(counts.max() / counts.mean())


def plot(tables: Tables, figure: Figure) -> None:
    """Outputs a second."""
    table, ratios = tables["throughput over time"], tables["peak to mean"]
    for axes, name in zip(
        figure.subplots(len(STRATEGIES), 1, sharex=True, sharey=True), STRATEGIES, strict=True
    ):
        label = f"{name}, peak to mean {ratios[name][0]:.2f}"
        axes.plot(table["seconds"], table[name], label=label)
        axes.legend(loc="upper left")
        axes.set_ylabel("outputs / s")
    axes.set_xlabel("time (s)")


def check(tables: Tables) -> Sequence[Claim]:
    """The same outputs in the end; how evenly they come, and how many come late."""
    return [
        in_every_setting(
            "outputs in the end",
            '"it should output the same number of output tuples", equal',
            rows(tables["outputs"]),
            lambda row: row.path_capacity == row.simplified == row.chain > 0,
        ),
        *_bursty(rows(tables["peak to mean"])),
        _late(rows(tables["outputs behind the input"])),
    ]


OVERLOAD = (
    "outputs bunch where tuples were held half-way, which takes an overload: here it lasts 200 s "
    "and is a tenth, the paper's lasts longer and its height is not printed"
)


def _bursty(peaks: Sequence[Measured]) -> list[Claim]:
    text = "peak-to-mean ratio of the throughput"
    smoother = '"a much smoother output rate than the Chain strategy", half at most'
    return [
        in_every_setting(
            f"{text}: Path Capacity against Chain",
            smoother,
            peaks,
            lambda row: MUCH * row.path_capacity <= row.chain,
            Instead(
                "below Chain's in most settings",
                OVERLOAD,
                in_most(peaks, lambda row: row.path_capacity < row.chain),
            ),
        ),
        in_every_setting(
            f"{text}: Simplified Segment against Chain",
            smoother,
            peaks,
            lambda row: MUCH * row.simplified <= row.chain,
            Instead(
                "not above Chain's in most settings",
                OVERLOAD,
                in_most(peaks, lambda row: row.simplified <= row.chain),
            ),
        ),
        in_every_setting(
            f"{text}: Path Capacity",
            '"performs best among them in terms of the bursty output", the least',
            peaks,
            lambda row: row.path_capacity <= min(row.simplified, row.chain),
            Instead(
                "the least in most settings",
                OVERLOAD,
                in_most(peaks, lambda row: row.path_capacity <= min(row.simplified, row.chain)),
            ),
        ),
        in_every_setting(
            f"{text}: Chain",
            '"its highest output rate is almost 5 times its average output rate"',
            peaks,
            lambda row: about(row.chain, 5.0),
            Instead(
                "twice at least where it is burstiest",
                OVERLOAD,
                max(row.chain for row in peaks) >= MUCH,
            ),
        ),
    ]


def _late(late: Sequence[Measured]) -> Claim:
    overloaded = [row for row in late if max(row[1:]) > 0]
    return in_every_setting(
        "outputs that come when the input has ended, where any do",
        'during bursts "the Chain strategy has a lower throughput", after them "surprisingly '
        'high", more than the others',
        overloaded,
        lambda row: row.chain > max(row.path_capacity, row.simplified),
        Instead(
            "more than Path Capacity in most settings",
            "Simplified Segment holds tuples behind the leaves as Chain does, and without an "
            "overload little is left",
            in_most(overloaded, lambda row: row.chain > row.path_capacity),
        ),
    )


EXPERIMENT = experiment(
    __name__, "Figure 3, throughput", note=NOTE, long=True, together="path-capacity-figures"
)
