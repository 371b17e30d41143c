"""A source whose arguments are secrets: what goes wrong in it is said without their values."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from millpond.connectors.secrets import Secret, hiding, without_secrets
from millpond.connectors.sources import Progress, Source, SourcePage


class HiddenSource:
    """The source, read in the driver: other hosts have neither the variables nor this mask."""

    reads_files = False

    def __init__(self, source: Source, secrets: list[Secret]) -> None:
        self._source, self._secrets = source, secrets
        self.ends = source.ends

    def pages(self) -> Iterator[pa.Table | SourcePage]:
        """Its pages."""
        return self._each(self._source.pages)

    def progress(self) -> Progress:
        """How far it was read."""
        with hiding(self._secrets):
            return self._source.progress()

    def __getattr__(self, name: str) -> Any:
        """What only some sources have: ``is_live``, ``pages_after``, ``pages_from``."""
        found = getattr(self._source, name)
        if name not in ("pages_after", "pages_from"):
            return found
        return lambda taken: self._each(lambda: found(taken))

    def _each(
        self, pages: Callable[[], Iterator[pa.Table | SourcePage]]
    ) -> Iterator[pa.Table | SourcePage]:
        with hiding(self._secrets):
            following = pages()
        while True:
            with hiding(self._secrets):
                page = next(following, None)
            if page is None:
                return
            yield self._masked(page)

    def _masked(self, page: pa.Table | SourcePage) -> pa.Table | SourcePage:
        if not isinstance(page, SourcePage) or not page.bad:
            return page
        said = [
            replace(
                each,
                offset=without_secrets(each.offset, self._secrets),
                reason=without_secrets(each.reason, self._secrets),
            )
            for each in page.bad
        ]
        return replace(page, bad=tuple(said))
