"""Who of several streams gets the time there is: held against a search of all rates."""

from itertools import product

import numpy as np
import pytest

from millpond.approximation.allocation.rates import Demand, percents


def score(demands, chosen):
    """The weighted precision of all queries."""
    return sum(each.weight * each.score(chosen[each.stream]) for each in demands)


def spent(demands, chosen):
    """The seconds of work of a second."""
    return sum(each.load * chosen[each.stream] / 100 for each in demands)


def drawn(random):
    """Some streams with queries of numbers and of rows, and the time that there is."""
    demands = [
        Demand(
            f"S{number}",
            float(random.exponential(1.0)),
            float(random.choice([0.0, 1.0, 20.0])),
            float(random.choice([1.0, 100.0, 10_000.0])),
            float(random.choice([0.0, 1.0, 5.0])),
            float(random.choice([0.5, 1.0, 3.0])),
        )
        for number in range(3)
    ]
    return demands, sum(each.load for each in demands) * float(random.uniform(0.25, 0.9))


@pytest.mark.parametrize("seed", range(6))
def test_no_rates_within_the_time_are_better(seed):
    demands, load = drawn(np.random.default_rng(seed))
    chosen = percents(demands, load)
    assert all(each.least <= chosen[each.stream] <= 100 for each in demands)
    assert load * 0.99 < spent(demands, chosen) <= load * (1 + 1e-9)
    rates = [np.unique([*np.geomspace(each.least, 100, 25), 100.0]) for each in demands]
    names = [each.stream for each in demands]
    every = (dict(zip(names, map(float, each), strict=True)) for each in product(*rates))
    best = max(score(demands, each) for each in every if spent(demands, each) <= load)
    assert score(demands, chosen) > 0.98 * best
    even = {each.stream: max(each.least, 100 * load / (3 * each.load)) for each in demands}
    if spent(demands, even) <= load and max(even.values()) <= 100:
        assert score(demands, chosen) > 0.999 * score(demands, even)


def test_who_matters_more_gets_more_and_nobody_less_than_is_needed():
    heavy, light = Demand("H", 1.0, 5.0, row_weight=4.0), Demand("L", 1.0, 30.0, row_weight=1.0)
    chosen = percents([light, heavy], 1.0)
    assert chosen["L"] == pytest.approx(30, abs=2)
    assert chosen["H"] == pytest.approx(70, abs=2)
    assert percents([light, heavy], 0.2) == {"L": 30, "H": 5}  # there is no time for that
    assert percents([light, heavy], 3.0) == {"L": 100, "H": 100}
    idle = Demand("I", 0.0, 5.0, number_weight=1.0)
    assert percents([heavy, idle], 0.5) == {"H": pytest.approx(50), "I": 100}


def test_bounds_of_numbers_are_shared_evenly_where_they_are_alike():
    numbers = [Demand(name, 2.0, tuples=400.0, number_weight=1.0) for name in "AB"]
    chosen = percents(numbers, 1.0)
    assert chosen["A"] == pytest.approx(25, abs=3)
    assert chosen["B"] == pytest.approx(25, abs=3)
