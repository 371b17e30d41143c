"""Which files an engine's sources read and its sinks write, so that no two get in each other's way.

A sink that writes what a source reads would destroy its own input; two sinks in one file would
destroy each other's output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from millpond.connectors.locations import STDIN, Location, is_device
from millpond.errors import InputError, OutputError


@dataclass(frozen=True)
class Claim:
    """Files that one source or sink uses: some of them, and the rule for all."""

    owner: str
    text: str
    files: tuple[Path, ...]
    covers: Callable[[Path], bool]

    def meets(self, other: Claim) -> bool:
        """Whether both use one file; devices such as ``/dev/null`` can be shared."""
        return any(self.covers(file) for file in other.files if not is_device(file)) or any(
            other.covers(file) for file in self.files if not is_device(file)
        )


@dataclass
class Claims:
    """The claims of one engine, by the lower-case name of the stream, relation or query."""

    readers: dict[str, Claim] = field(default_factory=dict)
    writers: dict[str, Claim] = field(default_factory=dict)

    def read(self, owner: str, location: Location, files: Sequence[Path]) -> None:
        """A source reads these files; refused if a query writes one of them."""
        claim = Claim(owner, location.text, tuple(files), location.covers)
        for writer in self.writers.values():
            if claim.meets(writer):
                raise InputError(
                    f"{owner}: {location.text} is what query {writer.owner} writes to; "
                    f"DROP QUERY {writer.owner} first, or read another file"
                )
        if location.path == STDIN:
            self._refuse_second_reader_of_stdin(owner)
        self.readers[owner.lower()] = claim

    def _refuse_second_reader_of_stdin(self, owner: str) -> None:
        for key, reader in self.readers.items():
            if STDIN in reader.files and key != owner.lower():
                raise InputError(f"{owner}: standard input is read by {reader.owner} already")

    def keep_stdin(self, reader: str) -> None:
        """Standard input is for somebody who is no source, such as the shell."""
        stdin = Location("standard input", STDIN)
        self.readers[reader.lower()] = Claim(reader, stdin.text, (STDIN,), stdin.covers)

    def write(
        self, query: str, text: str, files: Sequence[Path], covers: Callable[[Path], bool]
    ) -> None:
        """A query's sink writes these files; refused if a source or another sink uses one."""
        claim = Claim(query, text, tuple(files), covers)
        for reader in self.readers.values():
            if claim.meets(reader):
                raise OutputError(
                    f"query {query} INTO {text}: {reader.owner} reads from {reader.text}, "
                    "which this would overwrite; choose another file"
                )
        for key, writer in self.writers.items():
            if key != query.lower() and claim.meets(writer):
                raise OutputError(
                    f"query {query} INTO {text}: query {writer.owner} writes to it already; "
                    "choose another file"
                )
        self.writers[query.lower()] = claim

    def release(self, owner: str) -> None:
        """Forgets what a stream, relation or query used."""
        self.readers.pop(owner.lower(), None)
        self.writers.pop(owner.lower(), None)
