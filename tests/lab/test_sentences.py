from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from millpond.lab.hmts import section_6_6
from millpond.lab.path_capacity import figure_sentences, plans, threshold_factor
from millpond.lab.sentences import Otherwise, Sentence, judged, limits, margins, measured


def doubled(value: float) -> float:
    return 2 * value


TALL = Sentence("tall", "twice the height", doubled, 4.0, 8.0, Otherwise("short legs", 1.0))
WIDE = Sentence("wide", "twice the width", doubled, most=2.0)


@pytest.mark.parametrize(("height", "margin"), [(2.0, 1.0), (4.0, 1.0), (1.0, 0.5), (8.0, 0.5)])
def test_a_sentence_stands_between_its_limits(height: float, margin: float) -> None:
    assert TALL.margin(height) == margin
    assert margins([TALL], height) == {"twice the height": margin}


@pytest.mark.parametrize(
    ("heights", "expected"),
    [
        ([2.0] * 9 + [9.0], "holds"),
        ([2.0] * 8 + [9.0] * 2, "differs"),
        ([2.0] * 8 + [0.1] * 2, "fails"),
    ],
)
def test_it_is_judged_seed_by_seed(heights: list[float], expected: str) -> None:
    (claim,) = judged([TALL], measured([TALL], heights), "source: none; ")
    assert claim.text == "source: none; twice the height"
    assert claim.expected == '"tall": 4 to 8'
    assert claim.verdict == expected


def test_without_another_limit_it_fails() -> None:
    assert WIDE.judged([3.0]).verdict == "fails"
    assert WIDE.judged([1.0]).verdict == "holds"


def test_limits_are_told() -> None:
    assert limits(2.0, float("inf")) == "at least 2"
    assert limits(0.0, 1 / 3) == "at most 0.333"
    assert limits(1.0, 1.2) == "1 to 1.2"


@pytest.mark.parametrize(
    "sentences",
    [figure_sentences.ALL, section_6_6.SENTENCES, plans.SENTENCES, threshold_factor.SENTENCES],
)
def test_what_stands_instead_has_limits_and_is_not_the_sentence(
    sentences: Sequence[Sentence[Any]],
) -> None:
    for each in sentences:
        if each.otherwise is not None:
            _, least, most = each.otherwise
            assert least > 0 or most < float("inf"), each.text
            assert not (least >= each.least and most <= each.most), each.text
