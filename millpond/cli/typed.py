"""What was typed in the shell so far, so that a bare SELECT can see all of it from its start.

Declarations come first, then the SELECT, then what was fed in: a query sees what comes after it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from millpond.facade.engine import Engine

Feed: TypeAlias = Callable[[Engine], None]
"""Feeds an engine once more with what was fed in."""


@dataclass
class Typed:
    """Declarations and feeds in their order, each with the name that it is about, if any."""

    _declarations: list[tuple[str | None, str]] = field(default_factory=list)
    _feeds: list[tuple[str, Feed]] = field(default_factory=list)

    def declare(self, text: str, name: str | None = None) -> None:
        """Remembers a statement that declares a name, or one that sets something."""
        self._declarations.append((_key(name), text))

    def feed(self, name: str, feed: Feed) -> None:
        """Remembers what was fed into a stream or relation."""
        self._feeds.append((name.lower(), feed))

    def forget(self, name: str) -> None:
        """Forgets a name that was dropped, and what was fed into it."""
        self._declarations = [each for each in self._declarations if each[0] != _key(name)]
        self._feeds = [each for each in self._feeds if each[0] != _key(name)]

    def replay(self, engine: Engine, query: str) -> None:
        """Does it all again in another engine, with the query in its place."""
        for _, text in self._declarations:
            engine.execute(text)
        engine.execute(query)
        for _, feed in self._feeds:
            feed(engine)


def _key(name: str | None) -> str | None:
    return None if name is None else name.lower()
