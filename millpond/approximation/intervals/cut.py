"""Answers over a window that was shortened: of tuples that left it early is known how many there
are, and their least and largest values, and nothing by chance.

Where there are any the confident bounds are the certain ones, and the estimate takes them for what
those are that are still there. docs/precision.md ("Windows that are shortened") has the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import Floats
from millpond.approximation.intervals.kept import Answers, Different, Squares

CUT = "cut_"
"""What stands before a kind of answer over a window that may be shortened; its first sum is the
number of tuples that are kept."""


def without_cut(kind: str, columns: Sequence[Any]) -> list[Any]:
    """The sums of a kind, as if what left early had been dropped at a rate of 1."""
    left = list(columns[1:])
    is_cut = is_shortened(kind, columns)
    for name in ("least_weight", "most_weight"):
        place = _place(kind, name)
        left[place] = np.where(is_cut, 1.0, left[place])
    return left


def is_shortened(kind: str, columns: Sequence[Any]) -> npt.NDArray[np.bool_]:
    """Of which groups a tuple left early: its weight would have been infinite."""
    most: Floats = columns[1 + _place(kind, "most_weight")]
    return np.isinf(most)


def of_cut(kind: str, columns: Sequence[Any], found: Answers) -> Answers:
    """Answers with certain bounds alone where a tuple left early."""
    is_cut = is_shortened(kind, columns)
    guess = np.clip(_estimate(kind, columns, found), *_certain(found))
    return Answers(
        np.where(is_cut, guess, found.estimate),
        np.where(is_cut, found.certain_low, found.low),
        np.where(is_cut, found.certain_high, found.high),
        *_certain(found),
    )


def _certain(found: Answers) -> tuple[Floats, Floats]:
    return found.certain_low, found.certain_high


def _estimate(kind: str, columns: Sequence[Any], found: Answers) -> Floats:
    """What the answer would be, were tuples that left early like those that are there."""
    if not kind.startswith(("count", "sum", "avg")):
        return found.estimate
    seen, dropped, hits = columns[0], columns[1], columns[1 + _place(kind, "hits")]
    middle = (found.certain_low + found.certain_high) / 2
    times = 1 + dropped / seen
    if kind == "count":
        return np.rint(np.where(seen > 0, hits * times, middle))
    total = columns[1 + _place(kind, "total")]
    if kind == "avg_of_hits":
        return np.asarray(total / hits)  # NULL where there are none
    whole = total * times / (hits + dropped) if kind == "avg" else total * times
    return np.where(seen > 0, whole, middle)


def _place(kind: str, name: str) -> int:
    """Where a sum stands among those of a kind; more special kinds have theirs behind."""
    of = Different if kind == "distinct" else Squares
    return [each.name for each in fields(of)].index(name)
