"""Buckets are spread over the residents that are there, and move as these come and go."""

from collections import Counter

import pytest

from millpond.execution.residents import homes
from millpond.execution.residents.homes import Homes


def states(count, operator="op1"):
    return [("store", operator, number) for number in range(count)]


def spread(known, there, buckets):
    return Counter(known.of(state, there) for state in buckets)


def test_more_buckets_than_residents_are_spread_evenly():
    assert spread(Homes(), ["a", "b", "c"], states(7)) == {"a": 3, "b": 2, "c": 2}


def test_a_bucket_stays_at_home():
    known, there = Homes(), ["a", "b"]
    before = [known.of(state, there) for state in states(5)]
    assert [known.of(state, there) for state in reversed(states(5))] == before[::-1]


def test_the_buckets_of_an_operator_are_apart_though_others_are_not():
    known = Homes()
    spread(known, ["a"], states(3, "op0"))
    assert spread(known, ["a", "b"], states(4)) == {"a": 2, "b": 2}


@pytest.mark.parametrize(("buckets", "share"), [(1, 0), (2, 1), (5, 2), (8, 4)])
def test_who_comes_is_given_a_share_of_the_buckets(buckets, share):
    known = Homes()
    spread(known, ["a"], states(buckets))
    known.come("b", 2)
    assert spread(known, ["a", "b"], states(buckets))["b"] == share


def test_who_comes_third_takes_from_where_the_most_are():
    known = Homes()
    spread(known, ["a", "b"], states(9))
    known.come("c", 3)
    assert spread(known, ["a", "b", "c"], states(9)) == {"a": 3, "b": 3, "c": 3}


def test_what_was_at_one_that_has_gone_is_taken_over_and_nothing_else_moves():
    known, there = Homes(), ["a", "b", "c"]
    before = {state: known.of(state, there) for state in states(9)}
    known.leave("b")
    after = {state: known.of(state, ["a", "c"]) for state in states(9)}
    assert {s: n for s, n in before.items() if n != "b"}.items() <= after.items()
    assert Counter(after.values()) == {"a": 5, "c": 4}


def test_no_more_homes_are_known_than_may_be(monkeypatch):
    monkeypatch.setattr(homes, "MOST_HOMES", 10)
    known = Homes()
    spread(known, ["a", "b"], states(100))
    assert len(known._known) <= 10
