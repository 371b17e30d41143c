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


def test_the_readme_counts_the_strategies_and_all_drive_spark() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (count,) = re.findall(r"(\w+) strategies, those of [^.]*, drive a simulator and Spark", readme)
    assert {"Nineteen": 19}[count] == len(BUILT_IN) == len(driving_spark())


@pytest.mark.parametrize("text", WRITTEN)
def test_every_strategy_written_out_can_drive_an_engine(text: str) -> None:
    assert text.count("(") == text.count(")")
    engine_strategy(text, budget_bytes=2**30)


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0], {})
    peak, mean, high = map(float, capsys.readouterr().out.split())
    assert peak > 1
    assert 0.01 < mean < high
