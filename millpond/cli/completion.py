"""What Tab offers in the shell: keywords, declared names, their columns, connectors, commands."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from millpond.catalog import Catalog
from millpond.connectors import registry
from millpond.cql.keywords import KEYWORDS

HERE = ("\\advance", "\\d", "\\push", "\\q", "\\run", "\\timing", "\\?")


class CqlCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, names: Callable[[], list[str]], commands: tuple[str, ...] = HERE) -> None:
        self._names, self._commands = names, commands

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """The words that begin as the one at the cursor does."""
        before = document.text_before_cursor
        match = re.search(r"\\?[\w?]*$", before)
        word = match[0] if match else ""
        for candidate in self._candidates(before, word):
            yield Completion(candidate, start_position=-len(word))

    def _candidates(self, before: str, word: str) -> list[str]:
        if word.startswith("\\"):
            return [command for command in self._commands if command.startswith(word)]
        wanted = word.lower()
        keywords = KEYWORDS if word.isupper() else tuple(k.lower() for k in KEYWORDS)
        found = [name for name in self._names() if name.lower().startswith(wanted)]
        if not before.lstrip().startswith("\\"):
            found += [k for k in keywords if wanted and k.lower().startswith(wanted)]
            found += [c for c in _connectors() if wanted and c.startswith(wanted)]
        return list(dict.fromkeys(found))


def names_of(catalog: Catalog) -> list[str]:
    """What is declared, and the columns of it."""
    names = [entry.name for entry in catalog.entries.values()]
    return names + sorted({c for entry in catalog.entries.values() for c in _columns(entry)})


def _columns(entry: Any) -> tuple[str, ...]:
    schema = entry.schema if hasattr(entry, "schema") else entry.plan.schema
    names: tuple[str, ...] = schema.names
    return names


def _connectors() -> list[str]:
    return sorted({*registry.names("source"), *registry.names("sink")})
