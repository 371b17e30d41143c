"""The Chain paper's opening example: the same burst under FIFO and Greedy, queue size instant by
instant.

While a burst of one tuple an instant lasts, FIFO's queues grow to 4 tuples, Greedy's and Chain's
only to 2.2; all are empty at instant 15.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.scheduling.registry import make
from millpond.simulator import Conditions, SimulatedPlan, simulate

EXPECTED = {
    "fifo": (1, 1.2, 2, 2.2, 3, 3.2, 4),
    "greedy": (1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2),
    "chain": (1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2),
}
INSTANTS = range(1, 17)


def run(seeds: Sequence[int]) -> Tables:
    """Queue size at each instant, arrivals of that instant included; no chance is involved."""
    table: dict[str, list[float]] = {"instant": [float(each) for each in INSTANTS]}
    for name in EXPECTED:
        plan = SimulatedPlan()
        plan.path("q", plan.stream("s"), [(1.0, 0.2), (5.0, 1.0)])
        strategy = make(name, slice_seconds=1.0)
        record = simulate(plan, strategy, {"s": range(1, 8)}, Conditions(tuples="fluid"))
        table[name] = record.memory.at(table["instant"]).round(9).tolist()
    return {"queue size": table}


def plot(tables: Tables, figure: Figure) -> None:
    """Queue size over time."""
    axes = figure.subplots()
    table = tables["queue size"]
    for name, marker in zip(EXPECTED, "os^", strict=True):
        axes.plot(table["instant"], table[name], marker=marker, label=name, drawstyle="steps-post")
    axes.set(xlabel="instant", ylabel="queue size (tuples)")
    axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """Every cell of the table, and both empty at instant 15."""
    table = tables["queue size"]
    claims = []
    for name, expected in EXPECTED.items():
        measured = table[name][: len(expected)]
        holds = bool(np.allclose(measured, expected))
        text = f"{name}: queue size at instants 1 to 7"
        claims.append(Claim(text, _row(expected), _row(measured), holds))
        empty = next(t for t, size in zip(table["instant"], table[name], strict=True) if size == 0)
        claims.append(Claim(f"{name}: first empty at", "15", f"{empty:g}", empty == 15))
    return claims


def _row(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


EXPERIMENT = experiment(__name__, "Opening example", seeds=1)
