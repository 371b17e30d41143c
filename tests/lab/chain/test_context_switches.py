from __future__ import annotations

import pytest

from millpond.lab.chain.context_switches import ALL_THAT_WAITS, ONE_BY_ONE, check


def verdict(service: str, strategy: str, chain: list[float], theirs: list[float]) -> str:
    count = len(chain)
    columns = {"query": ["two operators"], "service": [service], "strategy": [strategy]}
    table = {name: of * count for name, of in columns.items()}
    table |= {"seed": list(range(count)), "chain": chain, "theirs": theirs}
    rivals = {strategy: {}}
    (claim,) = (each for each in check({"switches": table}, {service: rivals}))
    return claim.verdict


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ([9.0] * 10, "holds"),
        ([9.0] * 9 + [14.0], "holds"),
        ([14.0] * 10, "differs"),
        ([10.0] * 10, "differs"),
        ([9.0] * 5 + [11.0] * 5, "differs"),
        ([5.0] * 6 + [50.0] * 4, "fails"),
    ],
)
@pytest.mark.parametrize(
    ("service", "strategy"), [(ONE_BY_ONE, "fifo"), (ALL_THAT_WAITS, "greedy")]
)
def test_fewer_switches_is_so_on_nine_seeds_of_ten_or_differs(
    service: str, strategy: str, chain: list[float], expected: str
) -> None:
    assert verdict(service, strategy, chain, [10.0] * 10) == expected
