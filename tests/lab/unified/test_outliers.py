from __future__ import annotations

import pytest

from millpond.lab.experiment import Table
from millpond.lab.unified import latency_outliers, memory_outliers
from millpond.lab.unified.outliers import claims


@pytest.mark.parametrize("figure", [latency_outliers, memory_outliers])
def test_component_based_is_near_mss_and_the_others_are_not(figure: object) -> None:
    tables = figure.run([0], percents=(0, 10))  # type: ignore[attr-defined]
    found = figure.check(tables)[:5]  # type: ignore[attr-defined]
    assert [claim.verdict for claim in found] == ["holds"] * 5


def table(greedy: float = 1.5, components: float = 1.0, robin: float = 1.4) -> Table:
    """Three seeds without outliers and with; so many times MSS with them."""
    mss = [100.0] * 3 + [120.0] * 3
    found = {"seed": [1.0, 2.0, 3.0] * 2, "percent": [0.0] * 3 + [10.0] * 3, "MSS": mss}
    found["per-tuple greedy"] = [100.0] * 3 + [120.0 * greedy] * 3
    found["component-based"] = [100.0] * 3 + [120.0 * components] * 3
    for quantum in (30, 60, 90):
        found[f"round-robin {quantum}"] = [each * robin for each in mss]
    return found


def verdicts(made_up: Table) -> str:
    return " ".join(claim.verdict for claim in claims(made_up, "latency", 0.04, "near"))


def test_what_the_text_says_of_both_figures_can_differ_and_fail() -> None:
    assert verdicts(table()) == "holds holds holds holds holds"
    assert verdicts(table(components=1.05)) == "fails holds holds holds holds"
    assert verdicts(table(greedy=1.0)) == "holds holds fails holds holds"
    assert verdicts(table(robin=1.1)) == "holds holds holds differs holds"
    assert verdicts(table(robin=1.0)) == "holds holds holds fails holds"


@pytest.mark.parametrize(
    ("greedy", "verdict"), [(1.5, "holds"), (1.3, "differs"), (1.8, "differs"), (1.1, "fails")]
)
def test_up_to_50_percent_is_about_50_percent(greedy: float, verdict: str) -> None:
    assert latency_outliers.check({"latency": table(greedy)})[5].verdict == verdict
