"""Whether a store is sound: its mark, its log and every file that the log knows are read through.

No engine is needed for that: the log says of every file how long it is and what its checksum is,
and which are gone.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from millpond.errors import DamageError, StateError
from millpond.storage.formats import FORMAT, Record
from millpond.storage.lease import NAME as LEASE
from millpond.storage.lease import alone, locked
from millpond.storage.log import (
    NO_BEGINNING,
    Framing,
    LogEnd,
    check_first,
    framing_of,
    records_in,
)
from millpond.storage.mark import LOG, NAME, Mark
from millpond.storage.store import END, FOLDERS, is_own
from millpond.storage.sums import Sum, difference


@dataclass
class Findings:
    """What a store was found to be."""

    directory: Path
    identity: str | None = None
    """The number of the store, if mark or log says it."""
    version: int = FORMAT
    """The format of the log."""
    framing: Framing = field(default_factory=lambda: Framing([], 0))
    records: list[Record] = field(default_factory=list)
    """What the log says, as far as it is sound."""
    sums: dict[str, Sum] = field(default_factory=dict)
    """The files that it knows."""
    faults: dict[str, str] = field(default_factory=dict)
    """What is wrong, by file."""
    foreign: list[str] = field(default_factory=list)
    """What lies in our folders and is not ours."""
    left: list[str] = field(default_factory=list)
    """What steps have written that were never committed."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever done with it."""
        return not self.framing.bounds and not self.faults

    def told(self) -> list[str]:
        """The findings, line by line."""
        size = sum(sum_.bytes for sum_ in self.sums.values())
        lines = [
            f"store {self.identity or 'of unknown number'} in {self.directory}",
            f"log: {len(self.framing.bounds)} sound records, {self.framing.end} bytes of "
            + str(self.framing.length),
            f"files: {len(self.sums)} with {size} bytes",
            f"format {self.version}, {self._written_by()}",
        ]
        lines += [f"damaged: {name}: {self.told_of(name)}" for name in self.faults]
        if self.left:
            why = "that its sound part does not know" if LOG in self.faults else "never committed"
            lines.append(f"{len(self.left)} more files, {why}")
        lines += [f"not of the store, left alone: {name}" for name in self.foreign]
        lines.append("sound" if self.is_sound else f"damaged in {len(self.faults)} places")
        if self.is_sound and self.version < FORMAT:
            lines.append(f'"millpond store upgrade {self.directory}" brings it to format {FORMAT}')
        return lines

    def _written_by(self) -> str:
        runs = [record for record in self.records if record["kind"] == "open"]
        said = runs[-1].get("millpond") if runs else None
        return f"last opened by Millpond {said or 'of before that was said'}"

    def told_of(self, name: str) -> str:
        """What is wrong with a file, and what it holds."""
        held = _held(self.records, name)
        return self.faults[name] + (f"; {held}" if held else "")


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Nobody else has a store open meanwhile."""
    if not directory.is_dir():
        raise StateError(f"{directory}: there is no such directory")
    lock = locked(directory)
    if lock is None:
        raise StateError(f"store {directory}: an engine has it open; stop that one first")
    is_there = (directory / LEASE).exists() and os.access(directory, os.W_OK)
    try:
        with alone(directory, lock) if is_there else nullcontext():
            yield
    finally:
        os.close(lock)


def check(directory: Path) -> Findings:
    """Reads a store through; what is no store at all is refused."""
    found = Findings(directory)
    mark = _look_at_mark(found)
    if mark is None and not found.faults and not (directory / LOG).is_file():
        raise StateError(f"{directory}: this is no store of Millpond: it has no {NAME}")
    if mark is not None and not mark.has_log:
        return found
    if mark is None and not found.faults:
        found.faults[NAME] = "is missing"
    _look_at_log(found)
    _look_at_files(found)
    return found


def _look_at_mark(found: Findings) -> Mark | None:
    try:
        mark = Mark.found(found.directory)
    except DamageError:
        found.faults[NAME] = "is damaged"
        return None
    found.identity = None if mark is None else mark.identity
    return mark


def _look_at_log(found: Findings) -> None:
    end = _look_at_end(found)
    try:
        content = (found.directory / LOG).read_bytes()
    except OSError as error:
        found.faults[LOG] = error.strerror or "cannot be read"
        return
    found.framing = framing_of(content, end)
    if found.framing.damage is not None:
        found.faults[LOG] = found.framing.damage
    if not found.framing.bounds:
        return
    groups = [records_in(content, each) for each in found.framing.bounds]
    first = groups[0][0]
    found.version = first.get("version", FORMAT)
    if "version" not in first:
        found.faults[LOG] = NO_BEGINNING
        found.framing.bounds.clear()
        return
    try:
        check_first(found.directory / LOG, first, found.identity or "", reads_older=True)
    except DamageError:
        found.faults[LOG] = f"is the log of store {first['store']}, not of {found.identity}"
    found.identity = found.identity or first["store"]
    found.records = [record for group in groups[1:] for record in group]


def _look_at_end(found: Findings) -> int | None:
    try:
        return LogEnd.read(found.directory / END)
    except DamageError:
        there = (found.directory / END).exists()
        found.faults[END] = "is damaged" if there else "is missing"
        return None


def _look_at_files(found: Findings) -> None:
    for record in found.records:
        if record["kind"] == "files":
            found.sums |= {name: Sum(*sum_) for name, *sum_ in record["made"]}
            for name in record["gone"]:
                found.sums.pop(name, None)
    for name, sum_ in sorted(found.sums.items()):
        fault = difference(found.directory / name, sum_)
        if fault is not None:
            found.faults[name] = fault
    for name in _files(found.directory):
        if found.identity is None or not is_own(found.identity, Path(name).name):
            found.foreign.append(name)
        elif name not in found.sums:
            found.left.append(name)


def _files(directory: Path) -> list[str]:
    folders = [directory / name for name in FOLDERS if (directory / name).is_dir()]
    return sorted(f"{f.name}/{entry.name}" for f in folders for entry in f.iterdir())


def _held(records: list[Record], name: str) -> str | None:
    """What a file holds, as the last record says that speaks of it."""
    for record in reversed(records):
        if record["kind"] != "files" and f'"{name}"' in json.dumps(record):
            return f"{_KINDS.get(record['kind'], record['kind'])} {_owner(record)}"
    return None


_KINDS = {
    "page": "input of",
    "compact": "input of",
    "queue": "input or output of",
    "repaged": "results of query",
    "stream": "late tuples of stream",
    "late": "late tuples of stream",
    "step": "output or state of operator",
    "operator": "state of operator",
    "results": "results of query",
    "taken_back": "results of query",
}


def _owner(record: Record) -> Any:
    return next(
        (record[key] for key in ("queue", "operator", "query", "late", "name") if key in record), ""
    )
