"""What is said of plans: whether rows only enter, say when they leave, or change net."""

from __future__ import annotations

import pytest

from millpond.cql.algebra import Istream
from millpond.planning.optimise import REWRITES, optimise
from millpond.planning.properties import is_monotone, is_net, never_retracts
from millpond.planning.reduce_joins import reduce_joins
from millpond.planning.reduce_set_operations import reduce_set_operations
from tests.planning.test_rewrites import checked

# query; only enters; says when it leaves; net
TABLE = """
SELECT a FROM S;                                             monotone  intervals  -
SELECT t, a, b, s FROM S;                                    monotone  intervals  net
SELECT a FROM S [RANGE 5];                                   -         intervals  -
SELECT a FROM S [ROWS 5];                                    -         -          -
SELECT S.a FROM S, T WHERE S.a = T.a;                        monotone  intervals  -
SELECT S.a FROM S [RANGE 5], T [NOW];                        -         intervals  -
SELECT S.a FROM S, R WHERE a = k;                            -         -          -
SELECT S.a FROM S, Fixed WHERE a = k;                        monotone  intervals  -
SELECT S.a FROM S LEFT SEMI JOIN T ON S.a = T.a;             monotone  intervals  -
SELECT S.a FROM S [RANGE 5] LEFT SEMI JOIN T ON S.a = T.a;   -         intervals  -
SELECT S.a FROM S LEFT ANTI JOIN T ON S.a = T.a;             -         -          -
SELECT S.a, x FROM S LEFT JOIN T ON S.a = T.a;               -         -          -
SELECT DISTINCT a FROM S;                                    monotone  intervals  net
SELECT DISTINCT a FROM S [RANGE 5];                          -         -          net
SELECT a FROM S UNION ALL SELECT a FROM T;                   monotone  intervals  net
SELECT a FROM S UNION SELECT a FROM T;                       monotone  intervals  net
SELECT a FROM S EXCEPT SELECT a FROM T;                      -         -          net
SELECT a FROM S EXCEPT ALL SELECT a FROM T;                  -         -          -
ISTREAM(SELECT a, count(*) AS c FROM S GROUP BY a);          -         -          net
ISTREAM(SELECT count(*) AS c FROM S GROUP BY a);             -         -          -
"""
ROWS = [tuple(part.strip() for part in line.split(";")) for line in TABLE.split("\n") if line]


@pytest.mark.parametrize(("query", "expected"), ROWS, ids=[query for query, _ in ROWS])
def test_properties_of_what_a_query_computes(query, expected):
    plan = checked(query)
    assert isinstance(plan, Istream)
    node = reduce_joins(reduce_set_operations(plan.input))
    words = ("monotone", "intervals", "net")
    found = [is_monotone(node), never_retracts(node), is_net(node)]
    assert [w if f else "-" for w, f in zip(words, found, strict=True)] == expected.split()


def test_what_only_enters_says_when_it_leaves():
    """Never is an answer too: every monotone plan is one of intervals."""
    for query, _ in ROWS:
        node = reduce_joins(reduce_set_operations(checked(query).input))
        assert never_retracts(node) or not is_monotone(node)


def test_the_rewrites_stand_in_their_order():
    names = [rewrite.__name__ for rewrite in REWRITES]
    assert names.index("name_movers") < names.index("push_down_selections")
    assert names.index("unbounded_to_now") < names.index("drop_unread_minus")
    assert len(set(names)) == len(names)


def test_optimising_twice_changes_nothing_of_plain_queries():
    for query in ("SELECT a FROM S WHERE a > 1", "SELECT S.a, n FROM S [RANGE 5], R WHERE a = k"):
        once = optimise(checked(query))
        assert optimise(once) == once
