from pathlib import Path

import pytest

from tests.docs import check_docs


def test_a_link_to_a_missing_file_or_heading_is_a_fault() -> None:
    path = check_docs.ROOT / "CONTRIBUTING.md"
    text = "[a](CHANGELOG.md) [b](missing.md) [c](CHANGELOG.md#changelog) [d](CHANGELOG.md#no)"
    assert list(check_docs.faults_of_links(path, text)) == [
        "CONTRIBUTING.md: link to missing.md, which does not exist",
        "CONTRIBUTING.md: link to CHANGELOG.md#no, but there is no such heading",
    ]


def test_a_link_inside_a_code_block_is_no_link() -> None:
    text = "```\n[b](missing.md)\n```\n"
    assert not list(check_docs.faults_of_links(check_docs.ROOT / "CONTRIBUTING.md", text))


def test_a_named_file_or_target_that_is_missing_is_a_fault() -> None:
    path = check_docs.ROOT / "CONTRIBUTING.md"
    text = "`make test` `make nonsense` `millpond/schema.py` `millpond/nonsense.py`"
    assert list(check_docs.faults_of_names(path, text)) == [
        "CONTRIBUTING.md: names `millpond/nonsense.py`, which does not exist",
        "CONTRIBUTING.md: names `make nonsense`, which is no target",
    ]


def test_a_long_line_of_prose_is_a_fault() -> None:
    long = "word " * 40
    text = f"{long}\n| {long}|\n```\n{long}\n```\n{'w' * 200}\n"
    assert list(check_docs.faults_of_lines(check_docs.ROOT / "CONTRIBUTING.md", text)) == [
        "CONTRIBUTING.md, line 1: 200 characters in a line"
    ]


def test_a_module_without_introduction_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "millpond").mkdir()
    (tmp_path / "millpond" / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)
    assert list(check_docs.faults_of_modules()) == [
        "millpond/a.py: the module does not say why it exists"
    ]
