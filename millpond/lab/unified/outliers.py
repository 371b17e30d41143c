"""What Figures 12 and 13 of the Unified paper share: the strategies, the levels, the tables."""

from collections.abc import Callable, Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Table
from millpond.lab.words import CLEARLY, SAME
from millpond.scheduling.registry import make
from millpond.scheduling.snapshot import FloatArray
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Normal, Outliers

TUPLES = 300
SELECTIVITY = 0.95
PERCENTS = (0, 2, 4, 6, 8, 10, 12, 15, 20)
MILLISECOND = 1e-3
MSS, COMPONENTS, GREEDY = "MSS", "component-based", "per-tuple greedy"
ROUND_ROBINS = {f"round-robin {quantum}": quantum for quantum in (30, 60, 90)}
NAMES = (MSS, COMPONENTS, GREEDY, *ROUND_ROBINS)


def strategy(name: str, objective: str) -> Strategy:
    """The strategy of that name in the figures; for memory on a path component-based is Chain."""
    if name == MSS:
        return make("maximum-slope-segment", objective=objective)
    if name == GREEDY:
        return make("per-tuple-greedy", objective=objective)
    if name == COMPONENTS:
        if objective == "memory":
            return make("chain", max_tuples=1)
        return make("component-based", max_tuples=1)
    return make("round-robin", max_tuples=ROUND_ROBINS[name])


def costs(outlier_milliseconds: float, share: float) -> tuple[Outliers, Normal]:
    """Of the cheap operator, N(1, 0.2²) ms but for its outliers, and the dear one, N(5, 1²) ms."""
    usual = Normal(1.0 * MILLISECOND, 0.2 * MILLISECOND)
    outlier = Normal(outlier_milliseconds * MILLISECOND, 1.0 * MILLISECOND)
    dear = Normal(5.0 * MILLISECOND, 1.0 * MILLISECOND)
    return Outliers(usual, outlier, share), dear


def by_level(
    measure: Callable[[str, float, int], float],
    seeds: Sequence[int],
    percents: Sequence[int] = PERCENTS,
) -> dict[str, list[float]]:
    """One row for each seed and percentage of outliers, one column for each strategy."""
    rows = [(seed, percent) for percent in percents for seed in seeds]
    table: dict[str, list[float]] = {
        "seed": [float(seed) for seed, _ in rows],
        "percent": [float(percent) for _, percent in rows],
    }
    for name in NAMES:
        table[name] = [measure(name, percent / 100, seed) for seed, percent in rows]
    return table


def excess(table: Table, name: str) -> FloatArray:
    """How far above MSS a strategy is, row by row."""
    found: FloatArray = np.array(table[name]) / np.array(table[MSS]) - 1
    return found


def by_percent(table: Table, values: FloatArray) -> FloatArray:
    """The mean over the seeds at each percentage."""
    percent = np.array(table["percent"])
    return np.array([values[percent == level].mean() for level in np.unique(percent)])


def draw(table: Table, figure: Figure, label: str) -> None:
    """The figure: one curve a strategy over the percentage of outliers."""
    axes = figure.subplots()
    levels = np.unique(np.array(table["percent"]))
    styles = ("ko-", "C0s--", "C3^-", "C2:", "C4:", "C5:")
    for name, style in zip(NAMES, styles, strict=True):
        axes.plot(levels, by_percent(table, np.array(table[name])), style, label=name)
    axes.set(xlabel="outlier tuples (percent)", ylabel=label)
    axes.set_ylim(bottom=0)
    axes.legend()


def claims(table: Table, what: str, most: float, words: str) -> list[Claim]:
    """What the text says of both figures; how near component-based is to MSS differs."""
    near = np.abs(excess(table, COMPONENTS))
    few = float(near[np.array(table["percent"]) < 6].max(initial=0.0))
    greedy = by_percent(table, excess(table, GREEDY))
    grown = by_percent(table, np.array(table[MSS]))
    hardest = max(_risen(table, name) for name in NAMES if name not in (MSS, GREEDY))
    return [
        Claim(
            f"{what}: component-based off MSS, at every level and seed",
            words,
            f"at most {near.max():.2%}",
            bool(near.max() <= most),
        ),
        Claim(
            f"{what}: component-based off MSS, below 6 % outliers",
            f'"almost identical performance": at most {SAME:.0%}',
            f"at most {few:.2%}",
            few <= SAME,
        ),
        Claim(
            f"{what}: rise of per-tuple greedy's excess over MSS with the outliers",
            '"affected the most by outlier tuples": more than any other\'s',
            f"{_risen(table, GREEDY):+.0%}, next {hardest:+.0%}; at 0 % {greedy[0]:+.1%}",
            _risen(table, GREEDY) > hardest,
        ),
        _round_robin(table, what),
        Claim(
            f"{what}: rise with the outliers",
            '"generally increases with the outlier increasing": at every level',
            f"{grown[0]:.4g} to {grown[-1]:.4g}",
            bool((np.diff(grown) > 0).all()),
        ),
    ]


def _round_robin(table: Table, what: str) -> Claim:
    means = {name: float(excess(table, name).mean()) for name in ROUND_ROBINS}
    least = min(float(excess(table, name).min()) for name in ROUND_ROBINS)
    most = float(excess(table, COMPONENTS).max())
    return Claim(
        f"{what}: round-robin above MSS, mean of levels and seeds",
        f'"generally increases output latency significantly": at least {CLEARLY - 1:.0%}',
        ", ".join(f"{name} {mean:+.0%}" for name, mean in means.items()),
        min(means.values()) >= CLEARLY - 1,
        Instead(
            f"above component-based at every level, seed and quantum: at least {least:+.1%}, "
            f"component-based at most {most:+.1%}",
            "large quanta alternate little: with 90 tuples of 300 a visit, the first serves almost "
            "a third of the cheap operator's before any of the dear one's",
            least > most,
        ),
    )


def _risen(table: Table, name: str) -> float:
    means = by_percent(table, excess(table, name))
    return float(means.max() - means[0])
