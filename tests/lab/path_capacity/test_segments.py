from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from millpond.lab.experiment import Claim
from millpond.lab.path_capacity import segments
from millpond.lab.path_capacity.segments import SENTENCES, SERVICE, Compared
from millpond.lab.path_capacity.workload import Setting


def test_every_strategy_is_measured_and_drawn() -> None:
    tables = segments.run([0], Setting((0.5, 1.1), 5.0))
    segments.plot(tables, Figure())
    assert tables["runs"]["strategy"] == list(SERVICE)
    assert len(segments.check(tables)) == len(SENTENCES)


def claim(sentence: Compared, ratios: list[float]) -> Claim:
    names = (sentence.strategy, sentence.other)
    table = {"strategy": [name for _ in ratios for name in names]}
    table[sentence.measure] = [each for ratio in ratios for each in (ratio, 1.0)]  # type: ignore[misc]
    return segments._claim({"runs": table}, sentence)


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([0.9] * 10, "holds"),
        ([0.9] * 9 + [1.1], "holds"),
        ([0.9] * 8 + [1.1] * 2, "differs"),
        ([1.5] * 10, "differs"),
        ([0.7] * 7 + [1.3] * 3, "fails"),
    ],
)
def test_a_sentence_is_so_on_nine_seeds_of_ten(ratios: list[float], verdict: str) -> None:
    smaller = Compared("latency", "segment", "chain", "smaller", most=1.0, why="so")
    assert claim(smaller, ratios).verdict == verdict


def test_what_has_no_reason_to_differ_fails() -> None:
    larger = Compared("latency", "fifo", "path-capacity", "larger", 1.0)
    assert claim(larger, [0.5] * 10).verdict == "fails"
