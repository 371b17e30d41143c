"""What docs/scheduling.md says of the strategies is true."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from millpond.scheduling.registry import BUILT_IN, find
from millpond.scheduling.strategy_text import driving_spark, engine_strategy

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "scheduling.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (`.*?) \|.*\| (.*?)\|$", GUIDE, re.MULTILINE)
WRITTEN = re.findall(r"""(?:SET strategy = |--strategy |"strategy": )['"](.*?)['"]""", GUIDE)


def test_every_strategy_is_in_the_table() -> None:
    named = {name for cell, _ in ROWS for name in re.findall(r"`([\w-]+)`", cell)}
    assert named == set(BUILT_IN)


@pytest.mark.parametrize(("cell", "settings"), ROWS)
def test_the_settings_named_exist(cell: str, settings: str) -> None:
    names = re.findall(r"`([\w-]+)`", cell)
    known = {each for name in names for each in inspect.signature(find(name)).parameters}
    assert set(re.findall(r"`(\w+)`", settings)) <= known


def test_simulator_only_are_those_that_an_engine_refuses() -> None:
    lines = [line for line in GUIDE.splitlines() if "(simulator only)" in line]
    named = {name for line in lines for name in re.findall(r"`([\w-]+)`", line.split("|")[1])}
    assert named == set(BUILT_IN) - set(driving_spark())


def test_the_readme_counts_the_strategies() -> None:
    words = {"seventeen": 17, "Nineteen": 19}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    all_, driving = re.findall(r"(\w+) strategies, those of .*?, and (\w+) of them Spark", readme)[
        0
    ]
    assert (words[all_], words[driving]) == (len(BUILT_IN), len(driving_spark()))


@pytest.mark.parametrize("text", WRITTEN)
def test_every_strategy_written_out_can_drive_an_engine(text: str) -> None:
    assert text.count("(") == text.count(")")
    engine_strategy(text, budget_bytes=2**30)


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0], {})
    peak, mean, high = map(float, capsys.readouterr().out.split())
    assert peak > 1
    assert 0.01 < mean < high
