"""Checks the documents: links lead somewhere, named files and targets exist, modules say why.

Run by `make check`; needs no JVM. Prints one line a fault and exits 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TARGET = re.compile(r"`make ([a-z-]+)")
NAMED_FILE = re.compile(r"`((?:millpond|tests|docs|examples|benchmarks)/[\w./-]*\w)`")
LONGEST_DOCSTRING_LINES = 12
LONGEST_LINE = 140
NO_PROSE = ("|", "#", "!")
"""What a table, a heading or a picture begins with."""


def documents() -> list[Path]:
    """All Markdown files of the project."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])


def faults_of_links(path: Path, text: str) -> Iterator[str]:
    """Relative links to files or headings that do not exist."""
    for match in LINK.finditer(FENCE.sub("", text)):
        target = match[1] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f"{path.relative_to(ROOT)}: link to {target}, which does not exist"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield f"{path.relative_to(ROOT)}: link to {target}, but there is no such heading"


def anchors(text: str) -> set[str]:
    """The link names of a document's headings.

    >>> sorted(anchors("# A b, c\\n## D"))
    ['a-b-c', 'd']
    """
    headings = re.findall(r"^#+\s+(.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def faults_of_names(path: Path, text: str) -> Iterator[str]:
    """Files and make targets that a document names but the project lacks."""
    for name in NAMED_FILE.findall(text):
        if not (ROOT / name).exists():
            yield f"{path.relative_to(ROOT)}: names `{name}`, which does not exist"
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for name in TARGET.findall(text):
        if name not in targets:
            yield f"{path.relative_to(ROOT)}: names `make {name}`, which is no target"


def faults_of_lines(path: Path, text: str) -> Iterator[str]:
    """Lines of prose that are too long to be read, but those of one word."""
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        in_code ^= line.lstrip().startswith("```")
        is_prose = not in_code and not line.startswith(NO_PROSE) and len(line.split()) > 2
        if is_prose and len(line) > LONGEST_LINE:
            yield f"{path.relative_to(ROOT)}, line {number}: {len(line)} characters in a line"


def faults_of_modules() -> Iterator[str]:
    """Modules without an introduction, or with one that is too long."""
    for path in sorted(ROOT.glob("millpond/**/*.py")):
        text = path.read_text()
        docstring = ast.get_docstring(ast.parse(text))
        if text.strip() and not docstring:
            yield f"{path.relative_to(ROOT)}: the module does not say why it exists"
        elif docstring and docstring.count("\n") >= LONGEST_DOCSTRING_LINES:
            yield f"{path.relative_to(ROOT)}: the module's introduction is too long"


def faults() -> list[str]:
    """Everything that is wrong, one line each."""
    found = [fault for path in documents() for fault in faults_of_links(path, path.read_text())]
    found += [fault for path in documents() for fault in faults_of_lines(path, path.read_text())]
    found += [
        fault
        for path in documents()
        if path.name != "CHANGELOG.md"
        for fault in faults_of_names(path, path.read_text())
    ]
    return found + list(faults_of_modules())


if __name__ == "__main__":
    lines = faults()
    sys.stdout.write("".join(f"{line}\n" for line in lines) or "docs: no faults\n")
    sys.exit(bool(lines))
