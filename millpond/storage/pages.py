"""Pages: immutable runs of tuples, known by reference, and parts of them by time.

A page lies in the driver's memory, in Parquet files of the store, or both. Cutting a page at a time
is a range on the reference, not a copy.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.errors import StoreError
from millpond.kernels.columns import integers
from millpond.kernels.groups import Ints
from millpond.schema import FOREVER
from millpond.storage import partitions
from millpond.storage.files import ARROW, PARQUET
from millpond.storage.origins import Origins, mixed, part
from millpond.storage.store import Store

KEEP_IN_MEMORY_ROWS = 200_000
"""A larger page leaves the driver's memory once it is written."""


class Page:
    """A reference to rows: files, rows, bytes, the first and last ``_ts``, first and last end."""

    def __init__(
        self,
        store: Store,
        *,
        rows: int,
        bytes_: int,
        first: int,
        last: int,
        last_end: int | None,
        first_end: int | None = None,
        table: pa.Table | None = None,
        names: tuple[str, ...] = (),
        is_sorted: bool = False,
    ) -> None:
        self.rows, self.bytes = rows, bytes_
        self.first, self.last = first, last
        self.last_end = last_end
        """The largest end of an element that ends, or None."""
        self.first_end = first_end
        """The smallest one, if it is known."""
        self.is_sorted = is_sorted
        self.made_seconds = time.monotonic()
        self.origins: Origins = ((self.made_seconds, rows),)
        """When the tuples came that it stems from."""
        self.is_free = False
        self.is_spilled = False
        """Whether memory had no room for it, so that it is on disk only."""
        self.holders = 0
        """How many kinds of readers of its queue still need it."""
        self._store = store
        self._table = table
        self._names = names
        self._replaced: tuple[str, ...] = ()
        """Files that are no longer its own, but may be read until it goes."""
        self._times: Ints | None = None
        self._ends: tuple[Ints, Ints] | None = None
        self._pins = 0
        self._writing = threading.Lock()
        store.account(bytes_)

    @staticmethod
    def of(store: Store, table: pa.Table, is_sorted: bool = False) -> Page:
        """A new page of these rows."""
        times = pc.min_max(table["_ts"])
        first_end, last_end = ends_of(table)
        return Page(
            store,
            rows=table.num_rows,
            bytes_=table.nbytes,
            first=times["min"].as_py(),
            last=times["max"].as_py(),
            last_end=last_end,
            first_end=first_end,
            table=table,
            is_sorted=is_sorted,
        )

    @staticmethod
    def written(store: Store, parts: Iterable[pa.Table]) -> Page | None:
        """A new page of rows that come in parts, each written to a file on disk; None of none."""
        names, rows, size, times = list[str](), 0, 0, list[int]()
        try:
            for part in parts:
                if part.num_rows:
                    names.append(store.new_spilled_name())
                    store.write(part, names[-1])
                    rows, size = rows + part.num_rows, size + part.nbytes
                    times += pc.min_max(part["_ts"]).as_py().values()
        except BaseException:
            store.remove(tuple(names))
            raise
        if not rows:
            return None
        first, last = min(times), max(times)
        page = Page(
            store, rows=rows, bytes_=size, first=first, last=last, last_end=None, names=tuple(names)
        )
        page.is_spilled = True
        return page

    def origins_between(self, after: int, until: int) -> Origins:
        """When the tuples came that the rows in (after, until] stem from: about, since tuples come
        in order of time, more or less."""
        is_whole = after < self.first and self.last <= until
        if is_whole or len(self.origins) < 2:
            return self.origins
        before = self.count(self.first - 1, after)
        through = before + self.count(after, until)
        return part(self.origins, before / self.rows, through / self.rows)

    def arrived_after(self, cursor: int) -> float:
        """When the oldest tuple came that what follows a time stems from; without one, when it was
        made."""
        origins = self.origins_between(cursor, FOREVER)
        return origins[0][0] if origins else self.made_seconds

    @property
    def table(self) -> pa.Table:
        """The rows, read back if only files are left."""
        table = self._table
        return self._store.read(self._names) if table is None else table

    @property
    def is_in_parts(self) -> bool:
        """Whether the rows are in several files, and too many to be read at once."""
        is_large = self.bytes > partitions.PIECE_BYTES
        return is_large and self._table is None and len(self._names) > 1

    def parts(self) -> Iterator[pa.Table]:
        """The rows, of one file after another if they are in several."""
        if self.is_in_parts:
            yield from self._store.read_one_by_one(self._names)
        else:
            yield self.table

    @property
    def is_in_driver(self) -> bool:
        """Whether the rows are in the driver's memory."""
        return self._table is not None

    @property
    def memory_bytes(self) -> int:
        """How much of memory it takes; a store in memory has its files there too."""
        is_on_disk = self.is_spilled or (self._store.is_durable and not self.is_in_driver)
        return 0 if is_on_disk or self.is_free else self.bytes

    @property
    def names(self) -> tuple[str, ...]:
        """The files within the store, written now if they were not yet."""
        with self._writing:
            if not self._names:
                self._names = (self._store.write_page(self.table),)
                if self.rows > KEEP_IN_MEMORY_ROWS:
                    self._table = None
            return self._names

    @property
    def sound_names(self) -> tuple[str, ...]:
        """The same for whoever is to read them: they are as they were written."""
        names = self.names
        self._store.verify(names)
        return names

    @property
    def paths(self) -> list[str]:
        """The files."""
        return [str(self._store.path(name)) for name in self.sound_names]

    def parquet_paths(self) -> list[str]:
        """The files as Parquet, for whoever reads nothing else; they are written so from now on."""
        with self._writing:
            if not self._names or any(name.endswith(ARROW) for name in self._names):
                name = self._store.new_name("pages", PARQUET)
                self._store.write(self.table, name)
                before, self._names = self._names, (name,)
                if self._pins:
                    self._replaced += before  # a step or a sink may be reading them
                else:
                    self._store.remove(before)
        return self.paths

    @property
    def can_spill(self) -> bool:
        """Whether it could leave memory: no step needs it now."""
        return not (self._pins or self.is_free or self.is_spilled)

    def spill(self) -> None:
        """Leaves memory for the disk, if it can; others may give it up meanwhile."""
        with self._writing:
            table = self._table
            if not self.can_spill or (table is None and not self._names):
                return
            if not (self._names and self._store.is_durable):
                name = self._store.new_spilled_name()
                try:
                    self._store.write(self.table if table is None else table, name)
                except StoreError:
                    if self.is_free:
                        return
                    raise
                before, self._names = self._names, (name,)
                self._store.remove(before)
            self._table = self._times = self._ends = None
            self.is_spilled = True
            if self.is_free:
                self._drop()

    def row_time(self, row: int) -> int:
        """The time of the page's n-th row in order of time; about, if only files are left."""
        if self._table is None and self._times is None:
            return self.first + (self.last - self.first) * row // self.rows
        return int(self.times[row])

    @property
    def times(self) -> Ints:
        """The times of all rows, in order."""
        if self._times is None:
            times = integers(self.table["_ts"])
            self._times = times if self.is_sorted else np.sort(times)
        return self._times

    def count(self, after: int, until: int) -> int:
        """How many rows lie in (after, until]; about, but never 0 for some, if only files do."""
        if self.last <= after or self.first > until:
            return 0
        if after < self.first and self.last <= until:
            return self.rows
        if self._table is None and self._times is None:
            share = (min(until, self.last) - max(after, self.first)) / (self.last - self.first)
            return max(1, round(self.rows * share))
        low, high = places(self.times, after, until)
        return high - low

    def between(self, after: int, until: int) -> pa.Table:
        """The rows in (after, until]."""
        table = self.table
        if after < self.first and self.last <= until:
            return table
        if self.is_sorted:
            low, high = places(self.times, after, until)
            return table.slice(low, high - low)
        times = integers(table["_ts"])
        return table.filter(pa.array((times > after) & (times <= until)))

    # -- ends ------------------------------------------------------------------------------

    def ending(self, after: int, until: int) -> pa.Table:
        """The elements begun by ``after`` that end within (after, until], in that order."""
        table = self.table.combine_chunks()  # a few rows of many chunks cost as much as all of them
        if self._table is not None:
            self._table = table
        return table.take(pa.array(self._rows_ending(after, until)))

    def count_ending(self, after: int, until: int) -> int:
        """How many elements begun by ``after`` end within (after, until]."""
        if self.last_end is None or self.last_end <= after or self.first > after:
            return 0
        if self._table is None and self._ends is None:
            return self.rows  # at most: what is only in files is not read to be counted
        return len(self._rows_ending(after, until))

    def _rows_ending(self, after: int, until: int) -> Ints:
        if self._ends is None:
            ends = integers(self.table["_te"])
            known = np.flatnonzero(ends < FOREVER)
            order = known[np.argsort(ends[known], kind="stable")]
            self._ends = ends[order], order
        ends, order = self._ends
        low, high = places(ends, after, until)
        rows = order[low:high]
        return rows if self.last <= after else rows[integers(self.table["_ts"])[rows] <= after]

    # -- coming and going ------------------------------------------------------------------

    def followed_by(self, page: Page) -> Page:
        """One page of the rows of this one and those of another; both are given up."""
        in_order = self.is_sorted and page.is_sorted and self.last <= page.first
        whole = Page.of(self._store, pa.concat_tables([self.table, page.table]), in_order)
        whole.origins = mixed((part.origins, part.rows) for part in (self, page))
        self.free()
        page.free()
        return whole

    def pin(self) -> None:
        """A step under way needs the page, whatever happens to its queue."""
        self._pins += 1

    def unpin(self) -> None:
        """The step is over."""
        self._pins -= 1
        if self.is_free:
            self._drop()

    def free(self) -> None:
        """Gives the page up; its files go when no step needs them any more."""
        if not self.is_free:
            self.is_free = True
            self._store.account(-self.bytes)
            self._drop()

    def _drop(self) -> None:
        if self._pins == 0:
            self._store.remove(self._names + self._replaced)
            self._names = self._replaced = ()
            self._table = self._times = self._ends = None

    # -- references ------------------------------------------------------------------------

    def reference(self) -> dict[str, Any]:
        """What the log says of the page; its files are there from then on.

        Of one that was given up before anybody heard of it there are none.
        """
        return {
            "names": [] if self.is_free else list(self.names),
            "rows": self.rows,
            "bytes": self.bytes,
            "first": self.first,
            "last": self.last,
            "last_end": self.last_end,
            "first_end": self.first_end,
            "sorted": self.is_sorted,
        }

    @staticmethod
    def referred(store: Store, reference: dict[str, Any]) -> Page:
        """The page that the log speaks of."""
        return Page(
            store,
            rows=reference["rows"],
            bytes_=reference["bytes"],
            first=reference["first"],
            last=reference["last"],
            last_end=reference["last_end"],
            first_end=reference.get("first_end"),
            names=tuple(reference["names"]),
            is_sorted=reference["sorted"],
        )


def places(times: Ints, after: int, until: int) -> tuple[int, int]:
    """Where those in (after, until] begin and end; one by one, twice as quick as together."""
    return int(times.searchsorted(after, "right")), int(times.searchsorted(until, "right"))


def ends_of(table: pa.Table) -> tuple[int | None, int | None]:
    """The smallest and the largest end of the elements that end, or None."""
    if "_te" not in table.column_names:
        return None, None
    ends = integers(table["_te"])
    known = ends[ends < FOREVER]
    return (int(known.min()), int(known.max())) if len(known) else (None, None)


@dataclass(frozen=True)
class Span:
    """Part of a page: the rows in (after, until]; or, of elements, those that end there.

    ``ends``: the elements begun at or before ``after`` that end within (after, until].
    """

    page: Page
    after: int
    until: int
    ends: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether every row of the page is meant."""
        return not self.ends and self.after < self.page.first and self.page.last <= self.until

    @property
    def rows(self) -> int:
        """About how many rows are meant."""
        if self.ends:
            return self.page.count_ending(self.after, self.until)
        return self.page.count(self.after, self.until)

    @property
    def origins(self) -> Origins:
        """When the tuples came that the rows stem from."""
        return self.page.origins_between(self.after, self.until)

    def table(self) -> pa.Table:
        """The rows."""
        if self.ends:
            return self.page.ending(self.after, self.until)
        return self.page.between(self.after, self.until)


def total_rows(spans: Iterable[Span]) -> int:
    """About how many rows are in all spans."""
    rows = 0
    for span in spans:
        rows += span.rows
    return rows


def concatenated(spans: Sequence[Span | Page], schema: pa.Schema) -> pa.Table:
    """All rows of some spans or pages."""
    tables = [part.table if isinstance(part, Page) else part.table() for part in spans]
    return pa.concat_tables(tables) if tables else schema.empty_table()
