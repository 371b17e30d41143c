"""Reads the text fixtures of this folder: cases that begin with ``== title``, in two parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from millpond.catalog import Catalog
from millpond.cql.apply import apply
from millpond.cql.check.statements import check_script

FOLDER = Path(__file__).parent / "fixtures"


@dataclass(frozen=True)
class Fixture:
    """A statement and what is expected of it."""

    file: str
    title: str
    text: str
    expected: str

    def __str__(self) -> str:
        return f"{self.file}: {self.title}"


def load(*names: str) -> list[Fixture]:
    """The fixtures of some files."""
    return [fixture for name in names for fixture in read(name)]


def read(name: str) -> list[Fixture]:
    """The fixtures of one file; the parts of a case are divided by a line of two dashes."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    found = []
    for chunk in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        title, _, body = chunk.partition("\n")
        statement, _, expected = body.partition("\n--\n")
        found.append(Fixture(name, title, statement, expected.strip("\n")))
    return found


def declared() -> Catalog:
    """A catalog with the names that the fixtures use."""
    catalog = Catalog()
    script = (FOLDER / "declarations.cql").read_text(encoding="utf-8")
    for statement in check_script(script, catalog):
        apply(statement.action, catalog)
    return catalog
