"""Path Capacity paper, section 4.2: both cures for starvation bound the longest wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from millpond.lab.experiment import Claim, Experiment, Tables
from millpond.scheduling.registry import make
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, SimulatedPlan, simulate
from millpond.snapshot import FloatArray
from millpond.workloads import Constant, Poisson

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INNER = ("path-capacity", "segment", "simplified-segment", "chain")
CURES = ("none", "periodically-oldest", "dynamic-priority")
OVERLOADS_SECONDS = (50.0, 100.0, 200.0)
PERIOD_SECONDS = 1.0
TUPLES_A_ROUND = 10
PATHS = 3
LONGEST_STEP_SECONDS = 10.0
"""A round of the oldest takes in all that waits on its path; so long is none of them here."""


def run(seeds: Sequence[int]) -> Tables:
    """The longest wait of any operator, by cure, strategy and length of the overload."""
    return measure(seeds, OVERLOADS_SECONDS)


def measure(seeds: Sequence[int], overloads_seconds: Sequence[float]) -> Tables:
    """The longest wait of any operator, by cure, strategy and length of the overload."""
    table: dict[str, list[str | float]] = {
        name: [] for name in ("cure", "inner", "overload", "wait")
    }
    for cure in CURES:
        for inner in INNER:
            for overload in overloads_seconds:
                waits = [_longest_wait(_cured(cure, inner), overload, seed) for seed in seeds]
                row = (cure, inner, overload, max(waits))
                for column, value in zip(table, row, strict=True):
                    table[column].append(value)
    lone: dict[str, list[float]] = {"overload": list(overloads_seconds)}
    for cure in CURES:
        lone[cure] = [
            _longest_wait(_cured(cure, "path-capacity"), overload, seeds[0], lone=True)
            for overload in overloads_seconds
        ]
    return {"longest wait": table, "a lone tuple": lone}


def _cured(cure: str, inner: str) -> Strategy:
    strategy = make(inner, max_tuples=TUPLES_A_ROUND)
    return strategy if cure == "none" else make(cure, inner=strategy, period_seconds=PERIOD_SECONDS)


def _longest_wait(
    strategy: Strategy, overload_seconds: float, seed: int, lone: bool = False
) -> float:
    plan = SimulatedPlan()
    for name, cost in (("fast", 0.01), ("middle", 0.04), ("slow", 0.1)):
        plan.path(name, plan.stream(name), [(cost, 0.5), (cost, 1.0)])
    arrivals = _arrivals(overload_seconds, seed, lone)
    record = simulate(plan, strategy, arrivals, Conditions(seed=seed))
    return max(record.longest_wait_seconds.values())


def _arrivals(overload_seconds: float, seed: int, lone: bool) -> dict[str, FloatArray]:
    """The fast path alone is overloaded by a tenth; the others get some tuples, or one."""
    found = {"fast": Constant(68.0).until(overload_seconds)}
    if lone:
        return found | {"slow": np.array([20.0])}
    found["middle"] = Poisson(0.2).until(overload_seconds, seed + 1000)
    found["slow"] = Poisson(0.1).until(overload_seconds, seed + 2000)
    return found


def plot(tables: Tables, figure: Figure) -> None:
    """The longest wait against the length of the overload."""
    axes = figure.subplots()
    table = tables["longest wait"]
    for cure, marker in zip(CURES, "xo^", strict=True):
        for inner in INNER:
            rows = _rows(tables, cure, inner)
            axes.plot(*zip(*rows, strict=True), marker=marker, color=f"C{CURES.index(cure)}")
        axes.plot([], [], marker=marker, color=f"C{CURES.index(cure)}", label=f"cure: {cure}")
    axes.set_xlabel("length of the overload (s)")
    axes.set_ylabel("longest wait of an operator (s)")
    axes.set_yscale("log")
    axes.legend(title=f"{len(set(table['inner']))} strategies each")


def _rows(tables: Tables, cure: str, inner: str) -> list[tuple[float, float]]:
    table = tables["longest wait"]
    return [
        (overload, wait)
        for one, other, overload, wait in zip(*table.values(), strict=True)
        if one == cure and other == inner
    ]


def check(tables: Tables) -> Sequence[Claim]:
    """Without a cure the wait is as long as the overload; with either it does not grow with it."""
    claims = []
    for inner in INNER:
        rows = _rows(tables, "none", inner)
        share = min(wait / overload for overload, wait in rows)
        text = f"{inner} without a cure: longest wait over length of the overload"
        claims.append(Claim(text, "0.8 at least", f"{share:.2f}", share >= 0.8))
    bound = PATHS * (PERIOD_SECONDS + LONGEST_STEP_SECONDS)
    for cure in CURES[1:]:
        waits = [wait for inner in INNER for _, wait in _rows(tables, cure, inner)]
        longest = [_rows(tables, cure, inner)[-1][1] for inner in INNER]
        measured = f"{max(waits):.1f} s; in the longest overload " + _row(longest)
        text = f"{cure}: longest wait, {len(INNER)} strategies, overloads of every length"
        claims.append(Claim(text, f"at most {bound:g} s", measured, max(waits) <= bound))
    return [*claims, *_lone(tables)]


def _lone(tables: Tables) -> list[Claim]:
    lone = tables["a lone tuple"]
    periodic, dynamic = lone["periodically-oldest"], lone["dynamic-priority"]
    text = "counterexample: one tuple alone on the slow path waits under dynamic priorities"
    ratio = dynamic[-1] / dynamic[0]
    grows = ratio > 0.5 * lone["overload"][-1] / lone["overload"][0]
    return [
        Claim(text, "longer with the overload", f"{_row(dynamic)} s", grows),
        Claim(
            "the same tuple, periodically the oldest",
            "no longer",
            f"{_row(periodic)} s",
            max(periodic) <= PATHS * (PERIOD_SECONDS + LONGEST_STEP_SECONDS),
        ),
    ]


def _row(values: Sequence[float]) -> str:
    return " ".join(f"{value:.1f}" for value in values)


EXPERIMENT = Experiment(
    name="path-capacity-starvation",
    paper="Path Capacity",
    title="Both starvation cures",
    claim=(
        "While one path is overloaded, static priorities let the others wait until the overload is "
        "over; with either cure the longest wait does not depend on its length. For dynamic "
        "priorities that takes tuples that go on arriving where others wait: a lone tuple's age "
        "grows with time, the product of age and queue of the overloaded path with its square."
    ),
    run=run,
    plot=plot,
    check=check,
    seeds=2,
    note=(
        "Three paths of two operators, limited service of 10 tuples a round, the oldest every "
        "second. Its bound is the number of paths times a period and the longest round."
    ),
)
