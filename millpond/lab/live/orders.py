"""The orders of the papers' figures, live, by the processor's clock.

Chain keeps less waiting than FIFO, Path Capacity answers soonest, Segment lies between them

Real engines in one thread, driven by the time that they are on the processor: other work on the
machine changes little. Steps run in the driver. What several processors are for is seen in
`live-hmts`. Some minutes a draw.
"""

from collections.abc import Sequence

import numpy as np

from millpond.facade.engine import Engine
from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.lab.live.plans import PLANS, LivePlan
from millpond.lab.live.processor_clock import Course, driven
from millpond.scheduling.strategy_text import engine_strategy

MEMORY_BYTES = 64 * 2**20
STRATEGIES = {
    "FIFO": "fifo(max_tuples = 1)",
    "Greedy": "greedy(max_tuples = 1)",
    "Chain": "chain(max_tuples = 1)",
    "Path Capacity": "path-capacity(max_tuples = 1)",
    "Segment": "segment(max_tuples = 1)",
    "Threshold": "threshold(max_tuples = 1)",
    "MSS": "maximum-slope-segment",
    "component-based": "component-based(objective = memory, max_tuples = 1)",
}
MODES = ("di", "gts", "ots", "hmts")
SHARE = 0.9
"""What is said of draws is so if it is so on this share of them."""
WARM_SEED, FIRST_SECONDS, BURSTS = 1, 10.0, 2
FIGURES = ("peak_bytes", "mean_bytes", "mean_late_seconds", "busy_seconds")


def course_of(plan: LivePlan, strategy: str, seed: int, mode: str = "free") -> Course:
    """One strategy, or one mode, on one draw, when it knows what operators cost."""
    settings = {"driver_rows": 10**9, "place_by": "rows", "processors": 1, "mode": mode}
    if mode != "free":
        settings["linear"] = "apart"
    with Engine(settings, keep_results=False) as engine:
        plan.start(engine, has_queues=mode == "free")
        chosen = engine_strategy(strategy, MEMORY_BYTES, mode)
        driven(engine, chosen, plan.arrivals(1, WARM_SEED))
        return driven(engine, chosen, plan.arrivals(BURSTS, seed, FIRST_SECONDS))


def run(seeds: Sequence[int]) -> Tables:
    """A row for each plan, strategy or mode, and draw; strategies take turns."""
    rows = [
        (plan.name, name, seed, course_of(plan, text, seed))
        for plan in PLANS
        for seed in seeds
        for name, text in STRATEGIES.items()
    ]
    rows += [
        (plan.name, mode, seed, course_of(plan, "fifo", seed, mode))
        for plan in PLANS
        for seed in seeds
        for mode in MODES
    ]
    columns = {"plan": 0, "strategy": 1, "seed": 2}
    found: dict[str, list[object]] = {name: [r[at] for r in rows] for name, at in columns.items()}
    found |= {name: [getattr(r[3], name) for r in rows] for name in FIGURES}
    return {"runs": found}


def plot(tables: Tables, figure: Figure) -> None:
    """Of each plan the plane: every run by its peak and its mean latency."""
    table, charts = tables["runs"], figure.subplots(1, len(PLANS))
    for plan, chart in zip(PLANS, np.atleast_1d(charts), strict=True):
        for name in STRATEGIES:
            at = _places(tables, plan.name, name)
            peaks = [table["peak_bytes"][i] / 1e6 for i in at]
            chart.plot(peaks, [table["mean_late_seconds"][i] for i in at], "o", label=name)
        chart.set(title=plan.name, xlabel="peak backlog, MB", xlim=(0, None), ylim=(0, None))
    np.atleast_1d(charts)[0].set(ylabel="mean latency, s")
    np.atleast_1d(charts)[0].legend(fontsize="small")


def check(tables: Tables) -> list[Claim]:
    """The orders, with how far apart things are and how that spreads over the draws."""
    chains, shared, join = (plan.name for plan in PLANS)
    found = [
        *(_below(tables, p, "Chain", "FIFO", "mean_bytes", 0.7) for p in (chains, shared)),
        *(_below(tables, p, "Chain", "FIFO", "peak_bytes", 1.0) for p in (chains, shared)),
        _below(tables, join, "Chain", "FIFO", "peak_bytes", 1.25),
        _below(tables, join, "component-based", "FIFO", "mean_bytes", 1.0),
    ]
    for plan in (chains, shared, join):
        found += [
            _below(tables, plan, "Path Capacity", "FIFO", "mean_late_seconds", 1.0),
            _below(tables, plan, "Path Capacity", "Chain", "mean_late_seconds", 1.0),
            _below(tables, plan, "Threshold", "Chain", "mean_late_seconds", 1.0),
            _below(tables, plan, "Segment", "Path Capacity", "mean_bytes", 1.0),
            _below(tables, plan, "di", "gts", "busy_seconds", 1.0),
            _below(tables, plan, "hmts", "ots", "busy_seconds", 1.0),
        ]
    return found


def _below(tables: Tables, plan: str, one: str, other: str, figure: str, at_most: float) -> Claim:
    """That a figure of one strategy is at most so many times that of another, draw by draw."""
    values = tables["runs"][figure]
    ratios = sorted(
        values[mine] / values[theirs]
        for mine, theirs in zip(
            _places(tables, plan, one), _places(tables, plan, other), strict=True
        )
    )
    holding = sum(each <= at_most for each in ratios)
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}, in the middle {ratios[len(ratios) // 2]:.2f}"
    return Claim(
        f"{plan}: {one}'s {figure.replace('_', ' ')} to {other}'s",
        f"at most {at_most:g} on {SHARE:.0%} of the draws",
        f"{spread}; on {holding} of {len(ratios)}",
        holding >= SHARE * len(ratios),
    )


def _places(tables: Tables, plan: str, name: str) -> list[int]:
    """The rows of one strategy on one plan, draw by draw."""
    pairs = zip(tables["runs"]["plan"], tables["runs"]["strategy"], strict=True)
    return [place for place, pair in enumerate(pairs) if pair == (plan, name)]


EXPERIMENT = experiment(
    __name__, "The orders of the papers' figures, live", together="live", group="live"
)
