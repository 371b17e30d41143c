from pathlib import Path

import pyarrow as pa
import pytest

from millpond.cli.checking import checked
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
