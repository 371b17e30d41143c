"""The workloads of the Chain paper's figures, described by their figures.

Traffic is widely considered to be self-similar and to exhibit long-range dependence; the synthetic
data set has flows that begin by a Poisson process and send for heavy-tailed lengths of time.

The real data set, an hour of wide area traffic of DEC, cannot be had: "trace" stands for it, a
superposition of Pareto ON/OFF flows. Both are told in bins of 0.1 s, beside a Poisson process of
the same rate: Hurst parameter, peak to mean, variance to mean, and autocorrelation after a second.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.chain.bursts import SEEDS, process
from millpond.lab.chain.sentences import WORKLOADS
from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.tables import picked, table_of
from millpond.lab.words import MUCH, on_most_seeds, told_by_seed
from millpond.scheduling.snapshot import FloatArray
from millpond.workloads import Poisson, counts_per_bin, hurst_estimate

SECONDS, RATE = 600.0, 100.0
BIN_SECONDS = 0.1
LAG_BINS = 10
PLAIN = "poisson"
COLUMNS = ("hurst", "peak to mean", "variance to mean", "autocorrelation")
DISPERSION = COLUMNS[2]
HALF = 0.5
"""The Hurst parameter of what has no long-range dependence."""
CLEARLY_ABOVE = 0.1


def run(seeds: Sequence[int], seconds: float = SECONDS) -> Tables:
    """The figures of each workload, seed by seed, and the counts of the first."""
    rows = []
    counts: dict[str, list[float]] = {}
    for name in (*WORKLOADS, PLAIN):
        made = Poisson(RATE) if name == PLAIN else process(name, RATE)
        for seed in seeds:
            found = counts_per_bin(made.until(seconds, seed), BIN_SECONDS)
            rows.append((name, seed, *_figures(found)))
            counts.setdefault(name, found.tolist())
    return {"figures": table_of(("workload", "seed", *COLUMNS), rows), "counts": counts}


def _figures(counts: FloatArray) -> tuple[float, ...]:
    mean = counts.mean()
    off = counts - mean
    lagged = float((off[LAG_BINS:] * off[:-LAG_BINS]).mean() / off.var())
    return hurst_estimate(counts), float(counts.max() / mean), float(off.var() / mean), lagged


def plot(tables: Tables, figure: Figure) -> None:
    """Tuples in each bin."""
    panels = figure.subplots(len(tables["counts"]), 1, sharex=True)
    for axes, (name, counts) in zip(panels, tables["counts"].items(), strict=True):
        axes.plot(np.arange(len(counts)) * BIN_SECONDS, counts, lw=0.5)
        axes.set_ylabel(name)
    panels[-1].set_xlabel("seconds")


def check(tables: Tables) -> Sequence[Claim]:
    """Long-range dependent, bursty, and not so where the process is Poisson."""
    plain = _values(tables, PLAIN, DISPERSION)
    claims = []
    for name in WORKLOADS:
        hurst, correlation = (_values(tables, name, column) for column in ("hurst", COLUMNS[3]))
        ratios = [
            one / other for one, other in zip(_values(tables, name, DISPERSION), plain, strict=True)
        ]
        claims += [
            _claim(
                f"{name}: Hurst parameter",
                f'"self-similar [...] long-range dependence": at least {HALF + CLEARLY_ABOVE:g}',
                hurst,
                [each >= HALF + CLEARLY_ABOVE for each in hurst],
            ),
            _claim(
                f"{name}: autocorrelation of the counts after a second",
                f"long-range dependence: above {CLEARLY_ABOVE:g}",
                correlation,
                [each > CLEARLY_ABOVE for each in correlation],
            ),
            _claim(
                f"{name}: {DISPERSION} in bins of {BIN_SECONDS:g} s over that of a Poisson process",
                f'"bursty traffic": at least {MUCH:g}',
                ratios,
                [each >= MUCH for each in ratios],
            ),
        ]
    return claims


def _values(tables: Tables, name: str, column: str) -> list[float]:
    return list(map(float, picked(tables["figures"], column, {"workload": name})))


def _claim(text: str, expected: str, values: Sequence[float], so: Sequence[bool]) -> Claim:
    return Claim(text, expected, told_by_seed(values, so), on_most_seeds(so))


EXPERIMENT = experiment(__name__, "The workloads by their figures", seeds=SEEDS)
