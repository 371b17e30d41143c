"""One page of a source, read without the lock and taken with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millpond.connectors import Source
from millpond.connectors.admission import Admission
from millpond.connectors.sources import OpenPages, SourcePage
from millpond.errors import StateError
from millpond.identities import InputId

ROW_BYTES = 64
"""A row of a text file has about so many bytes, as long as none was read."""


@dataclass(eq=False)
class SourceReading:
    """One page of a source about to be read, and what has come of it."""

    name: InputId
    source: Source
    pages: OpenPages
    taken: int
    """So many rows were taken of the source."""
    taken_bad: int
    """So many bad rows were."""
    is_limited: bool
    """Whether not all of a page may be taken."""
    admission: Admission | None = None
    """How far the stream was when a page was read elsewhere, where its rows were admitted."""
    page: SourcePage | None = None
    """The page; None at the source's end."""
    line: dict[str, Any] | None = None
    """What is known of a page that was read elsewhere."""
    error: BaseException | None = None
    is_over: bool = False
    """Whether it was read, with or without success."""

    @property
    def can_be_elsewhere(self) -> bool:
        """Whether it reads files that every host sees, and a page is taken whole."""
        return getattr(self.source, "reads_files", False) and not self.is_limited

    def read(self) -> None:
        """Reads the page here."""
        self.page = self.pages.behind(self.taken, self.taken_bad)

    @property
    def rows(self) -> int:
        """How many rows were read; none at the end."""
        if self.line is not None:
            return max(0, int(self.line["taken"]) - self.taken)
        return 0 if self.page is None else self.page.rows.num_rows

    def cut(self, rows: int) -> SourceReading:
        """Cuts the first rows of the page off: a reading of those."""
        if self.page is None:
            raise StateError("internal: a page is cut that is not here")
        first, self.page = self.page.cut(rows)
        return replace(self, page=first)

    @property
    def rows_left(self) -> float:
        """About how many rows are to come, judged by those taken; 0 if that cannot be told."""
        progress = self.source.progress()
        if progress.total is None:
            return 0
        if not progress.done:
            return progress.total / (1 if progress.unit == "rows" else ROW_BYTES)
        return self.taken * (progress.total - progress.done) / progress.done
