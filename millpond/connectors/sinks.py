"""What a sink is, and what text sinks share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from millpond.errors import InputError
from millpond.schema import Schema


@dataclass(frozen=True)
class Results:
    """The query whose results a sink takes; tables have the columns ts, weight and the query's."""

    query: str
    schema: Schema
    directory: Path = Path()

    @property
    def names(self) -> list[str]:
        """The columns' names, made different from each other."""
        return unique_names(["ts", "weight", *self.schema.names])


class Sink(Protocol):
    """Takes the results of one query."""

    def write(self, table: pa.Table) -> None:
        """Adds results: columns ts, weight and the query's own."""

    def close(self) -> None:
        """Finishes what is written; nothing follows."""


def unique_names(names: list[str]) -> list[str]:
    """The names with a number after each repetition.

    >>> unique_names(["ts", "a", "ts"])
    ['ts', 'a', 'ts_2']
    """
    taken: set[str] = set()
    result = []
    for name in names:
        unique, count = name, 1
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        taken.add(unique)
        result.append(unique)
    return result


def flat(table: pa.Table, results: Results) -> pa.Table:
    """The table with names that differ from each other, as files need them."""
    return table.rename_columns(results.names)


class TextSink:
    """A text file of results; without ``append`` it replaces the file that was there."""

    def __init__(self, results: Results, file: str, append: bool) -> None:
        self.results = results
        path = results.directory / Path(file).expanduser()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.text = path.open("a" if append else "w", encoding="utf-8", newline="")
        except OSError as error:
            raise InputError(f"{results.query} INTO {file}: {error.strerror}") from None

    @property
    def has_content(self) -> bool:
        """Whether anything was written to the file before."""
        return self.text.tell() > 0

    def append_text(self, text: str) -> None:
        """Adds whole lines."""
        self.text.write(text)
        self.text.flush()

    def close(self) -> None:
        """Closes the file."""
        self.text.close()
