from __future__ import annotations

import pytest

from millpond.lab.chain.four_operators import SENTENCES as FOUR_OPERATORS
from millpond.lab.chain.sentences import Otherwise, Ratio, Sentence, check_sentences, margins_of
from millpond.lab.chain.stored_join import SENTENCES as STORED_JOIN
from millpond.lab.chain.window_join import SENTENCES as WINDOW_JOIN
from millpond.lab.experiment import Tables


def peaks(**by_strategy: float) -> Tables:
    """The same peaks on both workloads."""
    rows = [
        (workload, name.replace("_", "-"), peak)
        for workload in ("bursts", "trace")
        for name, peak in by_strategy.items()
    ]
    columns = map(list, zip(*rows, strict=True))
    return {"summary": dict(zip(("workload", "strategy", "peak"), columns, strict=True))}


def verdicts(sentences: tuple[Sentence, ...], tables: Tables) -> dict[str, str]:
    return {claim.text: claim.verdict for claim in check_sentences(sentences, tables)}


@pytest.mark.parametrize(("peak", "verdict"), [(20.0, "holds"), (14.0, "differs"), (9.0, "fails")])
def test_a_sentence_holds_differs_or_fails_by_its_ratios(peak: float, verdict: str) -> None:
    better = Otherwise("a little worse", "so", (Ratio("fifo", "chain", 1.0),))
    sentence = Sentence("much worse", Ratio("fifo", "chain", 2.0), better, ("trace",))
    (claim,) = check_sentences([sentence], peaks(chain=10.0, fifo=peak))
    assert claim.verdict == verdict
    assert claim.text == "trace: fifo's peak queue size over chain's"
    assert claim.expected == '"much worse": at least 2'
    told = f"{peak / 10:.2f}"
    on = int(peak >= 20)
    assert claim.measured == f"so on {on} of 1 seeds: {told} to {told}, {told} in the middle"


@pytest.mark.parametrize(("share", "verdict"), [(9, "holds"), (8, "fails")])
def test_a_sentence_must_be_so_on_nine_seeds_of_ten(share: int, verdict: str) -> None:
    many = [peaks(chain=10.0, fifo=25.0 if seed < share else 15.0) for seed in range(10)]
    columns = ("workload", "strategy", "peak")
    rows = {name: [each for one in many for each in one["summary"][name]] for name in columns}
    sentence = Sentence("much worse", Ratio("fifo", "chain", 2.0), workloads=("bursts",))
    (claim,) = check_sentences([sentence], {"summary": rows})
    assert claim.verdict == verdict
    assert claim.measured.startswith(f"so on {share} of 10 seeds: 1.50 to 2.50")


def test_how_far_a_sentence_is_from_failing_is_told() -> None:
    tables = peaks(chain=10.0, greedy=30.0, fifo=27.0, round_robin=24.0)
    margins = margins_of(FOUR_OPERATORS, tables)
    assert len(margins) == 8
    assert margins["trace: greedy's peak queue size over chain's"] == pytest.approx(1.5)
    assert margins["bursts: round-robin's peak queue size over greedy's"] == pytest.approx(0.96)


def test_round_robin_as_bad_as_greedy_is_checked() -> None:
    which = "bursts: round-robin's peak queue size over greedy's"
    for peak, verdict in ((290.0, "holds"), (150.0, "differs"), (60.0, "fails")):
        tables = peaks(chain=70.0, greedy=300.0, fifo=300.0, round_robin=peak)
        assert verdicts(STORED_JOIN, tables)[which] == verdict


def test_round_robin_is_said_to_be_good_on_the_trace_and_bad_on_the_bursts() -> None:
    trace, bursts = (f"{each}: round-robin's peak queue size over chain's" for each in WORKLOADS)
    good = verdicts(WINDOW_JOIN, peaks(chain=70.0, greedy=300.0, fifo=300.0, round_robin=75.0))
    assert (good[trace], good[bursts]) == ("holds", "fails")
    between = verdicts(WINDOW_JOIN, peaks(chain=70.0, greedy=300.0, fifo=300.0, round_robin=110.0))
    assert (between[trace], between[bursts]) == ("differs", "differs")
    bad = verdicts(WINDOW_JOIN, peaks(chain=70.0, greedy=300.0, fifo=300.0, round_robin=200.0))
    assert (bad[trace], bad[bursts]) == ("differs", "holds")


WORKLOADS = ("trace", "bursts")
