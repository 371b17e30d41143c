"""HMTS paper, sections 6.1 and 6.2: larger graphs, and streams whose arrivals are drawn.

More complex query graphs lead to larger differences in the performance of the methods; arrivals
follow a Poisson distribution, in 6.3 to 6.5 too.

The query of Figure 7 with 2 to 40 selections, as selective each and of the same costs. With
arrivals by chance it is run again, and so is the join of Figure 6 by nested loops, whose rate has
fallen when it is 3 % below for five seconds.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from millpond.lab.experiment import Claim, Figure, Instead, Tables, experiment
from millpond.lab.hmts.joins_in_source_threads import (
    ELEMENTS_PER_SECOND,
    SLOWS_AFTER_SECONDS,
    coupled,
    falls_for_long_after,
    per_second,
)
from millpond.lab.hmts.selections import SELECTIVITIES, simulated
from millpond.lab.tables import picked, table_of
from millpond.lab.words import ABOUT, SAME, about

LENGTHS = (2, 5, 10, 20, 40)
ELEMENTS = 20_000
METHODS = ("di", "ots", "gts fifo")
JOIN = "nested loops join"
JOINED_SECONDS = 40.0


def run(seeds: Sequence[int], lengths: Sequence[int] = LENGTHS) -> Tables:
    """Seconds by length of the path; the same with arrivals by chance; when a join falls behind."""
    rows = []
    for length in lengths:
        passes = [SELECTIVITIES[0]] * length
        for name in METHODS:
            plain, drawn = (
                simulated(name, ELEMENTS, seed=seeds[0], selectivities=passes, by_chance=each)
                for each in (False, True)
            )
            rows.append((length, name, plain.finished_seconds, drawn.finished_seconds))
    falls = [(seed, _falls(None), _falls(np.random.default_rng((62, seed)))) for seed in seeds]
    return {
        "seconds": table_of(("operators", "method", "even", "drawn"), rows),
        "join": table_of(("seed", "even", "drawn"), falls),
    }


def _falls(generator: np.random.Generator | None) -> float:
    """When the input rate of the join falls."""
    elements = int(JOINED_SECONDS * ELEMENTS_PER_SECOND)
    seconds = np.arange(1.0, JOINED_SECONDS + 1)
    rates = per_second(coupled(JOIN, elements, generator=generator), seconds)
    return falls_for_long_after(rates, seconds)


def plot(tables: Tables, figure: Figure) -> None:
    """Seconds over those of direct interoperability."""
    axes = figure.subplots()
    for name in METHODS[1:]:
        axes.plot(LENGTHS, _lead(tables, name, "even"), marker="o", label=name)
        axes.plot(LENGTHS, _lead(tables, name, "drawn"), ls=":", label=f"{name}, drawn arrivals")
    axes.set(xlabel="operators", ylabel="seconds over those of di", xscale="log")
    axes.legend()


def _lead(tables: Tables, name: str, arrivals: str) -> list[float]:
    table = tables["seconds"]
    ours, theirs = (picked(table, arrivals, {"method": each}) for each in ("di", name))
    return [one / other for one, other in zip(theirs, ours, strict=True)]


def check(tables: Tables) -> Sequence[Claim]:
    """Differences grow, and arrivals by chance change nothing."""
    table = tables["seconds"]
    off = [one / other - 1 for one, other in zip(table["drawn"], table["even"], strict=True)]
    falls = tables["join"]["drawn"]
    expected = SLOWS_AFTER_SECONDS[JOIN]
    return [
        *(_larger(tables, name) for name in METHODS[1:]),
        Claim(
            "seconds with drawn inter-arrival times off those with even ones, at most",
            f'"followed a Poisson distribution": within {SAME:.0%}',
            f"{max(off, key=abs):+.2%}",
            max(map(abs, off)) <= SAME,
            Instead(
                "within a tenth",
                "where the source is as fast as what it feeds, what comes late is not made up for",
                max(map(abs, off)) <= ABOUT,
            ),
        ),
        Claim(
            f"{JOIN}: the input rate falls after, with drawn inter-arrival times",
            f'"for the SNJ after 17 seconds": about {expected:g} s',
            f"{min(falls):g} to {max(falls):g} s",
            all(about(each, expected) for each in falls),
            Instead(
                "earlier",
                "the number is that of the cost of a probe, which was fitted to even times",
                max(falls) <= expected * (1 + ABOUT),
            ),
        ),
    ]


def _larger(tables: Tables, name: str) -> Claim:
    lead = _lead(tables, name, "even")
    told = "; ".join(f"{n}: {each:.2f}" for n, each in zip(LENGTHS, lead, strict=True))
    return Claim(
        f"seconds of {name} over those of direct interoperability, by operators",
        '"more complex query graphs lead to larger differences": more with every step',
        told,
        all(one < other for one, other in pairwise(lead)),
        Instead(
            "more with the most operators than with the fewest",
            "the lead tends to what an operator with its queue costs over one without",
            lead[-1] > lead[0],
        ),
    )


EXPERIMENT = experiment(__name__, "Sections 6.1 and 6.2, larger graphs and drawn arrivals", seeds=5)
