"""The source of streams and relations that a program feeds, with `Engine.push`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from millpond.connectors.sources import Declaration, Progress


def source(declaration: Declaration) -> PushSource:
    """Delivers nothing by itself and has no end."""
    return PushSource()


class PushSource:
    """No pages: rows come from outside."""

    ends = False

    def pages(self) -> Iterator[pa.Table]:
        """Nothing."""
        return iter(())

    def progress(self) -> Progress:
        """Nothing was read and no end is known."""
        return Progress(0, None, "rows")
