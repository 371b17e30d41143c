"""The examples of docs/precision.md run, in order, and print what it says."""

import re
from pathlib import Path

GUIDE = (Path(__file__).parents[2] / "docs" / "precision.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_examples_print_what_follows_them(capsys):
    names = {}
    for text, expected in EXAMPLES:
        exec(compile(text, "docs/precision.md", "exec"), names)
        assert capsys.readouterr().out == expected


def test_no_example_is_left_out():
    assert len(EXAMPLES) == GUIDE.count("```python") > 3
