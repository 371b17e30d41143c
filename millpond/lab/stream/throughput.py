"""Section 4 of the STREAM paper: what less memory saves besides, for each constraint within k.

In many cases reducing memory overhead has a natural side-effect of reducing other resource
requirements as well.

The processor's time of the joins of `stream-ordered-arrival`, `stream-clustered-arrival`,
`stream-many-one-join` and `stream-referential-integrity`, so the machine is to have nothing else to
do. States that rows are freed of are written whole more often; those that grow are merged. Tuples
are looked at as they come, which has no counterpart without a constraint.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.stream.adherence import (
    CLUSTERED,
    KS,
    ORDERED,
    REFERRING,
    UNIQUE,
    joined,
    speeds,
)
from millpond.lab.tables import picked, table_of
from millpond.lab.words import CLEARLY

CONSTRAINTS = {
    "ordered arrival": ORDERED,
    "clustered arrival": CLUSTERED,
    "many-one join": UNIQUE,
    "referential integrity": REFERRING,
}


def run(seeds: Sequence[int]) -> Tables:
    """Rows a second over k, with each constraint and without, in turns."""
    joined(ORDERED.streams(0, 0))  # everything is loaded then
    rows = [(name, *found) for name, each in CONSTRAINTS.items() for found in speeds(each, seeds)]
    return {"speed": table_of(("constraint", "k", "declared", "rows a second", "bytes"), rows)}


def plot(tables: Tables, figure: Figure) -> None:
    """Rows a second above and bytes kept below, a column for each constraint."""
    figure.set_size_inches(11, 5.5)
    grid = figure.subplots(2, len(CONSTRAINTS), sharex=True, sharey="row")
    for column, name in enumerate(CONSTRAINTS):
        for row, measure in enumerate(("rows a second", "bytes")):
            axes = grid[row][column]
            for is_declared in (True, False):
                label = "with" if is_declared else "without"
                line = _medians(tables, name, measure, is_declared)
                axes.plot(KS, line, marker="o", label=label)
            axes.set(ylim=(0, None), ylabel="" if column else measure)
        grid[0][column].set_title(name)
        grid[1][column].set_xlabel("k")
    grid[0][0].legend()


def _medians(tables: Tables, name: str, measure: str, is_declared: bool) -> list[float]:
    of = ({"constraint": name, "k": k, "declared": is_declared} for k in KS)
    return [float(np.median(picked(tables["speed"], measure, each))) for each in of]


def check(tables: Tables) -> Sequence[Claim]:
    """What the processor has to do for less memory."""
    return list(_claims(tables))


def _claims(tables: Tables) -> Iterator[Claim]:
    for name in CONSTRAINTS:
        pair = [
            _medians(tables, name, "rows a second", is_declared) for is_declared in (True, False)
        ]
        ratios = [mine / other for mine, other in zip(*pair, strict=True)]
        words = ", ".join(f"{ratio:.2f} (k = {k:,})" for ratio, k in zip(ratios, KS, strict=True))
        yield Claim(
            f"{name}: reducing memory overhead has a natural side-effect of reducing other "
            "resource requirements as well",
            f"rows a second against those without a constraint: at least {CLEARLY} times",
            words,
            min(ratios) >= CLEARLY,
            Instead(
                f"about as many, at least 1/{CLEARLY}",
                "what a step of a join costs follows its input, not what is kept",
                min(ratios) >= 1 / CLEARLY,
            ),
        )


EXPERIMENT = experiment(
    __name__, "Rows a second over k, for each constraint", group="throughput", together="stream"
)
