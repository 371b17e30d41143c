"""The streams adhere to their constraints within k, and to no smaller one."""

from __future__ import annotations

import numpy as np
import pytest

from millpond.lab.stream.adherence import KS
from millpond.lab.stream.arrivals import PAGE_ROWS, PAGES, clustered, ordered, referring, unique


def made(arrivals, k, seed=1):
    return arrivals(k, np.random.default_rng(seed))


def behind_a_larger(keys):
    """How far a tuple comes behind the first larger one, at most."""
    order = np.maximum.accumulate(keys)
    above = np.searchsorted(order, keys, "right")
    return int(max(0, (np.arange(len(keys)) - above).max()))


def apart(keys, first):
    """How far tuples come from the last one with their number, or from the first."""
    known, far = {}, 0
    for place, key in enumerate(keys.tolist()):
        far = max(far, place - known.get(key, place))
        if not first or key not in known:
            known[key] = place
    return far


@pytest.mark.parametrize("k", KS)
def test_tuples_come_as_far_behind_as_they_may(k):
    for pages in made(ordered, k):
        assert behind_a_larger(np.concatenate(pages)) == k
    for pages in made(clustered, k):
        assert apart(np.concatenate(pages), first=False) - 1 == k
    orders, _ = made(unique, k)
    assert apart(np.concatenate(orders), first=True) == k


@pytest.mark.parametrize("k", KS)
def test_orders_come_as_far_behind_their_fulfilments_as_they_may(k):
    orders, fulfilments = made(referring, k)
    first, far, place = {}, 0, 0
    for page, others in zip(orders, fulfilments, strict=True):
        far = max([far, *(place - first.get(key, place) for key in page.tolist())])
        for key in others.tolist():
            first.setdefault(key, place)
            place += 1
    assert far == k


@pytest.mark.parametrize("arrivals", [ordered, clustered, unique, referring])
def test_all_pages_are_full_but_those_that_wait(arrivals):
    for pages in made(arrivals, 0):
        assert [len(page) for page in pages] == [PAGE_ROWS] * PAGES
