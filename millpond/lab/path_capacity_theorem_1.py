"""Path Capacity paper, Theorem 1: the least total latency of all strategies, and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from millpond.lab.chain_instances import Instance
from millpond.lab.experiment import Claim, Experiment, Tables
from millpond.lab.path_capacity_instances import (
    batch,
    least_total_latency,
    over_time,
    run_instance,
    same_random,
    total_latency,
    with_whole_arrivals,
)
from millpond.scheduling.registry import make
from millpond.scheduling.strategy import Strategy
from millpond.simulator import Conditions, SimulatedPlan, simulate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INSTANCES_A_SEED = 80
WAITING = "all tuples wait"
WHOLE = "no tuple is half served when others arrive"
ANY = "any arrivals"
BY_OUTPUT = "all tuples wait, latency over output tuples"
RAISED = "the same, weight = outputs a tuple"
HOLDS = (WAITING, WHOLE, RAISED)
FAILS = (ANY, BY_OUTPUT)
Measure: TypeAlias = Callable[[np.random.Generator], float | None]


def run(seeds: Sequence[int]) -> Tables:
    """Excess of total latency over the exhaustive optimum, and three counterexamples."""
    measures: dict[str, Measure] = {
        WAITING: _waiting,
        WHOLE: _whole,
        ANY: _any,
        BY_OUTPUT: _by_output,
        RAISED: _raised,
    }
    table: dict[str, list[str | float]] = {"setting": [], "excess": []}
    for offset, (setting, measure) in enumerate(measures.items()):
        found = [measure(each) for each in same_random(seeds, INSTANCES_A_SEED, offset)]
        kept = [excess for excess in found if excess is not None]
        table["setting"] += [setting] * len(kept)
        table["excess"] += kept
    return {"excess": table, "counterexamples": _counterexamples()}


def strategy() -> Strategy:
    """Path Capacity, asked once a unit of time."""
    return make("path-capacity", slice_seconds=1.0)


def excess(instance: Instance) -> float:
    """Total latency above the least possible."""
    return total_latency(run_instance(instance, strategy())) - least_total_latency(instance)


def _waiting(generator: np.random.Generator) -> float:
    return excess(batch(generator, queries=3, tuples=4))


def _any(generator: np.random.Generator) -> float:
    return excess(over_time(generator, queries=3, tuples=4))


def _whole(generator: np.random.Generator) -> float | None:
    instance = with_whole_arrivals(over_time(generator, queries=3, tuples=4), strategy())
    return None if instance is None else excess(instance)


def _by_output(generator: np.random.Generator, raised: bool = False) -> float:
    instance = batch(generator, queries=3, tuples=4)
    outputs = generator.uniform(0.05, 1.0, size=3).tolist()
    record = run_instance(instance, strategy(), outputs, outputs if raised else None)
    return total_latency(record, by_output=True) - least_total_latency(instance, outputs)


def _raised(generator: np.random.Generator) -> float:
    return _by_output(generator, raised=True)


def _counterexamples() -> dict[str, list[str | float]]:
    late = Instance((((0.0, 1.0), (5.0, 0.0)), ((0.0, 1.0), (3.0, 0.0))), ((0,), (4,)))
    unequal = Instance((((0.0, 1.0), (1.0, 0.0)), ((0.0, 1.0), (2.0, 0.0))), ((0,), (0,)))
    few = run_instance(unequal, strategy(), (0.1, 1.0))
    return {
        "what": [
            "a 5 s tuple with 1 s left is put off for one of 3 s",
            "a 1 s path with 0.1 outputs a tuple goes before one of 2 s with 1",
            "a 4 s path goes before two of 5 s that share 4 s",
        ],
        "path capacity": [
            total_latency(run_instance(late, strategy())),
            total_latency(few, by_output=True),
            _fork(rival_weight=1.0),
        ],
        "better": [
            least_total_latency(late),
            least_total_latency(unequal, (0.1, 1.0)),
            _fork(rival_weight=0.5),
        ],
    }


def _fork(rival_weight: float) -> float:
    """Total latency of one tuple before a fork of 4 s with branches of 1 s, and one before 4 s."""
    plan = SimulatedPlan()
    shared = plan.operator("shared", plan.stream("s"), cost_seconds=4.0)
    plan.query("left", plan.operator("left", shared, cost_seconds=1.0))
    plan.query("right", plan.operator("right", shared, cost_seconds=1.0))
    plan.query("rival", plan.operator("rival", plan.stream("t"), 4.0), rival_weight)
    arrivals = {"s": [0.0], "t": [0.0]}
    return total_latency(simulate(plan, make("path-capacity"), arrivals, Conditions()))


def plot(tables: Tables, figure: Figure) -> None:
    """The excess of every instance, sorted."""
    axes = figure.subplots()
    for setting in (*HOLDS, *FAILS):
        values = _of(tables, setting)
        axes.plot(np.linspace(0, 1, len(values)), np.sort(values), label=setting)
    axes.set_xlabel("share of the instances")
    axes.set_ylabel("total latency above the optimum (s)")
    axes.legend()


def _of(tables: Tables, setting: str) -> list[float]:
    table = tables["excess"]
    return [
        value
        for name, value in zip(table["setting"], table["excess"], strict=True)
        if name == setting
    ]


def check(tables: Tables) -> Sequence[Claim]:
    """Optimal under the assumptions; not without any one of them."""
    claims = []
    for setting in HOLDS:
        values = _of(tables, setting)
        worst = max(values)
        text = f"{setting}: excess over the optimum at worst, {len(values)} instances"
        claims.append(Claim(text, "0", f"{worst:.1e}", bool(values) and worst < 1e-9))
    for setting in FAILS:
        values = _of(tables, setting)
        above = sum(value > 1e-9 for value in values)
        measured = f"above in {above} of {len(values)}, by {max(values):.2f} s at worst"
        claims.append(Claim(f"{setting}: not optimal", "above the optimum", measured, above > 0))
    rows = tables["counterexamples"]
    for what, mine, better in zip(rows["what"], rows["path capacity"], rows["better"], strict=True):
        measured = f"{mine:g} s against {better:g} s"
        claims.append(Claim(f"counterexample: {what}", "worse", measured, mine > better))
    return claims


EXPERIMENT = Experiment(
    name="path-capacity-theorem-1",
    paper="Path Capacity",
    title="Theorem 1: least total latency",
    claim=(
        "Path Capacity has the least total latency of all strategies. True when (1) no tuple is "
        "half served at the time others arrive, as when all wait from the start, (2) every tuple "
        "counts the same, whatever it yields, (3) paths share no operators; false without any one "
        "of these. Where outputs are counted, capacity times outputs a tuple is the right priority."
    ),
    run=run,
    plot=plot,
    check=check,
    note=(
        "The optimum is over all schedules that work on any tuple in any unit of time, with the "
        "arrivals known. The proof exchanges two waiting tuples, so it says nothing of tuples that "
        "arrive while another is half served: there the shortest remaining time wins."
    ),
)
