"""Every strategy on one plane: peak memory against mean latency, with the lower bounds of both."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from millpond.lab.experiment import Claim, Experiment, Tables
from millpond.lab.plane_bounds import latency_floor, memory_floor
from millpond.scheduling.progress_chart import Point
from millpond.scheduling.registry import BUILT_IN, find, make
from millpond.simulator import Conditions, SimulatedPlan, simulate
from millpond.snapshot import FloatArray
from millpond.workloads import PoissonFlows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CHARTS: Mapping[str, Sequence[Point]] = {
    "alert": ((0.0, 1.0), (0.001, 0.2), (0.006, 0.0)),
    "sandwich": ((0.0, 1.0), (0.002, 0.9), (0.004, 0.89), (0.005, 0.1), (0.009, 0.0)),
    "steady": ((0.0, 1.0), (0.002, 0.5), (0.004, 0.4), (0.008, 0.0)),
    "growing": ((0.0, 1.0), (0.001, 0.9), (0.002, 1.4), (0.003, 0.3), (0.005, 0.0)),
    "heavy": ((0.0, 1.0), (0.003, 0.3), (0.004, 0.2), (0.012, 0.0)),
    "light": ((0.0, 1.0), (0.0005, 0.6), (0.0015, 0.55), (0.003, 0.0)),
}
OUTPUTS = {"alert": 0.1, "sandwich": 0.09, "steady": 0.08, "growing": 0.18} | {
    "heavy": 0.14,
    "light": 0.165,
}
"""What one tuple of each query finally yields."""
TUPLES_PER_SECOND = 17.0
SECONDS = 60.0
QUANTUM_SECONDS = 0.004
BUDGETS = (40.0, 50.0, 60.0, 75.0, 100.0)
GOALS_SECONDS = (0.5, 2.0, 5.0)
CLAIRVOYANT = ("maximum-slope-segment", "per-tuple-greedy")


def plan() -> SimulatedPlan:
    """Six queries, each over a stream of its own."""
    made = SimulatedPlan()
    for query, chart in CHARTS.items():
        last = OUTPUTS[query] / chart[-2][1]
        made.chart(query, made.stream(query), chart, last_selectivity=last)
    return made


def arrivals(seed: int) -> dict[str, FloatArray]:
    """Bursts on every stream, independent of each other."""
    process = PoissonFlows(
        flows_per_second=2.0,
        flow_arrivals_per_second=TUPLES_PER_SECOND,
        flow_seconds=0.5,
        shape=1.5,
    )
    return {
        query: process.until(SECONDS, 10 * (seed + 20) + place)
        for place, query in enumerate(CHARTS)
    }


def contestants() -> dict[str, tuple[str, dict[str, Any]]]:
    """Every strategy under the name it has in the picture, with its settings."""
    found = {name: (name, _service(name)) for name in BUILT_IN}
    for name in ("auto", "threshold"):
        settings = found.pop(name)[1]
        for budget in BUDGETS:
            found[f"{name} {budget:g}"] = (name, settings | {"memory_bytes": budget})
    for goal in GOALS_SECONDS:
        lean = {"memory_bytes": 1e6, "latency_goal_seconds": goal}
        found[f"auto goal {goal:g} s"] = ("auto", _service("auto") | lean)
    for name in ("component-based", "maximum-slope-segment"):
        found[f"{name} memory"] = (name, _service(name) | {"objective": "memory"})
    return found


def _service(name: str) -> dict[str, Any]:
    known = inspect.signature(find(name)).parameters
    if "slice_seconds" in known or "inner_settings" in known:
        return {"slice_seconds": QUANTUM_SECONDS}
    return {"turn_seconds": QUANTUM_SECONDS} if "turn_seconds" in known else {}


def run(seeds: Sequence[int]) -> Tables:
    """Peak memory and mean latency of every strategy, averaged over the seeds, and the bounds."""
    streams = [arrivals(seed) for seed in seeds]
    work = {query: chart[-1][0] for query, chart in CHARTS.items()}
    rows = []
    for label, (name, settings) in contestants().items():
        conditions = Conditions(tuples="fluid", clairvoyant=name in CLAIRVOYANT)
        records = [simulate(plan(), make(name, **settings), each, conditions) for each in streams]
        peak = float(np.mean([record.peak_bytes for record in records]))
        worst = max(record.peak_bytes for record in records)
        latency = float(np.mean([record.mean_latency_seconds for record in records]))
        rows.append((label, name, peak, worst, latency))
    columns = ("label", "strategy", "peak", "worst_peak", "latency_seconds")
    points = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    floors = {
        "memory": [float(np.mean([memory_floor(CHARTS, each) for each in streams]))],
        "latency_seconds": [
            float(np.mean([latency_floor(work, OUTPUTS, each) for each in streams]))
        ],
    }
    return {"points": points, "bounds": floors}


def plot(tables: Tables, figure: Figure) -> None:
    """The plane, with the curves of the two strategies that know a budget."""
    figure.set_size_inches(9, 6.5)
    axes = figure.subplots()
    floor, fastest = tables["bounds"]["memory"][0], tables["bounds"]["latency_seconds"][0]
    for label, peak, latency, below in _gathered(tables["points"]):
        spot, offset = (peak, 1000 * latency), (4, -11 if below else 4)
        axes.plot(*spot, "o", color="0.35", ms=4)
        axes.annotate(label, spot, offset, textcoords="offset points", size=8)
    _curve(axes, tables["points"], "threshold", "", "tab:orange")
    _curve(axes, tables["points"], "auto", "", "tab:blue")
    _curve(axes, tables["points"], "auto", "goal ", "tab:green")
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
    axes.axvspan(0, floor, color="0.9")
    axes.axhspan(0, 1000 * fastest, color="0.9")
    axes.annotate("no schedule reaches the grey", (floor + 2, 500 * fastest), size=9, color="0.4")
    axes.set_xlabel("peak memory (tuples)")
    axes.set_ylabel("mean latency (ms)")
    axes.legend(loc="upper left", bbox_to_anchor=(0.25, 0.99))


def _gathered(points: Mapping[str, Any]) -> list[tuple[str, float, float, bool]]:
    """The strategies without a budget; those on one spot share a label, close ones evade it."""
    found: list[tuple[str, float, float, bool]] = []
    rows = sorted(zip(*points.values(), strict=True), key=lambda row: -row[4])
    for label, name, peak, _, latency in rows:
        if name in ("auto", "threshold"):
            continue
        near = [
            each for each in found if abs(each[1] - peak) < 12 and abs(each[2] / latency - 1) < 0.06
        ]
        same = [each for each in near if abs(each[1] - peak) + 1e3 * abs(each[2] - latency) < 0.5]
        if same:
            found.remove(same[0])
            found.append((f"{same[0][0]}, {label}", *same[0][1:]))
        else:
            found.append((label, peak, latency, bool(near) and not near[-1][3]))
    return found


def _curve(axes: Axes, points: Mapping[str, Any], name: str, kind: str, color: str) -> None:
    mine = [
        (peak, 1000 * latency, label.removeprefix(f"{name} {kind}"))
        for label, strategy, peak, _, latency in zip(*points.values(), strict=True)
        if strategy == name and ("goal" in label) == bool(kind)
    ]
    peaks, latencies, _ = zip(*sorted(mine), strict=True)
    of = "latency goal" if kind else "memory budget"
    axes.plot(peaks, latencies, "o-", color=color, label=f"{name}, by {of}")
    for spot in sorted(mine):
        place = (5, -10) if name == "auto" else (5, 5)
        axes.annotate(spot[2], spot[:2], place, textcoords="offset points", size=8, color=color)


def check(tables: Tables) -> Sequence[Claim]:
    """The bounds hold, the papers' best are near them, and Auto is better than Threshold."""
    points, bounds = tables["points"], tables["bounds"]
    floor, fastest = bounds["memory"][0], bounds["latency_seconds"][0]
    at = {label: place for place, label in enumerate(points["label"])}
    peak = {label: points["peak"][place] for label, place in at.items()}
    latency = {label: points["latency_seconds"][place] for label, place in at.items()}
    leanest, quickest = min(peak.values()) / floor, min(latency.values()) / fastest
    least = min(peak, key=lambda label: peak[label])
    soonest = min(latency, key=lambda label: latency[label])
    chain = peak["chain"] - floor
    return [
        Claim(
            "least peak memory of all over its lower bound",
            "1 to 1.3",
            f"{leanest:.3f} ({least})",
            1 - 1e-9 <= leanest <= 1.3,
        ),
        Claim(
            "least mean latency of all over its lower bound",
            "1 to 1.3",
            f"{quickest:.3f} ({soonest})",
            1 - 1e-9 <= quickest <= 1.3,
        ),
        Claim(
            "peak of chain above the bound, in tuples",
            f"at most one a query, {len(CHARTS)}",
            f"{chain:.2f}",
            chain <= len(CHARTS),
        ),
        *(_against_threshold(tables, budget) for budget in BUDGETS),
    ]


def _against_threshold(tables: Tables, budget: float) -> Claim:
    """Auto is faster than Threshold with the same budget, and keeps the budget at least as well."""
    points = tables["points"]
    rows = {
        label: (worst, latency)
        for label, _, _, worst, latency in zip(*points.values(), strict=True)
    }
    auto, threshold = rows[f"auto {budget:g}"], rows[f"threshold {budget:g}"]
    kept = auto[0] <= 1.2 * budget or auto[0] <= threshold[0]
    return Claim(
        f"budget {budget:g}: auto's latency over threshold's; peaks over the budget",
        "below 1; auto at most 1.2 or below threshold",
        f"{auto[1] / threshold[1]:.2f}; {auto[0] / budget:.2f} and {threshold[0] / budget:.2f}",
        auto[1] < threshold[1] and kept,
    )


EXPERIMENT = Experiment(
    name="plane",
    paper="beyond the papers",
    title="Every strategy on one plane",
    claim=(
        "Peak memory and mean latency pull in opposite directions: each paper's strategy sits near "
        "one lower bound and far from the other; Auto stays on the edge between, by budget."
    ),
    run=run,
    plot=plot,
    check=check,
    seeds=3,
    note=(
        "Six queries, bursts on six streams, load 0.73, fluid tuples, one processor. The bounds: "
        "Chain on lower envelopes; mean busy times of weighted preemptive scheduling. Auto's "
        "constants were chosen on other bursts than these."
    ),
)
