"""Path Capacity paper, Figure 4: total queue memory over time.

Chain needs the least memory, Simplified Segment a little more; Path Capacity needs much more when
bursts come, and about as much while the load is low.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.path_capacity import by_setting, workload
from millpond.lab.words import CLEARLY, FEW, MUCH, SAME, nearly

STEP_SECONDS = 1.0
FIRST, LAST, WHOLE = "mean in the first phase", "mean in the last phase", "mean"


def run(
    seeds: Sequence[int], settings: Mapping[str, workload.Setting] = workload.SETTINGS
) -> Tables:
    """Memory over time for the first setting and seed; means and peaks by setting."""
    first = next(iter(settings.values()))
    times = np.arange(0.0, first.seconds, STEP_SECONDS)
    over_time: dict[str, list[float]] = {"seconds": times.tolist()}
    tables: dict[str, dict[str, list[object]]] = {
        name: {"setting": list(settings)} for name in (WHOLE, FIRST, LAST, "peak")
    }
    for strategy in workload.STRATEGIES:
        over_time[strategy] = (
            workload.record_of(strategy, first, seeds[0]).memory.at(times).tolist()
        )
        found = [_means(strategy, setting, seeds) for setting in settings.values()]
        for name, column in zip(tables, zip(*found, strict=True), strict=True):
            tables[name][strategy] = list(column)
    return {"memory over time": over_time, **tables}


def _means(strategy: str, setting: workload.Setting, seeds: Sequence[int]) -> tuple[float, ...]:
    """The mean memory of all, the first and the last phase, and the mean of the peaks."""
    records = [workload.record_of(strategy, setting, seed) for seed in seeds]
    times = np.arange(0.0, setting.seconds, STEP_SECONDS)
    sizes = np.mean([record.memory.at(times) for record in records], axis=0)
    phases = np.array_split(sizes, len(setting.loads))
    peak = np.mean([record.peak_bytes for record in records])
    return tuple(float(each) for each in (sizes.mean(), phases[0].mean(), phases[-1].mean(), peak))


def plot(tables: Tables, figure: Figure) -> None:
    """Tuples in all queues, and the peaks of every setting."""
    above, below = figure.subplots(2, 1)
    workload.plot_over_time(tables["memory over time"], above, "total queue memory (tuples)")
    by_setting.plot_by_setting(tables["peak"], below, "peak of the queue memory (tuples)")


def check(tables: Tables) -> Sequence[Claim]:
    """Chain needs the least, Simplified Segment a little more, Path Capacity much more."""
    whole, last, peaks = (by_setting.rows(tables[name]) for name in (WHOLE, LAST, "peak"))
    return [
        by_setting.in_every_setting(
            "mean queue memory, tuples",
            '"the Chain strategy performs better than the other two", the least',
            whole,
            lambda row: row.chain < min(row.path_capacity, row.simplified),
            Instead(
                "within 1 % of the least",
                "where Simplified Segment cuts paths where Chain does, both need the same but for "
                "chance",
                all(row.chain <= (1 + SAME) * min(row[1:]) for row in whole),
            ),
        ),
        by_setting.in_every_setting(
            "mean queue memory in the last phase, tuples",
            '"the path capacity strategy requires much more memory", twice the others\' at least',
            last,
            lambda row: row.path_capacity >= MUCH * max(row.simplified, row.chain),
            Instead(
                "the most in every setting, twice the others' in most",
                "where leaves are less selective or no faster than the others, serving them first "
                "frees less",
                all(row.path_capacity > max(row.simplified, row.chain) for row in last)
                and by_setting.in_most(
                    last, lambda row: row.path_capacity >= MUCH * max(row.simplified, row.chain)
                ),
            ),
        ),
        by_setting.in_every_setting(
            "peak of the queue memory, tuples",
            '"simplified segment [...] requires a little bit more memory than [...] Chain"',
            peaks,
            lambda row: row.chain < row.simplified < CLEARLY * row.chain,
            Instead(
                "about as much, a fifth more or less, in most settings",
                "only where second operators are selective too does Chain serve more than the "
                "leaves in a burst; elsewhere peaks, single instants, differ by chance",
                by_setting.in_most(peaks, lambda row: nearly(row.simplified, row.chain)),
            ),
        ),
        _similar_below_full_load(by_setting.rows(tables[FIRST]), last),
    ]


def _similar_below_full_load(
    first: Sequence[by_setting.Measured], last: Sequence[by_setting.Measured]
) -> Claim:
    return by_setting.in_every_setting(
        "mean queue memory in the first phase, tuples",
        'Path Capacity and Chain "under the non-overload conditions [...] similar", by a fifth',
        first,
        lambda row: nearly(row.path_capacity, row.chain),
        Instead(
            "more, but a tenth at most of what it needs in the last phase, in most settings",
            "even at half load a burst outruns the processor for a while",
            all(row.path_capacity > row.chain for row in first)
            and 2
            * sum(
                one.path_capacity <= FEW * other.path_capacity
                for one, other in zip(first, last, strict=True)
            )
            > len(first),
        ),
    )


EXPERIMENT = experiment(
    __name__, "Figure 4, memory", note=workload.NOTE, long=True, together="path-capacity-figures"
)
