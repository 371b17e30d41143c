"""Path Capacity paper, section 2.2: how long the first result takes under Chain in a burst.

With a burst of 1M tuples that come faster than they are processed, in a system that can completely
process 10,000 a second, the first result under Chain takes almost 100 seconds.

Neither the plan nor the speed of the burst is printed: a path of two operators is taken, and a
burst of one second, in blocks of 5,000 tuples. The leaf's share of the work and its selectivity are
varied; with Table 1's operators they are a half and 0.2.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.tables import picked, table_of
from millpond.lab.words import SAME, about
from millpond.scheduling.registry import make
from millpond.simulator import Conditions, SimulatedPlan, simulate

BLOCKS = 200
BLOCK_SECONDS = 0.5
"""5,000 tuples at 10,000 a second."""
BURST_SECONDS = 1.0
ALL_SECONDS = BLOCKS * BLOCK_SECONDS
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
SELECTIVITIES = (0.05, 0.2)
TABLE_1 = (0.5, 0.2)
ALMOST = (0.9, 0.05)
WORDS = '"under the Chain strategy, it is almost 100 seconds"'


def run(seeds: Sequence[int]) -> Tables:
    """When the first result leaves, by the leaf's share and selectivity; no chance is involved."""
    rows = [
        (share, selectivity, *(first_result(name, share, selectivity) for name in NAMES))
        for share, selectivity in product(SHARES, SELECTIVITIES)
    ]
    return {"first result": table_of(("share", "selectivity", *NAMES), rows)}


NAMES = ("chain", "fifo", "path-capacity")


def first_result(name: str, share: float, selectivity: float) -> float:
    """Seconds until the first block leaves."""
    plan = SimulatedPlan()
    leaf = share * BLOCK_SECONDS
    rest = (1 - share) * BLOCK_SECONDS / selectivity
    plan.path("q", plan.stream("s"), [(leaf, selectivity), (rest, 1.0)])
    arrivals = {"s": np.linspace(0.0, BURST_SECONDS, BLOCKS, endpoint=False)}
    strategy = make(name, max_tuples=1)
    record = simulate(plan, strategy, arrivals, Conditions(tuples="fluid"))
    return float(record.output_seconds.min())


def plot(tables: Tables, figure: Figure) -> None:
    """The first result over the leaf's share."""
    axes = figure.subplots()
    table = tables["first result"]
    for name, selectivity in product(NAMES, SELECTIVITIES):
        seconds = picked(table, name, {"selectivity": selectivity})
        axes.plot(SHARES, seconds, marker="o", label=f"{name}, leaf passes {selectivity:g}")
    axes.set(xlabel="the leaf's share of the work", ylabel="first result (s)")
    axes.legend(fontsize=7)


def check(tables: Tables) -> Sequence[Claim]:
    """Almost 100 s where the leaf does almost all the work, less where it does not."""
    table = tables["first result"]
    at = {point: _at(tables, "chain", *point) for point in (ALMOST, TABLE_1)}
    leaf = TABLE_1[0] * ALL_SECONDS
    others = max(*table["fifo"], *table["path-capacity"])
    return [
        Claim(
            "first result under Chain, a leaf of nine tenths of the work that passes 0.05",
            WORDS,
            f"{at[ALMOST]:.1f} s",
            about(at[ALMOST], ALL_SECONDS),
        ),
        Claim(
            "first result under Chain, a leaf of half of the work that passes 0.2 (Table 1)",
            WORDS,
            f"{at[TABLE_1]:.1f} s",
            about(at[TABLE_1], ALL_SECONDS),
            Instead(
                f"the time that the leaf needs for the burst, {leaf:g} s",
                "Chain serves the leaf alone while it has tuples; one that passes σ and takes more "
                "than 1 - σ of the work is one chain with what is behind it, and the first result "
                "comes at once",
                about(at[TABLE_1], leaf, SAME),
            ),
        ),
        Claim(
            "first result under FIFO and Path Capacity, at most",
            f"a block's work, for it is taken to its end: {BLOCK_SECONDS:g} s",
            f"{others:.2f} s",
            others <= (1 + SAME) * BLOCK_SECONDS,
        ),
    ]


def _at(tables: Tables, name: str, share: float, selectivity: float) -> float:
    of = {"share": share, "selectivity": selectivity}
    return float(picked(tables["first result"], name, of)[0])


EXPERIMENT = experiment(__name__, "Section 2.2, the first result in a burst", seeds=1)
