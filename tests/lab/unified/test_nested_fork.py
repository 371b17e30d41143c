from __future__ import annotations

import pytest

from millpond.lab.experiment import Tables
from millpond.lab.unified import nested_fork
from millpond.lab.unified.trees import random_trees


def fork(*found: str) -> Tables:
    said = ["C+A | B", "C+A+B", "C+A+B"]
    return {"fork of C": {"longest": ["B", "C", "A"], "slopes say": said, "found": list(found)}}


def test_the_fork_of_c_is_judged_by_the_slopes() -> None:
    right = nested_fork._figure_7(fork("C+A | B", "C+A+B", "C+A+B"))
    assert [claim.verdict for claim in right] == ["holds", "holds"]
    wrong = nested_fork._figure_7(fork("C+A | B", "C+A | B", "C+A+B"))
    assert [claim.verdict for claim in wrong] == ["fails", "fails"]


@pytest.mark.parametrize(
    ("papers", "other", "expected"),
    [
        (nested_fork.PAPER, "E+D | G+H+P | C+A+B | O", "holds holds holds"),
        ("E+D | G+H+P | C+A+B | O", nested_fork.PAPER, "fails fails holds"),
        (nested_fork.PAPER, "E+D+G+H | P | C+A+B | O", "holds holds fails"),
    ],
)
def test_the_tree_is_judged_by_the_slopes(papers: str, other: str, expected: str) -> None:
    table = {"slopes say": ["the paper's", "others"], "found": [papers, other]}
    found = nested_fork._figure_8({"tree": table})
    assert " ".join(claim.verdict for claim in found) == expected


def test_no_schedule_of_a_random_tree_is_better_than_its_partition() -> None:
    areas = nested_fork._areas(random_trees([7], 10))
    assert areas["component-based"] == pytest.approx(areas["least"])
