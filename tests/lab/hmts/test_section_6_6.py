from __future__ import annotations

from millpond.lab.experiment import Table
from millpond.lab.hmts.section_6_6 import (
    _fifo_earlier,
    _gts_ends,
    _hmts_earlier,
    _hmts_ends,
    _memory,
    check,
)

SUMMARY = {
    "source": ["same thread"] * 3 + ["autonomous"] * 3,
    "strategy": ["fifo", "chain", "hmts"] * 2,
    "reaching": [50] * 6,
    "emission_seconds": [160.0] * 6,
    "finished_seconds": [260.0, 260.0, 161.0, 260.0, 260.0, 161.0],
    "mean_elements": [500.0, 100.0, 90.0] * 2,
    "mean_result_seconds": [100.0, 130.0, 60.0] * 2,
}


def changed(**columns: list[float]) -> Table:
    return {**SUMMARY, **columns}


def test_the_papers_own_numbers_hold() -> None:
    claims = check({"summary": SUMMARY})
    assert [claim.text for claim in claims if claim.verdict != "holds"] == []


def test_gts_ends_are_compared_with_the_papers_and_with_the_models() -> None:
    late = changed(reaching=[64] * 6, finished_seconds=[288.0, 310.0, 161.0, 161.0, 230.0, 161.0])
    assert _gts_ends(late, "same thread", "fifo").verdict == "differs"
    assert _gts_ends(late, "same thread", "chain").verdict == "fails"
    assert _gts_ends(late, "autonomous", "fifo").verdict == "differs"
    assert _gts_ends(late, "autonomous", "chain").verdict == "fails"


def test_hmts_ends_within_two_seconds_or_differs() -> None:
    for end, expected in ((161.0, "holds"), (165.0, "differs"), (190.0, "fails")):
        table = changed(finished_seconds=[end] * 6)
        assert _hmts_ends(table, "autonomous")[1].verdict == expected
    assert _hmts_ends(changed(finished_seconds=[190.0] * 6), "autonomous")[0].verdict == "fails"


def test_slightly_below_is_less_than_a_fifth() -> None:
    for ours, expected in ((90.0, "holds"), (10.0, "differs"), (70.0, "fails"), (120.0, "fails")):
        table = changed(mean_elements=[500.0, 100.0, ours] * 2)
        assert _memory(table, "autonomous").verdict == expected


def test_earlier_results_are_earlier() -> None:
    for fifo, expected in ((100.0, "holds"), (130.0, "differs"), (140.0, "fails")):
        assert (
            _fifo_earlier(changed(mean_result_seconds=[fifo, 130.0, 60.0] * 2)).verdict == expected
        )
    assert _hmts_earlier(changed(mean_result_seconds=[100.0, 130.0, 90.0] * 2)).verdict == "fails"
