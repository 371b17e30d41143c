"""`docs/papers.md` says of each statement of the papers what checks it, and no more than is so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from millpond.lab.catalogue import everything
from millpond.lab.record import RECORD, read

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "docs" / "papers.md"
NO_ENTRY = "no entry yet"
ENTRY = re.compile(r"`([a-z0-9-]+)`((?: \"[^\"]+\")*)")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
RECORDED = read(RECORD)
COUNTED = re.compile(r"^\| (.+?) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", re.MULTILINE)


class Statement(NamedTuple):
    paper: str
    section: str
    says: str
    checked: str
    verdict: str

    @property
    def is_live(self) -> bool:
        """Whether it is measured by the clock of a machine, so that no verdict is recorded."""
        groups = {everything()[name].group for name, _ in ENTRY.findall(self.checked)}
        return groups == {"live"}

    @property
    def claims(self) -> list[tuple[str, str]]:
        """The recorded claims that check it."""
        found = []
        for name, quoted in ENTRY.findall(self.checked):
            parts = re.findall(r'"([^"]+)"', quoted)
            texts = [
                text
                for text in RECORDED.get(name, {})
                if not parts or any(each in text for each in parts)
            ]
            found += [(name, text) for text in texts]
        return found


def statements() -> list[Statement]:
    return list(_rows(LIST.read_text(encoding="utf-8")))


def _rows(text: str) -> Iterator[Statement]:
    paper = ""
    for line in text.splitlines():
        if line.startswith("## "):
            paper = line[3:]
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and len(cells) == 4 and cells[0] not in ("section", "---"):
            yield Statement(paper, *cells)


ALL = statements()


def of(kind: str) -> list[Statement]:
    if kind == "none":
        return [each for each in ALL if each.checked == NO_ENTRY]
    tested = [each for each in ALL if TEST.search(each.checked)]
    if kind == "test":
        return tested
    return [each for each in ALL if each.checked != NO_ENTRY and each not in tested]


def test_every_statement_has_an_entry_or_says_that_it_has_none() -> None:
    assert len(ALL) > 180
    for each in of("entry"):
        assert ENTRY.match(each.checked), each
        for name, _ in ENTRY.findall(each.checked):
            assert name in everything(), each


def test_each_entry_has_the_claims_that_are_named() -> None:
    for each in of("entry"):
        if each.is_live:
            continue
        for name, quoted in ENTRY.findall(each.checked):
            for part in re.findall(r'"([^"]+)"', quoted):
                assert any(part in text for text in RECORDED.get(name, ())), (name, part)


def test_verdicts_are_those_recorded() -> None:
    for each in of("entry"):
        if each.is_live:
            assert each.verdict in ("live: holds", "live: differs")
            continue
        verdicts = [RECORDED[name][text] for name, text in each.claims]
        assert each.verdict == told(verdicts.count("holds"), verdicts.count("differs")), each


def told(holds: int, differs: int) -> str:
    if not differs:
        return "holds"
    return f"holds {holds}, differs {differs}" if holds else "differs"


@pytest.mark.parametrize(("kind", "verdict"), [("none", "–"), ("test", "holds")])
def test_what_is_no_entry_has_no_recorded_verdict(kind: str, verdict: str) -> None:
    assert {each.verdict for each in of(kind)} <= {verdict}


def test_tests_that_are_named_exist() -> None:
    for each in of("test"):
        found = TEST.search(each.checked)
        assert found is not None
        assert f"def {found[2]}(" in (ROOT / found[1]).read_text(encoding="utf-8"), each


def test_every_recorded_claim_stands_in_the_list() -> None:
    listed = {claim for each in ALL for claim in each.claims}
    recorded = {(name, text) for name, claims in RECORDED.items() for text in claims}
    assert {name for name, _ in recorded - listed} <= {"plane", "joins-eviction"}


def test_the_counts_are_those_of_the_list() -> None:
    counted = {row[0]: tuple(map(int, row[1:])) for row in COUNTED.findall(LIST.read_text())}
    papers = dict.fromkeys(each.paper for each in ALL)
    assert counted == {
        paper: (
            sum(each.paper == paper for each in ALL),
            *(
                sum(each.paper == paper and each in of(kind) for each in ALL)
                for kind in ("entry", "test", "none")
            ),
            sum(each.paper == paper and "differs" in each.verdict for each in ALL),
        )
        for paper in papers
    }
