"""Bounds of counts: all samples of all populations up to 12, with exact weights."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, sqrt
from statistics import NormalDist

import pytest

from millpond.approximation.intervals import count_of_distinct, count_of_hits, most_missing

LARGEST = 12
RISKS = [1e-9, 0.01, 0.05, 0.2, 0.5, 0.999]
bounds = cache(count_of_hits)
bounds_of_distinct = cache(count_of_distinct)


def chance(hits, population, marked, drawn):
    if not max(0, drawn + marked - population) <= hits <= min(drawn, marked):
        return Fraction(0)
    ways = comb(marked, hits) * comb(population - marked, drawn - hits)
    return Fraction(ways, comb(population, drawn))


def misses(population, marked, drawn, risk, said_population=None):
    """The chance, exactly, that the true count is below the bounds, and that it is above."""
    dropped = (said_population or population) - drawn
    below = above = Fraction(0)
    for hits in range(max(0, drawn + marked - population), min(drawn, marked) + 1):
        found = bounds(hits, drawn, dropped, risk).confident
        below += chance(hits, population, marked, drawn) * (marked < found.low)
        above += chance(hits, population, marked, drawn) * (marked > found.high)
    return below, above


@pytest.mark.parametrize("risk", RISKS)
def test_the_count_is_covered_in_all_populations(risk):
    """On each side it is missed with at most half the risk."""
    for population in range(1, LARGEST + 1):
        for drawn in range(population + 1):
            for marked in range(population + 1):
                assert max(misses(population, marked, drawn, risk)) <= Fraction(risk) / 2
                for hits in range(min(drawn, marked) + 1):
                    if chance(hits, population, marked, drawn):
                        found = bounds(hits, drawn, population - drawn, risk)
                        assert marked in found.certain
                        assert found.is_exact == (drawn == population)


@pytest.mark.parametrize("risk", RISKS)
def test_no_count_is_in_the_bounds_that_the_test_of_it_refuses(risk):
    """The width is that of the textbook: the inversion, done here by trying every count."""
    for population in range(1, LARGEST + 1):
        for drawn in range(1, population):
            for hits in range(drawn + 1):
                counts = range(hits, population - drawn + hits + 1)
                plausible = [m for m in counts if is_plausible(hits, population, m, drawn, risk)]
                found = bounds(hits, drawn, population - drawn, risk).confident
                middle = min(max(round(hits / drawn * population), counts[0]), counts[-1])
                wanted = [*plausible, middle]
                assert (found.low, found.high) == (min(wanted), max(wanted))


def is_plausible(hits, population, marked, drawn, risk):
    at_most = sum(chance(k, population, marked, drawn) for k in range(hits + 1))
    at_least = sum(chance(k, population, marked, drawn) for k in range(hits, drawn + 1))
    return min(at_most, at_least) > Fraction(risk) / 2 * (1 - Fraction(1, 10**8))


@pytest.mark.parametrize(("wrong", "side"), [(97, 1), (103, 0)])
def test_a_population_wrong_by_three_percent_is_found(wrong, side):
    """With risks of just less than two tails, the bounds have nothing to spare."""
    population, drawn = 100, 50
    for marked in (20, 50, 75):
        risks = list(tight_risks([chance(k, population, marked, drawn) for k in range(51)]))
        right = [misses(population, marked, drawn, risk)[side] for risk in risks]
        off = [misses(population, marked, drawn, risk, wrong)[side] for risk in risks]
        assert all(a <= Fraction(risk) / 2 for a, risk in zip(right, risks, strict=True))
        assert any(a > Fraction(risk) / 2 for a, risk in zip(off, risks, strict=True))


def tight_risks(chances):
    """A little less than twice each tail, by more than rounding."""
    low = Fraction(0)
    for each in chances:
        low += each
        for tail in (low, 1 - low):
            if 1e-5 < 2 * tail < 1:
                yield float(2 * tail) * (1 - 1e-8)


def normal_width(hits, drawn, population, risk):
    rate = hits / drawn
    z = NormalDist().inv_cdf(1 - risk / 2)
    fraction = 1 - (drawn - 1) / (population - 1)
    return 2 * z * population * sqrt(rate * (1 - rate) / drawn * fraction)


@pytest.mark.parametrize("risk", [0.2, 0.05, 0.01, 1e-6])
@pytest.mark.parametrize("kept", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("population", [1000, 10_000, 1_000_000])
def test_the_width_is_near_that_of_the_normal_distribution(population, kept, risk):
    """At most 1.3 times, where at least 20 were hit and 20 were not; 25 at a risk of 10^-6."""
    drawn = int(population * kept)
    fewest = 20 if risk >= 0.01 else 25
    for hits in {fewest, drawn // 3, drawn // 2, drawn - fewest} - {0}:
        if fewest <= hits <= drawn - fewest:
            found = bounds(hits, drawn, population - drawn, risk)
            assert found.confident.width <= 1.3 * normal_width(hits, drawn, population, risk) + 2


def test_a_group_that_may_be_missing():
    for population in range(1, LARGEST + 1):
        for drawn in range(population + 1):
            for risk in RISKS:
                most = most_missing(drawn, population - drawn, risk).confident.high
                for size in range(population - drawn + 1):
                    unseen = chance(0, population, size, drawn)
                    assert size <= most or unseen <= Fraction(risk)


def test_nothing_drawn_and_everything_drawn():
    assert count_of_hits(0, 0, 7, 0.05).certain == count_of_hits(0, 0, 7, 0.05).confident
    assert count_of_hits(0, 0, 7, 0.05).certain.high == 7
    assert count_of_hits(3, 5, 0, 0.05).is_exact
    assert count_of_hits(0, 0, 0, 0.05).estimate == 0
    assert most_missing(0, 7, 0.05).confident.high == 7


def binomial(hits, trials, rate):
    return comb(trials, hits) * rate**hits * (1 - rate) ** (trials - hits)


def distinct_misses(there, rate, said_rate, risk):
    """The chance, exactly, that the true number is below the bounds, and that it is above."""
    below = above = Fraction(0)
    for kept in range(there + 1):
        found = bounds_of_distinct(kept, said_rate, 400, risk).confident
        below += binomial(kept, there, Fraction(rate)) * (there < found.low)
        above += binomial(kept, there, Fraction(rate)) * (there > found.high)
    return below, above


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.97])
def test_distinct_keys_are_covered(rate, risk):
    for there in range(1, LARGEST + 1):
        assert max(distinct_misses(there, rate, rate, risk)) <= Fraction(risk) / 2


@pytest.mark.parametrize(("wrong", "side"), [(0.515, 1), (0.485, 0)])
def test_a_rate_wrong_by_three_percent_is_found(wrong, side):
    for there in range(4, LARGEST + 1):
        risks = list(tight_risks([binomial(k, there, Fraction(1, 2)) for k in range(there + 1)]))
        right = [distinct_misses(there, 0.5, 0.5, risk)[side] for risk in risks]
        off = [distinct_misses(there, 0.5, wrong, risk)[side] for risk in risks]
        assert all(a <= Fraction(risk) / 2 for a, risk in zip(right, risks, strict=True))
        assert any(a > Fraction(risk) / 2 for a, risk in zip(off, risks, strict=True))


def test_distinct_keys_of_nothing_dropped():
    assert count_of_distinct(4, 0.3, 0, 0.05).is_exact
    assert count_of_distinct(0, 0.3, 5, 0.05).certain.high == 5


@pytest.mark.parametrize("wrong", [(5, 4, 3, 0.05), (-1, 4, 3, 0.05), (1, 4, -3, 0.05)])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="rows"):
        count_of_hits(*wrong)


@pytest.mark.parametrize("risk", [0, 1, -0.5, float("nan")])
def test_a_risk_that_is_none_is_refused(risk):
    with pytest.raises(ValueError, match="risk"):
        count_of_hits(1, 4, 3, risk)
    with pytest.raises(ValueError, match="risk"):
        count_of_distinct(1, 0.5, 3, risk)


@pytest.mark.parametrize("risk", [0.3, 0.05])
def test_distinct_keys_that_were_kept_at_several_rates_are_covered(risk):
    """All outcomes: of so many keys some are kept at one rate, the others at another one."""
    for there, at_least_rate in product(range(1, 9), range(9)):
        rates = [0.25] * min(there, at_least_rate) + [0.75] * max(0, there - at_least_rate)
        missed = [Fraction(0), Fraction(0)]
        for kept in product((0, 1), repeat=there):
            chance = Fraction(1)
            for is_kept, rate in zip(kept, rates, strict=True):
                chance *= Fraction(rate) if is_kept else 1 - Fraction(rate)
            found = bounds_of_distinct(sum(kept), 0.25, 400, risk, 0.75).confident
            missed[0] += chance * (there < found.low)
            missed[1] += chance * (there > found.high)
        assert max(missed) <= Fraction(risk) / 2
