"""Section 4.2 of the STREAM paper: a burst of seven batches under two strategies.

Strategy 1 takes tuples to completion in the order of their arrival, strategy 2 prefers the first
operator. The table of queue sizes; both are empty at instant 15; strategy 2 needs less memory, but
strategy 1 has the potential to produce initial results earlier.

A batch of n tuples is one tuple here, and sizes are multiples of n; strategy 1 is FIFO, strategy 2
Greedy.
"""

from collections.abc import Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Tables, experiment
from millpond.scheduling.registry import make
from millpond.simulator import Conditions, SimulatedPlan, simulate

PRINTED = {
    "strategy 1": (1, 1.2, 2, 2.2, 3, 3.2, 4),
    "strategy 2": (1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2),
}
STRATEGIES = {"strategy 1": "fifo", "strategy 2": "greedy"}
INSTANTS = range(1, 17)
EMPTY = 15


def run(seeds: Sequence[int]) -> Tables:
    """Queue sizes and how many batches have left at each instant; no chance is involved."""
    sizes: dict[str, list[float]] = {"instant": [float(each) for each in INSTANTS]}
    left = {"instant": list(sizes["instant"])}
    for name, strategy in STRATEGIES.items():
        plan = SimulatedPlan()
        plan.path("q", plan.stream("s"), [(1.0, 0.2), (5.0, 1.0)])
        made = make(strategy, slice_seconds=1.0)
        record = simulate(plan, made, {"s": range(1, 8)}, Conditions(tuples="fluid"))
        sizes[name] = record.memory.at(sizes["instant"]).round(9).tolist()
        out = np.sort(record.output_seconds)
        left[name] = np.searchsorted(out, np.array(left["instant"]) + 1e-9).astype(float).tolist()
    return {"queue size": sizes, "batches that have left": left}


def plot(tables: Tables, figure: Figure) -> None:
    """Both over time."""
    for axes, (label, table) in zip(figure.subplots(1, 2), tables.items(), strict=True):
        for name in STRATEGIES:
            axes.plot(table["instant"], table[name], marker="o", drawstyle="steps-post", label=name)
        axes.set(xlabel="instant", ylabel=label)
        axes.legend()


def check(tables: Tables) -> Sequence[Claim]:
    """Every cell, the end, and who is first with results."""
    sizes, left = tables["queue size"], tables["batches that have left"]
    claims = [_cells(sizes[name], name) for name in STRATEGIES]
    for name in STRATEGIES:
        empty = next(t for t, size in zip(sizes["instant"], sizes[name], strict=True) if size == 0)
        text = f"{name}: first empty at"
        claims.append(Claim(text, f"{EMPTY}", f"{empty:g}", empty == EMPTY))
    first = [
        next(t for t, out in zip(left["instant"], left[name], strict=True) if out)
        for name in STRATEGIES
    ]
    earlier = '"strategy 1 generally has the potential to produce initial results earlier"'
    pairs = list(zip(*(left[name] for name in STRATEGIES), strict=True))
    return [
        *claims,
        Claim("first result of both", earlier, f"{first[0]:g}, {first[1]:g}", first[0] < first[1]),
        Claim(
            "tuples that have left at each instant, strategy 1 against 2",
            f"{earlier}: never less",
            " ".join(f"{one:g}:{other:g}" for one, other in pairs),
            all(one >= other for one, other in pairs),
        ),
    ]


def _cells(measured: Sequence[float], name: str) -> Claim:
    expected = PRINTED[name]
    found = measured[: len(expected)]
    told = " ".join(f"{each:g}" for each in found)
    printed = " ".join(f"{each:g}" for each in expected)
    holds = bool(np.allclose(found, expected))
    return Claim(f"{name}: queue size at instants 1 to 7", printed, told, holds)


EXPERIMENT = experiment(__name__, "Section 4.2, the opening example", seeds=1)
