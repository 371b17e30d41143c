from __future__ import annotations

import pytest

from millpond.lab.hmts.queue_placement import CONSTRUCTIONS, SEARCH, check, measure, run
from millpond.lab.hmts.random_graphs import AS_CHOSEN


def test_claims_on_small_graphs() -> None:
    tables = run([0, 1, 2], sizes=(20, 40), drawing=AS_CHOSEN)
    found = [claim.verdict for claim in check(tables)]
    assert found[:2] == ["holds", "holds"]
    assert found[4:] == ["holds", "fails", "holds"]


def test_what_is_searched_for_is_what_is_claimed() -> None:
    margins = measure(SEARCH.found, seed=1)
    assert len(margins) == 8
    assert min(margins.values()) > 0


def verdicts(built: float = 8.0, ours: float = -0.1, printed: float = -2.0) -> str:
    table = {
        "operators": [100.0] * 4,
        "construction": list(CONSTRUCTIONS),
        "negative": [ours, printed, -1.0, -1.0],
        "positive": [1.0] * 4,
        "virtual operators": [built] * 4,
        "stalled of several": [0.0, 3.0, 0.0, 0.0],
    }
    return " ".join(claim.verdict for claim in check({"capacity": table}))


def test_very_few_is_a_tenth_at_most() -> None:
    assert verdicts(built=8.0).split()[5] == "holds"
    assert verdicts(built=11.0).split()[5] == "fails"


@pytest.mark.parametrize(
    ("ours", "printed", "expected"),
    [
        (-0.1, -0.5, "holds holds holds holds"),
        (-0.1, -2.0, "holds holds differs differs"),
        (-9.0, -2.0, "fails fails fails fails"),
    ],
)
def test_a_construction_that_stalls_more_is_noticed(
    ours: float, printed: float, expected: str
) -> None:
    assert verdicts(ours=ours, printed=printed).startswith(expected)
