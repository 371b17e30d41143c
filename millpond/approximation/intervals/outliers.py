"""The outlier index: rows with extreme values are kept as they are, and only the others sampled.

Which rows those are follows from values and arrival alone, never from draws. So what is sampled of
the others is still drawn by chance alone, and their range, on which the width of bounds hangs, is
as narrow as the index makes it (Chaudhuri et al. 2001, *Overcoming limitations of sampling*).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import Floats, finite, require

Draws = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Rows:
    """Values with their draws."""

    values: Floats
    draws: Draws

    def __len__(self) -> int:
        return len(self.values)

    def taken(self, which: npt.NDArray[np.bool_]) -> Rows:
        """Some of the rows, in their order."""
        return Rows(self.values[which], self.draws[which])

    def followed_by(self, others: Rows) -> Rows:
        """These rows and then others."""
        values = np.concatenate([self.values, others.values])
        return Rows(values, np.concatenate([self.draws, others.draws]))


class OutlierIndex:
    """Keeps the ``capacity`` largest and the ``capacity`` smallest rows of those that come.

    >>> index = OutlierIndex(1)
    >>> index.add([5, 1, 100, 2], [0, 1, 2, 3]).values
    array([5., 2.])
    >>> index.total
    101.0
    """

    def __init__(self, capacity: int) -> None:
        require(capacity >= 0, f"an index of {capacity} rows")
        self._capacity = capacity
        self._kept = Rows(np.empty(0), np.empty(0, np.uint64))

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def total(self) -> float:
        """The sum of the rows in it."""
        return math.fsum(self._kept.values)

    def add(self, values: npt.ArrayLike, draws: npt.ArrayLike) -> Rows:
        """Takes rows in; says which rows leave, of these or earlier ones: these are sampled."""
        new = Rows(finite(values), np.asarray(draws, dtype=np.uint64))
        require(len(new.values) == len(new.draws), "each row has one draw")
        return self._shrunk(self._kept.followed_by(new))

    def change_memory(self, capacity: int) -> Rows:
        """Changes how many rows are kept at each end; says which leave."""
        require(capacity >= 0, f"an index of {capacity} rows")
        self._capacity = capacity
        return self._shrunk(self._kept)

    def _shrunk(self, rows: Rows) -> Rows:
        is_kept = np.zeros(len(rows), dtype=bool)
        if self._capacity:
            by_value = np.argsort(rows.values, kind="stable")
            is_kept[by_value[: self._capacity]] = True
            is_kept[by_value[-self._capacity :]] = True
        self._kept = rows.taken(is_kept)
        return rows.taken(~is_kept)
