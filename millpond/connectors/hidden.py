"""A source whose arguments are secrets: what goes wrong in it is said without their values."""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from millpond.connectors.secrets import Secret, hiding
from millpond.connectors.sources import Progress, Source


class HiddenSource:
    """The source, read in the driver: other hosts have neither the variables nor this mask."""

    reads_files = False

    def __init__(self, source: Source, secrets: list[Secret]) -> None:
        self._source, self._secrets = source, secrets
        self.ends = source.ends

    def pages(self) -> Iterator[pa.Table]:
        """Its pages."""
        return self._each(self._source.pages)

    def progress(self) -> Progress:
        """How far it was read."""
        with hiding(self._secrets):
            return self._source.progress()

    def __getattr__(self, name: str) -> Any:
        """What only some sources have: ``is_live``, ``pages_after``."""
        found = getattr(self._source, name)
        if name != "pages_after":
            return found
        return lambda rows: self._each(lambda: found(rows))

    def _each(self, pages: Callable[[], Iterator[pa.Table]]) -> Iterator[pa.Table]:
        with hiding(self._secrets):
            following = pages()
        while True:
            with hiding(self._secrets):
                page = next(following, None)
            if page is None:
                return
            yield page
