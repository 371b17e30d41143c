"""Path Capacity paper, section 3.4: β, the load, and the output rate while memory is saved.

β prevents a system from frequently oscillating between the two modes; a smaller one causes a longer
latency. With the load the time in saving mode and the latency increase. In saving mode the output
rate is smooth.

The setting drawn, with phases of 40 s and memory for 0.6 of what Path Capacity needs; for β it is
0.1, since β decides only where the mean is near the limit. The load is varied by that
of all phases together. Smoothness is the peak-to-mean ratio of outputs in bins of five seconds, of
Threshold against Chain.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.path_capacity.workload import (
    DRAWN,
    DRAWN_NOTE,
    UNIT_SECONDS,
    Setting,
    run_phases,
    shortened,
)
from millpond.lab.tables import picked, table_of
from millpond.lab.words import ABOUT, CLEARLY, on_most_seeds, told_by_seed
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import Observation
from millpond.scheduling.strategies.threshold import Threshold
from millpond.simulator import Record

SETTING = shortened(DRAWN, 40.0)
SHARE, TIGHT_SHARE = 0.6, 0.1
"""Of Path Capacity's peak; the tight one is near the mean, so that β decides."""
BETAS = (0.55, 0.9, 0.99)
PAPERS = 0.9
LOADS = (0.8, 1.0, 1.2)
BIN_SECONDS = 5.0
COLUMNS = ("changes", "saving", "latency", "peak to mean")


class Watched(Threshold):
    """Threshold that notes how often it changes its mode and how long it saves."""

    changes = 0
    saving_seconds = 0.0
    _seen_seconds = 0.0

    def observe(self, observation: Observation) -> None:
        """Note what it was, and whether it is another now."""
        before = self.is_saving
        self.saving_seconds += before * (observation.now_seconds - self._seen_seconds)
        self._seen_seconds = observation.now_seconds
        super().observe(observation)
        self.changes += before != self.is_saving


def run(seeds: Sequence[int], setting: Setting = SETTING) -> Tables:
    """By β and by load, seed by seed; Chain's and Path Capacity's outputs beside."""
    rows: list[tuple[object, ...]] = []
    others: list[tuple[object, ...]] = []
    for seed in seeds:
        normal = run_phases(make("path-capacity", slice_seconds=UNIT_SECONDS), setting, seed)
        chain = run_phases(make("chain", slice_seconds=UNIT_SECONDS), setting, seed)
        others.append((seed, _peak(normal), _peak(chain)))
        limit = SHARE * normal.peak_bytes
        tight = TIGHT_SHARE * normal.peak_bytes
        rows += [("beta", beta, seed, *_watched(tight, beta, setting, seed)) for beta in BETAS]
        for load in LOADS:
            loads = tuple(load * each for each in setting.loads)
            found = _watched(limit, PAPERS, replace(setting, loads=loads), seed)
            rows.append(("load", load, seed, *found))
    return {
        "threshold": table_of(("varied", "value", "seed", *COLUMNS), rows),
        "others": table_of(("seed", "path-capacity", "chain"), others),
    }


def _watched(
    limit: float, beta: float, setting: Setting, seed: int
) -> tuple[int, float, float, float]:
    strategy = Watched(limit, beta, slice_seconds=UNIT_SECONDS)
    record = run_phases(strategy, setting, seed)
    share = strategy.saving_seconds / record.finished_seconds
    return strategy.changes, share, record.mean_latency_seconds, _peak(record)


def _peak(record: Record) -> float:
    counts = record.throughput(BIN_SECONDS)
    return float(counts.max() / counts.mean())


def plot(tables: Tables, figure: Figure) -> None:
    """Changes, time in saving mode and latency, over β and over the load."""
    axes = figure.subplots(2, 3)
    for row, (varied, values) in enumerate((("beta", BETAS), ("load", LOADS))):
        for column, measure in enumerate(COLUMNS[:3]):
            for value in values:
                found = _values(tables, varied, value, measure)
                axes[row, column].scatter([value] * len(found), found, s=8)
            axes[row, column].set(xlabel=varied, ylabel=measure)
    figure.tight_layout()


def _values(tables: Tables, varied: str, value: float, measure: str) -> list[float]:
    return picked(tables["threshold"], measure, {"varied": varied, "value": value})


def check(tables: Tables) -> Sequence[Claim]:
    """Every sentence, seed by seed."""
    return [
        _compared(
            tables,
            "changes of mode",
            '"prevents a system from frequently oscillating"',
            ("beta", PAPERS, "changes"),
            ("beta", BETAS[-1], "changes"),
            "the lower threshold is the mean where that is below β of the upper one, so that β "
            "seldom decides",
        ),
        _compared(
            tables,
            "mean latency",
            '"A smaller value of β causes a longer tuple latency"',
            ("beta", PAPERS, "latency"),
            ("beta", BETAS[0], "latency"),
            "a smaller β saves earlier, and there is less to save then",
        ),
        *(
            _compared(
                tables,
                text,
                f'"As the mean load of the system increases [...] {words}"',
                ("load", low, measure),
                ("load", high, measure),
                "by chance of the draw",
            )
            for low, high in pairwise(LOADS)
            for measure, text, words in (
                ("saving", "share of the time in saving mode", "increases"),
                ("latency", "mean latency", "becomes worse"),
            )
        ),
        _smooth(tables),
    ]


Place = tuple[str, float, str]


def _compared(tables: Tables, text: str, words: str, low: Place, high: Place, why: str) -> Claim:
    """What is measured at the one place is not above what is at the other."""
    pairs = list(zip(_values(tables, *low), _values(tables, *high), strict=True))
    so = [one < other for one, other in pairs]
    near = [one <= (1 + ABOUT) * other for one, other in pairs]
    ratios = [(other + 1e-9) / (one + 1e-9) for one, other in pairs]
    varied = "β" if low[0] == "beta" else "the load"
    return Claim(
        f"{text} for {varied} {high[1]:g} over that for {low[1]:g}",
        f"{words}: above 1",
        told_by_seed(ratios, so),
        on_most_seeds(so),
        Instead(
            f"within a tenth or above, on {sum(near)} of {len(near)} seeds", why, sum(near) > 0
        ),
    )


def _smooth(tables: Tables) -> Claim:
    mine = _values(tables, "load", 1.0, "peak to mean")
    chain = tables["others"]["chain"]
    ratios = [one / other for one, other in zip(mine, chain, strict=True)]
    so = [ratio <= 1 for ratio in ratios]
    return Claim(
        "peak-to-mean ratio of Threshold's output rate over Chain's",
        '"near optimal memory requirement and smooth output rate during its memory saving mode": '
        "at most 1",
        told_by_seed(ratios, so),
        on_most_seeds(so),
        Instead(
            "not clearly above Chain's",
            "in saving mode it serves leaves first, as Chain does, and puts out the rest behind",
            on_most_seeds([ratio <= CLEARLY for ratio in ratios]),
        ),
    )


EXPERIMENT = experiment(
    __name__, "Section 3.4, the factors of Threshold", note=DRAWN_NOTE, seeds=10, long=True
)
