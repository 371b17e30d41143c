"""Watching: what a stream adheres to though nobody has said so.

Of a column by which running queries join or group it is seen how far values come behind larger
ones, and of a sample of its values how far they come from each other. The first is remembered as
for a constraint within as many rows as one may say; a column whose values come further behind is
given up. What is seen is of this run: a log has nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from millpond.catalog import MOST_ROWS, Constraint
from millpond.intake.orderings import Ordering, Values, values_of
from millpond.intake.samples import Arrived, Sample
from millpond.kernels.groups import Ints

ENOUGH_ROWS = 100
"""Of fewer rows nothing is said."""
TOGETHER_ROWS, TOGETHER_PAGES = 32_768, 64
"""Fewer rows, in fewer pages, wait for others, and are looked at with these."""
ENOUGH_TIMES = 10
"""Nor of fewer than so many times k: of a few rows any would come behind a few."""


@dataclass(frozen=True)
class Watch:
    """What was seen of a column."""

    column: int
    ordering: Ordering
    rows: int = 0
    """So many tuples were looked at."""
    is_given_up: bool = False
    """Whether one came further behind than a constraint may say."""
    sample: Sample = field(default_factory=Sample)
    """Where some of its values came."""

    @staticmethod
    def of(column: int) -> Watch:
        """Of a column of which nothing was seen yet."""
        return Watch(column, _nothing(column))

    @property
    def within(self) -> int | None:
        """The smallest k seen to which all tuples adhere, in rows; None if that is not known."""
        return None if self.is_given_up else self.enough(self.ordering.measured)

    def enough(self, k: int) -> int | None:
        """What was measured, if so many tuples were seen that it can be said."""
        is_enough = self.rows >= max(ENOUGH_ROWS, ENOUGH_TIMES * k)
        return k if is_enough and k <= MOST_ROWS else None

    @property
    def clustered(self) -> int | None:
        """The smallest k seen of CLUSTERED BY; None if that is not known."""
        return self.enough(self.sample.seen.clustered) if self.sample.is_enough else None

    @property
    def unique(self) -> int | None:
        """The smallest k seen of UNIQUE; None if that is not known."""
        return self.enough(self.sample.seen.unique) if self.sample.is_enough else None

    def references(self, target: Watch, stream: str) -> int | None:
        """The smallest k seen of REFERENCES, of a column of this stream; None if not known."""
        k = self.sample.behind(target.sample, stream)
        return None if k is None else self.enough(k)

    def after(self, seqs: Ints, values: Values, pages: Sequence[tuple[int, Arrived]] = ()) -> Watch:
        """What was seen after more tuples, in pages of so many that came when so many had come."""
        sample = self.sample.after(seqs, values, pages) if pages else Sample()
        rows = self.rows + len(seqs)
        found = None if self.is_given_up else self.ordering.if_none_breaks(values, seqs)
        if found is None:
            return Watch(self.column, _nothing(self.column), rows, True, sample)
        risen, measured = found
        after = self.ordering.following(risen, 0, measured, int(seqs[-1]) + 1)
        return Watch(self.column, after, rows, False, sample)


@dataclass(frozen=True)
class Watches:
    """What was seen of the watched columns of a stream; a few tuples wait for others."""

    by_column: Mapping[int, Watch] = field(default_factory=dict)
    waiting: tuple[tuple[pa.Table, Arrived | None], ...] = ()
    """Pages, and how many tuples of all streams had come when they came, if values are followed."""
    waiting_rows: int = 0

    def __bool__(self) -> bool:
        return bool(self.by_column)

    def __getitem__(self, column: int) -> Watch:
        return self._looked_at.by_column[column]

    def of(self, column: int) -> Watch | None:
        """What was seen of a column, if it is watched."""
        return self[column] if column in self.by_column else None

    def after(self, page: pa.Table, arrived: Arrived | None) -> Watches:
        """What was seen after more tuples."""
        if not self:
            return self
        looked_at = page.select(["_seq", *(f"c{column}" for column in self.by_column)])
        waiting, rows = (*self.waiting, (looked_at, arrived)), self.waiting_rows + page.num_rows
        more = Watches(self.by_column, waiting, rows)
        is_little = rows < TOGETHER_ROWS and len(waiting) < TOGETHER_PAGES
        return more if is_little else more._looked_at

    @property
    def _looked_at(self) -> Watches:
        """With nothing waiting."""
        return self._after_waiting if self.waiting else self

    @cached_property
    def _after_waiting(self) -> Watches:
        come = [page for page, _ in self.waiting]
        table = come[0] if len(come) == 1 else pa.concat_tables(come)
        known = [(page.num_rows, arrived) for page, arrived in self.waiting if arrived is not None]
        pages = known if len(known) == len(self.waiting) else []
        seqs, order = _arrivals(table)
        seen = {}
        for column, watch in self.by_column.items():
            values = values_of(table[f"c{column}"])
            seen[column] = watch.after(
                seqs, values if order is None else values.taken(order), pages
            )
        return Watches(seen)

    def chosen(self, columns: Iterable[int]) -> Watches:
        """With these columns watched."""
        known = self._looked_at.by_column
        return Watches({each: known.get(each) or Watch.of(each) for each in sorted(columns)})

    def anew(self) -> Watches:
        """With nothing seen yet."""
        return Watches().chosen(self.by_column)


def _arrivals(table: pa.Table) -> tuple[Ints, Ints | None]:
    """The sequence numbers of tuples as they rise, and the order of these if it is another one."""
    seqs = values_of(table["_seq"]).numbers
    if not np.any(seqs[1:] < seqs[:-1]):
        return seqs, None
    order = np.argsort(seqs, kind="stable")
    return seqs[order], order


def _nothing(column: int) -> Ordering:
    return Ordering.of(Constraint("", column, MOST_ROWS, is_of_rows=True, on_violation="count"))
