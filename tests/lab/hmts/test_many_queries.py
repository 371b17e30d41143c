from __future__ import annotations

import pytest

from millpond.lab.hmts.many_queries import COLUMNS, check, run


@pytest.mark.parametrize(
    ("ots", "verdict"),
    [([1.4, 5.0, 20.0], "holds"), ([1.4, 4.0, 10.0], "differs"), ([1.4, 1.5, 4.0], "fails")],
)
def test_a_ratio_that_stays_after_the_second_query_differs(ots: list[float], verdict: str) -> None:
    table = dict(zip(COLUMNS, ([1.0, 2.0, 5.0], ots, ots), strict=True))
    assert check({"seconds": {"queries": [1, 2, 5], **table}})[0].verdict == verdict


def test_the_gap_grows_with_the_queries() -> None:
    claim = check(run([0], queries=(1, 2, 6), elements=20_000))[0]
    assert claim.verdict == "differs"
