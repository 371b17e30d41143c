"""The last rows that came to an input, for whoever wants to see them when pages are long gone."""

from collections import deque

import numpy as np
import pyarrow as pa

from millpond.storage.pages import Page

LATEST_ROWS = 100
"""So many rows are kept."""

SMALL_ROWS = 1_000
"""A page of at most so many is kept as it is: copying its end would take longer."""


class LatestRows:
    """The ends of the pages that came last."""

    def __init__(self) -> None:
        self._tables: deque[pa.Table] = deque()
        self._rows = 0

    def came(self, page: Page) -> None:
        """A page has come; one that is in files only is not read for it."""
        if not page.is_in_driver:
            return
        self._tables.append(page.table if page.rows <= SMALL_ROWS else _end(page.table))
        self._rows += self._tables[-1].num_rows
        while self._rows - self._tables[0].num_rows >= LATEST_ROWS:
            self._rows -= self._tables.popleft().num_rows

    def table(self) -> pa.Table | None:
        """The last rows, the oldest first; None if none has come in this run."""
        if not self._tables:
            return None
        whole = pa.concat_tables(self._tables)
        return whole.slice(max(0, whole.num_rows - LATEST_ROWS))


def _end(table: pa.Table) -> pa.Table:
    """The last rows in memory of their own, so that the others can go."""
    rows = table.num_rows
    return table.take(pa.array(np.arange(rows - LATEST_ROWS, rows)))
