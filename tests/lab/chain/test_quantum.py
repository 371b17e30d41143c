from __future__ import annotations

from millpond.lab.chain.quantum import (
    AS_DRAWN,
    LONGEST,
    SHORTEST,
    WINDOWS,
    Peaks,
    _affects,
    _quantum,
    _same,
    _similar,
    run,
)
from millpond.lab.chain.sentences import Ratio, Sentence

ROBIN_AS_GOOD = Sentence("almost as well", Ratio("round-robin", "chain", most=1.2))


def peaks(robin: list[float], long: list[float], chain_in_windows: list[float]) -> Peaks:
    """Chain's peak is one in the figure."""
    key = ("two operators", "bursts")
    return {
        (*key, AS_DRAWN, "chain"): [1.0] * 10,
        (*key, AS_DRAWN, "round-robin"): robin,
        (*key, _quantum(SHORTEST), "round-robin"): [1.0] * 10,
        (*key, _quantum(LONGEST), "round-robin"): long,
        (*key, WINDOWS, "chain"): chain_in_windows,
    }


def verdicts(found: Peaks) -> list[str]:
    query, workload = "two operators", "bursts"
    claims = [
        _affects(found, query, workload),
        _similar(found, query, workload, "chain"),
        _same(found, query, workload, ROBIN_AS_GOOD, _quantum(LONGEST)),
        _same(found, query, workload, ROBIN_AS_GOOD, WINDOWS),
    ]
    return [claim.verdict for claim in claims]


def test_a_quantum_may_change_peaks_but_not_what_is_so() -> None:
    assert verdicts(peaks([1.0] * 10, [1.1] * 10, [1.0] * 10)) == ["holds"] * 4


def test_a_sentence_that_is_so_with_one_quantum_only_is_another_result() -> None:
    found = verdicts(peaks([1.0] * 10, [1.5] * 10, [1.0] * 10))
    assert found == ["holds", "holds", "differs", "holds"]
    assert verdicts(peaks([1.0] * 10, [2.5] * 10, [1.0] * 10))[2] == "fails"


def test_a_sentence_that_becomes_so_is_another_result_too() -> None:
    assert verdicts(peaks([1.5] * 10, [1.1] * 10, [1.0] * 10))[2] == "fails"


def test_statistics_of_windows_that_lead_elsewhere_are_noticed() -> None:
    assert verdicts(peaks([1.0] * 10, [1.0] * 10, [0.5] * 10)) == [
        "differs",
        "fails",
        "holds",
        "fails",
    ]


def test_only_what_a_variation_changes_is_run_again() -> None:
    table = run([0], seconds=2.0)["peaks"]
    rows = set(zip(table["query"], table["variation"], table["strategy"], strict=True))
    assert ("stored join", _quantum(LONGEST), "round-robin") in rows
    assert ("stored join", _quantum(LONGEST), "chain") not in rows
    assert ("stored join", WINDOWS, "fifo") not in rows
