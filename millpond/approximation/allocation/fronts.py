"""Choices for a part of a plan, of which none is worse than another in memory and precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import Floats
from millpond.approximation.precision import Precision
from millpond.approximation.precision.compositions import Better

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Front:
    """Choices: units, the precision they make, and where they come from.

    ``sources`` has a column for each input, the number of its choice, and last the option taken.
    """

    units: Ints
    right: Floats
    wrong: Floats
    sources: Ints

    def __len__(self) -> int:
        return len(self.units)

    @property
    def precision(self) -> Precision:
        """The precisions of all choices."""
        return Precision(self.right, self.wrong)

    def taken(self, which: Ints) -> Front:
        """Some of the choices."""
        return Front(self.units[which], self.right[which], self.wrong[which], self.sources[which])


def fixed(precision: Precision) -> Front:
    """The one choice of what is there already."""
    one = np.zeros(1, dtype=np.int64)
    right, wrong = (np.array([x], dtype=np.float64) for x in (precision.right, precision.wrong))
    return Front(one, right, wrong, np.zeros((1, 1), dtype=np.int64))


def pruned(front: Front, better: Better) -> Front:
    """The choices without those that another one is at least as good as, with no more memory."""
    second = _second(front, better)
    order = np.lexsort((second, -front.right, front.units))
    front, second = front.taken(order), second[order]
    if better is Better.EQUAL:
        return front.taken(_first_of_equals(front.right, second))
    return front.taken(_not_dominated(front.right, second))


def _second(front: Front, better: Better) -> Floats:
    """What is to be small, beside ``right``, which is to be large."""
    if better is not Better.ODDS:
        return front.wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(front.right > 0, front.wrong / front.right, np.inf)


def _first_of_equals(right: Floats, wrong: Floats) -> Ints:
    pairs = np.stack([right, wrong], axis=1)
    _, first = np.unique(pairs, axis=0, return_index=True)
    return np.sort(first)


def _not_dominated(right: Floats, second: Floats) -> Ints:
    """Those that no earlier one is at least as good as; more memory comes later."""
    kept: list[int] = []
    rights, seconds = np.empty(0), np.empty(0)
    for at in range(len(right)):
        if not ((rights >= right[at]) & (seconds <= second[at])).any():
            kept.append(at)
            rights, seconds = np.append(rights, right[at]), np.append(seconds, second[at])
    return np.array(kept, dtype=np.int64)
