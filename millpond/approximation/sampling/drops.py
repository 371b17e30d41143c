"""A drop point: which rows of a page stay, and what is taken of the others before they go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import Floats, require
from millpond.approximation.intervals.rest import NOTHING, Rest, rest_of
from millpond.approximation.sampling.draws import Bools, Draws, draws_of_rows, is_below, limit_of


@dataclass(frozen=True)
class Dropped:
    """What is known of dropped rows: their number, by key where keys are told, and each column.

    The rest of a column does not count its NULLs (NaN), which no aggregate looks at.
    """

    rows: int = 0
    columns: Mapping[str, Rest] = field(default_factory=dict)
    rows_by_key: Mapping[Hashable, int] = field(default_factory=dict)

    def __add__(self, other: Dropped) -> Dropped:
        names = [*self.columns, *(name for name in other.columns if name not in self.columns)]
        columns = {name: self.rest(name) + other.rest(name) for name in names}
        by_key = Counter(self.rows_by_key) + Counter(other.rows_by_key)
        return Dropped(self.rows + other.rows, columns, dict(by_key))

    def rest(self, column: str) -> Rest:
        """What is known of the dropped values of a column."""
        return self.columns.get(column, NOTHING)


@dataclass(frozen=True)
class Split:
    """Which rows of a page are kept, the draws of all, and what is known of the others."""

    is_kept: Bools
    draws: Draws
    dropped: Dropped


@dataclass(frozen=True)
class Drop:
    """Drops rows of a stream: a tuple stays iff a hash of seed, stream and number is below a rate.

    >>> split = Drop(1, "Bids", 0.5).split([0, 1, 2, 3], {"price": np.array([5.0, 1.0, 9.0, 2.0])})
    >>> split.is_kept.tolist(), split.dropped.rest("price")
    ([True, False, False, True], Rest(rows=2, low=1.0, high=9.0))
    """

    seed: int
    stream: str
    rate: float

    def __post_init__(self) -> None:
        limit_of(self.rate)

    def split(
        self,
        seqs: npt.ArrayLike,
        columns: Mapping[str, Floats] | None = None,
        keys: npt.ArrayLike | None = None,
    ) -> Split:
        """Splits a page, given by sequence numbers, columns that are asked for, and group keys."""
        draws = draws_of_rows(self.seed, self.stream, seqs)
        is_kept = is_below(draws, self.rate)
        return Split(is_kept, draws, dropped_of(~is_kept, columns or {}, keys))


def dropped_of(
    is_dropped: Bools, columns: Mapping[str, Floats], keys: npt.ArrayLike | None = None
) -> Dropped:
    """What is to be known of the rows of a page that are dropped."""
    rests = {}
    for name, values in columns.items():
        require(len(values) == len(is_dropped), f'column "{name}" has not one value for each row')
        gone = np.asarray(values, dtype=np.float64)[is_dropped]
        rests[name] = rest_of(gone[~np.isnan(gone)])
    by_key = {} if keys is None else dict(Counter(np.asarray(keys)[is_dropped].tolist()))
    return Dropped(int(is_dropped.sum()), rests, by_key)
