"""The examples of the documents run, and print what the documents say they print."""

from __future__ import annotations

import json
import re

import pytest

from millpond import Engine
from millpond.cli import main
from tests.docs.check_docs import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITH_PYTHON = ["README.md", "docs/python_api.md", "docs/connectors.md", "docs/constraints.md"]
WITH_PYTHON += ["docs/punctuation.md"]


def blocks(name):
    """(language, text) of each block of a document."""
    return BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))


def printed(block, names, capsys):
    """What a block prints."""
    exec(compile(block, "example", "exec"), names)
    return capsys.readouterr().out


def without_spacing(text):
    """Lines with runs of blanks made one, so that the width of a table does not matter."""
    return [" ".join(line.split()) for line in text.strip().splitlines()]


@pytest.mark.parametrize("document", WITH_PYTHON)
def test_python_examples_print_what_follows_them(spark, capsys, document):
    names, found = {}, blocks(document)
    for (language, text), (after, expected) in zip(found, [*found[1:], ("", "")], strict=True):
        if language == "python":
            output = printed(text, names, capsys)
            wanted = expected if after == "text" else ""
            assert without_spacing(output) == without_spacing(wanted)


def test_all_documents_with_python_examples_are_run():
    """Strategies, bounds, and the client of a server have tests of their own for their guides."""
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    found = {str(d.relative_to(ROOT)) for d in documents if "```python" in d.read_text()}
    elsewhere = {
        "docs/adding_a_strategy.md", "docs/precision.md", "docs/scheduling.md", "docs/server.md",
    }  # fmt: skip
    assert found - elsewhere == set(WITH_PYTHON)


def test_the_first_query_of_the_readme(spark, tmp_path, monkeypatch, capsys):
    shell = next(text for language, text in blocks("README.md") if language == "sh")
    for name, content in re.findall(r"^cat > (\S+) <<END\n(.*?)^END$", shell, re.M | re.S):
        (tmp_path / name).write_text(content)
    command = re.search(r"^\.venv/bin/millpond (.*)$", shell, re.M)[1]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as left:
        main(command.split())
    assert left.value.code == 0
    lines = next(text for language, text in blocks("README.md") if language == "text")
    actual = capsys.readouterr().out
    assert elements(actual) == elements(lines)
    assert [e["ts"] for e in map(json.loads, actual.splitlines())] == [2, 4, 7, 7, 8, 9, 10, 15]


def elements(lines):
    """The elements in a fixed order: at one instant they come in any."""
    return sorted(map(json.loads, lines.splitlines()), key=lambda e: (e["ts"], e["weight"]))


def test_the_examples_of_the_language_run(spark):
    """Every query of the language's page, as one script over a few tuples."""
    requests = [
        {
            "client_id": n % 3, "domain": ("stanford.edu", "shop.example", None)[n % 3],
            "url": f"http://cs.stanford.edu/{n}", "bytes": 700_000 * n,
            "ts": f"2026-01-01 00:00:{n:02d}",
        }
        for n in range(6)
    ]  # fmt: skip
    sensors = [(1_767_225_600 + n, "hall", 20.0 + n, n % 2 == 0) for n in range(6)]
    now = "2026-01-01 00:00:00"
    buyer = {"name": "Ann", "home": {"city": "Stanford", "zip": "94305"}}
    with Engine(spark=spark) as engine:
        texts = [text for language, text in blocks("docs/cql.md") if language == "cql"]
        for text in texts:
            engine.execute(text)
        names = [row["name"] for row in engine.show("queries").to_pylist()]
        engine.push("Requests", requests)
        engine.push("Sensors", sensors)
        engine.push("Orders", [(1, ["urgent"], ["9.50", "12.00"], now)])
        engine.push("Carts", [(1, buyer, [{"sku": "a", "price": "9.50"}], now)])
        engine.push("Readings", [("d", {"temperature": 20.5, "humidity": 0.95}, now)])
        engine.finish()
        answered = [name for name in names if engine.results(name).num_rows]
    assert len(names) > 20
    assert len(answered) > 0.7 * len(names)
