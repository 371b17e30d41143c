"""Runs the example of docs/adding_a_strategy.md as its reader would."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from millpond.scheduling import registry

GUIDE = Path(__file__).parents[2] / "docs" / "adding_a_strategy.md"


@pytest.fixture
def blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The guide's Python, its strategy installed under the entry point it names."""
    text = GUIDE.read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    name, value = re.findall(r'^([\w-]+) = "(my_package.*)"$', text, re.MULTILINE)[0]
    module, _ = value.split(":")
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / f"{module.split('.')[1]}.py").write_text(found[0], encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    offered = EntryPoints([EntryPoint(name, value, registry.GROUP)])
    monkeypatch.setattr(registry, "entry_points", lambda group: offered)
    registry._offers.cache_clear()
    yield found
    registry._offers.cache_clear()


def test_the_example_of_the_guide_runs(
    blocks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, object] = {}
    for block in blocks[1:]:
        exec(block, names)
    peak, latency, switches = map(float, capsys.readouterr().out.split())
    assert (peak, switches) == (200.0, 4.0)
    assert 0 < latency < 4
    assert "heaviest-first" in registry.names()


def test_a_strategy_that_cannot_be_loaded_says_where_it_was_looked_for(
    blocks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = EntryPoints([EntryPoint("lost", "nowhere:Lost", registry.GROUP)])
    monkeypatch.setattr(registry, "entry_points", lambda group: lost)
    registry._offers.cache_clear()
    with pytest.raises(registry.StrategyError, match=r"\(nowhere:Lost\) cannot be loaded"):
        registry.make("lost")
