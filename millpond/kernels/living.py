"""Whose rows still matter: what belongs to queries of a group that are gone is passed over."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from millpond.kernels.columns import integers
from millpond.kernels.groups import Bools

NOBODY = -1
"""No query has this number."""


@dataclass(frozen=True)
class Living:
    """The queries of a group that were there at a moment, among all that had come by then.

    Those that come later have larger numbers than any before them.
    """

    numbers: frozenset[int]
    next_number: int

    def gone(self, numbers: pa.ChunkedArray) -> Bools:
        """Which rows are of queries that had gone; those without a number are of nobody."""
        known = integers(numbers.fill_null(NOBODY))
        has_come = (known > NOBODY) & (known < self.next_number)
        found: Bools = has_come & ~np.isin(known, np.array(sorted(self.numbers), np.int64))
        return found


@dataclass(frozen=True)
class LivingRows:
    """The rows of a step without those of queries that are gone; ``columns`` say whose they are."""

    columns: tuple[str, ...]
    living: Living

    def of(self, rows: pa.Table) -> pa.Table:
        """Those that matter."""
        gone = np.zeros(rows.num_rows, np.bool_)
        for name in self.columns:
            gone |= self.living.gone(rows[name])
        return rows.filter(pa.array(~gone)) if gone.any() else rows
