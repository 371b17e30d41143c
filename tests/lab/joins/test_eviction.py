from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from millpond.lab.experiment import Tables
from millpond.lab.joins.eviction import COUNTERS, PARTS, bounded, check, plot
from millpond.lab.joins.policies import POLICIES
from millpond.lab.joins.streams import STREAMS, matches, zipf
from millpond.lab.tables import table_of

SHARES = {
    "zipf": {"prob": 0.9, "life": 0.85},
    "uniform": dict.fromkeys(POLICIES, 0.5),
    "aged": {"age curve": 0.7, "prob": 0.1, "life": 0.1},
}
OF_COUNTERS = {10: (0.7, 3.0), 20: (0.7, 2.5), 30: (0.8, 1.5), 40: (0.9, 1.2), 60: (1.0, 1.0)}


def made_up(seed: int = 0, wrong: float = 1.0) -> Tables:
    """What a run might find; of the last policy on Zipf keys and of bounds, so many times that."""
    output = [
        (streams, policy, part, share, share, seed)
        for streams in STREAMS
        for part in PARTS
        for policy in ("optimum", *POLICIES)
        for share in [1.0 if policy == "optimum" or part == 1 else share_of(streams, policy, wrong)]
    ]
    bounds = [
        ("zipf", "prob", counters, low, high * wrong, seed)
        for counters, (low, high) in OF_COUNTERS.items()
    ]
    columns = ("streams", "policy", "part", "of optimum", "of exact", "seed")
    return {
        "output": table_of(columns, output),
        "bounds": table_of(("streams", "policy", "counters", "low", "high", "seed"), bounds),
    }


def share_of(streams: str, policy: str, wrong: float) -> float:
    share = SHARES[streams].get(policy, 0.3)
    return share * wrong if (streams, policy) == ("zipf", "prob") else share


def failing(tables: Tables) -> list[str]:
    return [claim.text.split(":")[0] for claim in check(tables) if claim.verdict == "fails"]


def test_what_is_wrong_is_noticed() -> None:
    assert failing(made_up()) == []
    assert failing(made_up(wrong=1.2)) == [
        "no policy puts out more than the optimum",
        "with a counter for each row of the window it is known how many pairs are missing",
    ]
    missed = "what is put out and evicted rows by key bound the number of all pairs"
    assert {missed, "Zipf keys"} <= set(failing(made_up(wrong=0.5)))
    plot(made_up(), Figure())


@pytest.mark.parametrize("counters", [COUNTERS[0], 12])
def test_pairs_put_out_and_evicted_rows_bound_all_pairs(counters: int) -> None:
    side = zipf(5)[0]
    side = side._replace(keys=side.keys[:200], probes=side.probes[:200])
    found, exact = bounded(side, "prob", counters, 5), sum(map(len, matches(side)))
    assert exact in found
    assert found.is_exact == (counters == COUNTERS[0])
