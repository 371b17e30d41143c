"""A source that does not end, read in a thread as an engine reads it."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import Any

from millpond.connectors.sources import OpenPages, Taken
from millpond.errors import MillpondError
from tests.connectors.declarations import tuples
from tests.patience import PATIENCE_SECONDS, wait_until


class Reading:
    """The rows that have come, the bad ones, and the position behind them."""

    def __init__(self, source, taken: Taken | None = None, commits: bool = False) -> None:
        self.source, self.taken, self.commits = source, taken or Taken(), commits
        self.rows, self.bad, self.error = [], [], None
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        pages = OpenPages.of(self.source, self.taken)
        try:
            while page := pages.behind(self.taken.rows, self.taken.bad):
                self.rows, self.bad = self.rows + tuples(page.rows), self.bad + list(page.bad)
                rows, bad = self.taken.rows + page.rows.num_rows, self.taken.bad + len(page.bad)
                self.taken = Taken(rows, bad, json.loads(json.dumps(page.position)))
                if self.commits:
                    self.source.committed(page.position)
        except MillpondError as error:
            self.error = error

    def until(self, holds) -> Reading:
        """Waits for something to hold of what has come."""
        wait_until(lambda: self.error or holds(self))
        if self.error is not None:
            raise self.error
        return self

    def until_error(self) -> str:
        """Waits for an error."""
        return str(wait_until(lambda: self.error))

    def until_there(self, rows: int, bad: int = 0) -> Reading:
        """Waits for so many rows and bad ones."""
        return self.until(lambda each: (len(each.rows), len(each.bad)) >= (rows, bad))

    def content(self, before: Counter[Any] | None = None) -> Counter[Any]:
        """What changes (time, weight, …) come to."""
        found = Counter(before)
        for _, weight, *row in list(self.rows):
            found[tuple(row)] += weight
        return Counter({row: weight for row, weight in found.items() if weight})

    def end(self) -> Taken:
        """Has the source end, and says how much of it was taken."""
        self.source.close()
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive()
        return self.taken
