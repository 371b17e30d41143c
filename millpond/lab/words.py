"""What the papers' words mean as numbers: one meaning each, for all experiments alike.

The papers say "much", "almost" and "about" and print few numbers. A limit chosen for one figure is
chosen after a look at it; these were fixed together, and the seeds of all runs are newer.
"""

from collections.abc import Sequence
from statistics import median

SAME = 0.01
"""Within 1 %: "identical", "almost identical", "nearly the same"."""
ABOUT = 0.1
"""Within 10 % of a printed number: "about 260 s", "almost 5 times"."""
CLEARLY = 1.2
"""By a fifth at least: "significantly". What is nearer is "almost as good", "a little more"."""
MUCH = 2.0
"""Twice at least: "much better", "much smoother", "badly"."""
HUGE = 3.0
"""Three times at least: "a huge margin", "vastly"."""
FEW = 0.1
"""A tenth at most: "very few"."""
SLIGHTLY = 0.05
"""On a figure: by a twentieth of its axis at most."""
MOST_SEEDS = 0.9
"""What a figure shows of one draw must be so on nine seeds of ten at least."""


def about(measured: float, expected: float, tolerance: float = ABOUT) -> bool:
    """Whether a number lies within a relative tolerance of the expected one."""
    return abs(measured - expected) <= tolerance * abs(expected)


def nearly(measured: float, other: float) -> bool:
    """Whether two measures are alike: neither is clearly above the other."""
    return other / CLEARLY < measured < other * CLEARLY


def on_most_seeds(so: Sequence[bool]) -> bool:
    """Whether what was looked at seed by seed is so on enough of them.

    >>> on_most_seeds([True] * 9 + [False]), on_most_seeds([True] * 8 + [False] * 2)
    (True, False)
    """
    return sum(so) >= MOST_SEEDS * len(so)


def told_by_seed(values: Sequence[float], so: Sequence[bool]) -> str:
    """On how many seeds something is so, and what was measured on all of them."""
    low, middle, high = (f"{each:.2f}" for each in (min(values), median(values), max(values)))
    on = f"so on {sum(so)} of {len(so)} seeds"
    return f"{on}: {low} to {high}, {middle} in the middle"
