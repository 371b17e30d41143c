from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from millpond.lab.joins.optimum import most_pairs
from millpond.lab.joins.policies import POLICIES, joined
from millpond.lab.joins.streams import STREAMS, Side, matches

WINDOW = 4


def small(seed: int) -> Side:
    random = np.random.default_rng(seed)
    keys, probes = random.integers(0, 1 + seed % 3, (2, 8))
    return Side(keys, probes, np.full(3, 1 / 3), np.full(WINDOW, 1 / 3), WINDOW)


def tried(met: list[list[int]], rows: int) -> int:
    """The most pairs, by all ways to let rows go."""

    @cache
    def most(now: int, kept: frozenset[int]) -> int:
        if now == len(met):
            return 0
        pairs = sum(now in met[row] for row in kept)
        there = kept | {now}
        ways = [there] if len(there) <= rows else [there - {row} for row in there]
        return pairs + max(most(now + 1, way) for way in ways)

    return most(0, frozenset())


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_the_best_of_all_ways_to_let_rows_go(seed: int) -> None:
    met = matches(small(seed))
    assert most_pairs(met, 4) == [tried(met, rows) for rows in range(1, 5)]


@pytest.mark.parametrize("name", STREAMS)
def test_each_further_row_gains_no_more_than_the_one_before(name: str) -> None:
    side = STREAMS[name](1)[0]
    side = side._replace(keys=side.keys[:150], probes=side.probes[:150])
    met = matches(side)
    best = np.array(most_pairs(met, 60))
    assert (np.diff(best, 2, prepend=0) <= 0).all()
    assert best[-1] == sum(map(len, met)) > best[0] > 0
    for worth in POLICIES.values():
        assert sum(each.met for each in joined(side, worth, 7, 1)) <= best[6]
