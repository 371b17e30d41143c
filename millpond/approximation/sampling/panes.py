"""The sample of a piece of a stream, with what is known of the rest: windows are made of such.

A sample can only get smaller. Pieces that were sampled at several rates are one sample at the
least of these, since those at lower rates are contained in those at higher ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import Floats, require
from millpond.approximation.intervals.rest import Rest
from millpond.approximation.sampling.draws import Draws, is_below
from millpond.approximation.sampling.drops import Drop, Dropped, dropped_of


@dataclass(frozen=True, eq=False)
class Pane:
    """Rows that were kept at a rate, in the order of their draws, and what is known of the others.

    The order is one that chance has made, whatever the order of arrival was: what bounds of sums
    ask for.

    >>> pane = Pane.of(Drop(1, "Bids", 0.5), range(4), {"price": np.array([5.0, 1.0, 9.0, 2.0])})
    >>> pane.drawn("price").tolist(), pane.rest("price").rows
    ([2.0, 5.0], 2)
    """

    rate: float
    draws: Draws
    columns: Mapping[str, Floats]
    dropped: Dropped = field(default_factory=Dropped)

    @staticmethod
    def of(
        drop: Drop,
        seqs: npt.ArrayLike,
        columns: Mapping[str, Floats],
        keys: npt.ArrayLike | None = None,
    ) -> Pane:
        """What a drop point leaves of a page."""
        split = drop.split(seqs, columns, keys)
        kept = {name: np.asarray(column)[split.is_kept] for name, column in columns.items()}
        return _in_order(drop.rate, split.draws[split.is_kept], kept, split.dropped)

    def drawn(self, column: str) -> Floats:
        """The kept values of a column that are no NULLs, in the order of their draws."""
        values = self.columns[column]
        return values[~np.isnan(values)]

    def rest(self, column: str) -> Rest:
        """What is known of the dropped values of a column."""
        return self.dropped.rest(column)

    def at(self, rate: float, key: str | None = None) -> Pane:
        """The same rows at a lower rate; ``key``: the column of group keys, if rows have one."""
        require(rate <= self.rate, f"a rate of {rate}: rows dropped at {self.rate} are gone")
        is_kept = is_below(self.draws, rate)
        keys = None if key is None else self.columns[key]
        gone = dropped_of(~is_kept, self.columns, keys)
        kept = {name: column[is_kept] for name, column in self.columns.items()}
        return Pane(rate, self.draws[is_kept], kept, self.dropped + gone)


def merged(panes: Sequence[Pane], key: str | None = None) -> Pane:
    """Several pieces as one sample, at the least of their rates."""
    require(bool(panes), "no pieces to merge")
    rate = min(pane.rate for pane in panes)
    even = [pane.at(rate, key) for pane in panes]
    columns = {name: np.concatenate([p.columns[name] for p in even]) for name in even[0].columns}
    dropped = sum((pane.dropped for pane in even), Dropped())
    return _in_order(rate, np.concatenate([pane.draws for pane in even]), columns, dropped)


def _in_order(rate: float, draws: Draws, columns: Mapping[str, Floats], dropped: Dropped) -> Pane:
    order = np.argsort(draws, kind="stable")
    return Pane(rate, draws[order], {name: c[order] for name, c in columns.items()}, dropped)
