"""The precision of a stream: of what is delivered how much is wrong, and how much is missed.

The paper's FP is the part of delivered tuples that are wrong, its FN how many correct tuples were
missed for each correct one that was delivered. Formulas are simpler in what is delivered for each
tuple that ought to be: ``right`` = 1 / (1 + FN), and ``wrong`` = ``right`` · FP / (1 - FP). Both
are numbers, or arrays of the precisions of many plans at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import require

Numbers: TypeAlias = float | npt.NDArray[np.float64]


@dataclass(frozen=True)
class Precision:
    """How many right and how many wrong tuples are delivered for each that ought to be.

    >>> precision(fp=0.1, fn=0.25)
    Precision(right=0.8, wrong=0.0888888888888889)
    """

    right: Numbers
    wrong: Numbers

    @property
    def fp(self) -> float:
        """The paper's rate of false positives: which part of delivered tuples is wrong."""
        return float(self.wrong / (self.right + self.wrong)) if self.wrong else 0.0

    @property
    def fn(self) -> float:
        """The paper's rate of false negatives: missed tuples for each correct one delivered."""
        return float(1 / self.right - 1) if self.right else math.inf

    @property
    def score(self) -> Numbers:
        """Correct tuples delivered, of all that are delivered or ought to be: one is exact."""
        return self.right / (1 + self.wrong)


EXACT = Precision(1.0, 0.0)
"""Nothing is wrong and nothing missed."""


def precision(fp: float, fn: float) -> Precision:
    """The precision with the paper's rates."""
    require(0 <= fp < 1, f"a rate of false positives of {fp}: it has to be from 0 to less than 1")
    require(fn >= 0, f"a rate of false negatives of {fn}: it has to be 0 or more")
    right = 1 / (1 + fn)
    return Precision(right, right * fp / (1 - fp))
