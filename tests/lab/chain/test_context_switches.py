from millpond.lab.chain.context_switches import check


def verdicts(chain: float, greedy: float) -> list[str]:
    row = {"chain": [chain], "greedy": [greedy], "round-robin": [30.0], "fifo": [40.0]}
    return [claim.verdict for claim in check({"switches": {"query": ["two operators"], **row}})]


def test_fewer_switches_than_greedy_is_checked_as_the_paper_says_it() -> None:
    assert verdicts(chain=9.0, greedy=10.0) == ["holds", "holds", "holds"]
    assert verdicts(chain=14.0, greedy=10.0) == ["holds", "holds", "differs"]
    assert verdicts(chain=35.0, greedy=10.0) == ["holds", "fails", "differs"]
