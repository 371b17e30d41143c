import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from millpond.cli import serving
from millpond.cli.checking import checked
from millpond.demo import side_by_side
from millpond.demo import text as demo
from millpond.settings import Settings

EXAMPLES = sorted(Path(__file__).parents[2].joinpath("examples").glob("*.cql"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.name)
def test_every_example_passes_the_check(script: Path) -> None:
    assert list(checked(script.read_text(), Settings()))


def test_the_dashboard_keeps_the_newest_count() -> None:
    dashboard = demo.Dashboard()
    table = pa.table({"ts": [1, 1, 2, 2], "weight": [-1, 1, 1, -1], "requests": [0, 1, 2, 1]})
    dashboard.changed("stanford", table)
    dashboard.changed("traffic", table)
    assert dashboard.counts["stanford"] == 2
    assert list(dashboard.half_hours) == [1, 2]


def test_the_dashboard_collects_urls_and_fits_one_line() -> None:
    dashboard = demo.Dashboard()
    dashboard.emitted(pa.table({"ts": [1], "weight": [1], "url": ["http://x/"]}))
    assert list(dashboard.urls) == ["http://x/"]
    assert "shopping URLs:     1" in dashboard.line()
    assert "\n" not in dashboard.line()


def test_the_demo_brings_the_example_along() -> None:
    shown = (Path(__file__).parents[2] / "examples/stream_examples.cql").read_text()
    assert demo.SCRIPT.read_text() == shown


def test_without_a_terminal_a_line_is_said_only_if_something_has_changed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "LINE_SECONDS", 0.0)
    dashboard = demo.Dashboard()
    for _ in range(3):
        dashboard.say()
    dashboard.counts["stanford"] = 7
    dashboard.say()
    first, second = capsys.readouterr().out.splitlines()
    assert "last day:      0" in first
    assert "last day:      7" in second


@pytest.mark.slow
def test_a_burst_is_compared_side_by_side_and_ends(capsys: pytest.CaptureFixture[str]) -> None:
    side_by_side.main(seconds=3.5)
    *lines, last = capsys.readouterr().out.splitlines()
    assert all("FIFO: " in line and "Chain: " in line for line in lines)
    assert lines
    assert re.fullmatch(r"Under FIFO [\d.]+ times as much waited .*", last)


@pytest.mark.parametrize(
    ("is_terminal", "screen", "as_text"),
    [(True, ":0", False), (True, "", True), (False, ":0", True), (False, "", True)],
)
def test_the_demo_is_a_page_only_where_somebody_sees_it(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, screen: str, as_text: bool
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal, raising=False)
    monkeypatch.setenv("DISPLAY", screen)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("BROWSER", "true")
    assert serving.is_shown_as_text() is as_text
