"""The picture of the plane: a spot for each strategy, curves for those that know a budget."""

from typing import NamedTuple

import numpy as np

from millpond.lab.experiment import Axes, Figure, Tables


class Spot(NamedTuple):
    """Where a strategy is on the plane, on average."""

    label: str
    strategy: str
    budget: float
    goal: float
    peak: float
    latency: float


class Named(NamedTuple):
    """The names at one place; below it where another is close above."""

    names: str
    peak: float
    latency: float
    below: bool


def spots(tables: Tables) -> list[Spot]:
    """Every strategy's mean over the seeds."""
    runs = tables["runs"]
    columns = ("label", "strategy", "budget", "goal", "peak", "latency")
    gathered: dict[tuple[str, str, float, float], list[tuple[float, float]]] = {}
    for *who, peak, latency in zip(*(runs[name] for name in columns), strict=True):
        label, strategy, budget, goal = who
        gathered.setdefault((label, strategy, budget, goal), []).append((peak, latency))
    return [Spot(*who, *np.mean(pairs, axis=0).tolist()) for who, pairs in gathered.items()]


def plot(tables: Tables, figure: Figure) -> None:
    """The plane, with the curves of the two strategies that know a budget."""
    figure.set_size_inches(9, 6.5)
    axes = figure.subplots()
    found = spots(tables)
    for names, peak, latency, below in _gathered(found):
        axes.plot(peak, latency, "o", color="0.35", ms=4)
        offset = (4, -11 if below else 4)
        axes.annotate(names, (peak, latency), offset, textcoords="offset points", size=8)
    for name, color in (("threshold", "tab:orange"), ("auto", "tab:blue")):
        _curve(axes, [each for each in found if each.label == f"{name} {each.budget:g}"], color)
    _curve(axes, [each for each in found if each.goal], "tab:green")
    axes.margins(x=0.12)
    axes.set_xlim(0.8, None)
    axes.set_ylim(0.8, None)
    axes.axvspan(0.8, 1, color="0.9")
    axes.axhspan(0.8, 1, color="0.9")
    axes.annotate("no schedule reaches the grey", (1.2, 0.85), size=9, color="0.4")
    axes.set_xlabel("peak memory over the least possible")
    axes.set_ylabel("mean latency over the least possible")
    axes.legend(loc="upper center")


def _gathered(found: list[Spot]) -> list[Named]:
    """The strategies without a budget; those on one spot share a label, close ones evade it."""
    named: list[Named] = []
    for each in sorted(found, key=lambda spot: -spot.latency):
        if each.budget or each.goal:
            continue
        near = [one for one in named if abs(one.peak - each.peak) < 0.8 and _close(one, each, 0.06)]
        same = [one for one in near if abs(one.peak - each.peak) < 0.02 and _close(one, each, 0.01)]
        if same:
            place = named.index(same[0])
            named[place] = same[0]._replace(names=f"{same[0].names}, {each.label}")
        else:
            below = bool(near) and not near[-1].below
            named.append(Named(each.label, each.peak, each.latency, below))
    return named


def _close(one: Named, other: Spot, share: float) -> bool:
    return abs(one.latency / other.latency - 1) < share


def _curve(axes: Axes, mine: list[Spot], color: str) -> None:
    of = "latency goal" if mine[0].goal else "memory budget"
    in_order = sorted(mine, key=lambda spot: spot.peak)
    peaks, latencies = [each.peak for each in in_order], [each.latency for each in in_order]
    axes.plot(peaks, latencies, "o-", color=color, label=f"{mine[0].strategy}, by {of}")
    for each in in_order:
        below = each.strategy == "auto"
        place, side = ((-5, -10), "right") if below else ((5, 5), "left")
        text, spot = f"{each.budget or each.goal:g}", (each.peak, each.latency)
        axes.annotate(text, spot, place, textcoords="offset points", size=8, color=color, ha=side)
