from millpond.lab.chain.three_queries import _more_pronounced


def verdict(together: list[float], alone: list[float]) -> str:
    leads = zip(together, alone, strict=True)
    table = {"queries": ["three queries", "window join"], "workload": ["trace"] * 2, "seed": [0, 0]}
    table |= dict(zip(("greedy", "round-robin", "fifo"), map(list, leads), strict=True))
    return _more_pronounced({"ahead": table}, "trace").verdict


def test_the_lead_must_grow_against_every_rival() -> None:
    assert verdict([5.0, 4.0, 3.0], [4.0, 3.0, 2.0]) == "holds"
    assert verdict([5.0, 2.0, 3.0], [4.0, 3.0, 2.0]) == "differs"
    assert verdict([5.0, 1.1, 3.0], [4.0, 3.0, 2.0]) == "fails"
