"""REDUCED TO: which reductions there are, which are refused, and that answers have fewer rows.

Costs two seconds, most of it in the reference evaluator.
"""

import random
from collections import Counter
from functools import cache

import pytest

from millpond.catalog import Catalog
from millpond.cql.apply import apply
from millpond.cql.check.reductions import told_reductions
from millpond.cql.check.statements import check_script, check_statement
from millpond.errors import CqlError, Position
from tests import reference

DECLARED = """
CREATE STREAM S (t BIGINT, k INT, x INT) TIMESTAMP BY t;
CREATE STREAM U (t BIGINT, k INT, y INT) TIMESTAMP BY t UNIQUE (y);
CREATE RELATION R (k INT PRIMARY KEY, n INT);
CREATE RELATION Q (k INT, n INT);
"""
KEPT = {
    # a window shorter, or introduced
    "SELECT t, x FROM S [RANGE 9]": "WINDOW OF S = RANGE 4",
    "SELECT k, count(*) AS n FROM S [RANGE 9 SLIDE 2] GROUP BY k": "WINDOW OF S = RANGE 5",
    "RELATION SELECT * FROM S [PARTITION BY k ROWS 3] WHERE x > 2": "WINDOW OF S = ROWS 1",
    "RELATION SELECT x FROM S s WHERE x > 2": "WINDOW OF s = RANGE 3",
    "RELATION SELECT S.x, U.y FROM S, U [RANGE UNBOUNDED PRECEDING] WHERE S.k = U.k": (
        "WINDOW OF S = ROWS 2, WINDOW OF U = RANGE 3"
    ),
    "RELATION SELECT x FROM S [RANGE 9] UNION ALL SELECT y FROM U [RANGE 9]": (
        "WINDOW OF U = RANGE 2"
    ),
    "RELATION SELECT x FROM S [RANGE 9] EXCEPT ALL SELECT y FROM U [RANGE 9]": (
        "WINDOW OF S = RANGE 2"
    ),
    "RELATION SELECT x FROM S [RANGE 9] INTERSECT ALL SELECT y FROM U [RANGE 9]": (
        "WINDOW OF U = RANGE 2"
    ),
    "RELATION SELECT S.x, U.y FROM S [RANGE 9] LEFT JOIN U [RANGE 5] ON S.k = U.k": (
        "WINDOW OF S = RANGE 2"
    ),
    "RELATION SELECT x FROM S [RANGE 9] WHERE EXISTS (SELECT * FROM U [RANGE 9] WHERE U.k = S.k)": (
        "WINDOW OF U = RANGE 2"
    ),
    "RELATION SELECT x FROM S [RANGE 9] WHERE x IN (SELECT y FROM U [RANGE 9])": (
        "WINDOW OF U = RANGE 2"
    ),
    "RELATION SELECT x FROM S [RANGE 9] WHERE x > ANY (SELECT y FROM U [RANGE 9])": (
        "WINDOW OF U = RANGE 2"
    ),
    "RELATION SELECT x FROM S [RANGE 9] WHERE x NOT IN (SELECT y FROM U [RANGE 9])": (
        "WINDOW OF S = RANGE 2"
    ),
    "SELECT k FROM (SELECT k, count(*) AS n FROM S [RANGE 9] GROUP BY k) T WHERE n >= 2": (
        "WINDOW OF S = RANGE 2"
    ),
    "SELECT k FROM (SELECT k, min(x) AS m FROM S [RANGE 9] GROUP BY k) T WHERE 3 > m": (
        "WINDOW OF S = RANGE 2"
    ),
    "SELECT k FROM S [RANGE 9] GROUP BY k HAVING max(x) > 3 AND k > 0": "WINDOW OF S = RANGE 2",
}
FEWER_TUPLES = {
    "RELATION SELECT x FROM S [RANGE 9]": "SAMPLE OF S = 10 PERCENT",
    "RELATION SELECT x FROM S [RANGE 9] SAMPLE(20)": "SAMPLE OF S = 10 PERCENT",
    "RELATION SELECT s.x, R.n FROM S [RANGE 9] s, R WHERE s.k = R.k": "SAMPLE OF s = 10 PERCENT",
    "RELATION SELECT s.x, R.n FROM S [RANGE 9] s LEFT JOIN R ON s.k = R.k": (
        "SAMPLE OF s = 10 PERCENT"
    ),
    "RELATION SELECT s.x, R.n FROM S [RANGE 9] s, U [RANGE 4], R WHERE s.x = U.y AND U.k = R.k": (
        "SAMPLE OF s = 10 PERCENT"
    ),
    "RELATION SELECT s.x, g.n FROM S [RANGE 9] s, (SELECT k, count(*) AS n FROM U GROUP BY k) g "
    "WHERE s.k = g.k": "SAMPLE OF s = 10 PERCENT",
    "RELATION SELECT x FROM S [RANGE 9] WHERE k NOT IN (SELECT k FROM R)": (
        "SAMPLE OF S = 10 PERCENT"
    ),
    "RELATION SELECT x FROM S [RANGE 9] LEFT SEMI JOIN U ON S.k = U.k": "SAMPLE OF S = 10 PERCENT",
}
NEGATED = {
    "RELATION SELECT x FROM S [RANGE 9] WHERE x NOT IN (SELECT y FROM U [RANGE 9])": "U",
    "RELATION SELECT x FROM S [RANGE 9] WHERE NOT (x > 1 AND x IN (SELECT y FROM U [RANGE 9]))": (
        "U"
    ),
    "RELATION SELECT x FROM S [RANGE 9] WHERE NOT EXISTS (SELECT * FROM U [RANGE 9] WHERE U.k = "
    "S.k)": "U",
    "RELATION SELECT x FROM S [RANGE 9] WHERE x > ALL (SELECT y FROM U [RANGE 9])": "U",
    "RELATION SELECT x FROM S [RANGE 9] WHERE NOT x > ANY (SELECT y FROM U [RANGE 9])": "U",
    "RELATION SELECT x FROM S [RANGE 9] EXCEPT ALL SELECT y FROM U [RANGE 9]": "U",
    "RELATION SELECT S.x, U.y FROM S [RANGE 9] LEFT JOIN U [RANGE 9] ON S.k = U.k": "U",
    "RELATION SELECT S.x, U.y FROM S [RANGE 9] FULL JOIN U [RANGE 9] ON S.k = U.k": "S",
    "RELATION SELECT x FROM S [RANGE 9] LEFT ANTI JOIN U [RANGE 9] ON S.k = U.k": "U",
    "SELECT k FROM S [RANGE 9] GROUP BY k HAVING count(*) < 2": "S",
    "SELECT k FROM S [RANGE 9] GROUP BY k HAVING NOT count(*) >= 2": "S",
    "SELECT k FROM S [RANGE 9] GROUP BY k HAVING sum(x) > 3": "S",
    "RELATION SELECT y FROM U [RANGE 9] WHERE y > (SELECT count(*) FROM S [RANGE 9])": "S",
    "SELECT x, n FROM (SELECT x, ROW_NUMBER() OVER (ORDER BY x DESC) AS n FROM S [RANGE 9]) T "
    "WHERE n <= 2": "S",
}
"""Queries that have more rows with a shorter window."""


@cache
def catalog():
    made = Catalog()
    for statement in check_script(DECLARED, made):
        apply(statement.action, made)
    return made


def entry_of(query, said=""):
    clause = f"REDUCED TO ({said})" if said else ""
    text = f"CREATE QUERY made {clause} AS {query}"
    return check_statement(text, Position(1, 1), catalog()).action.entry


def fault(query, said):
    with pytest.raises(CqlError) as caught:
        entry_of(query, said)
    return caught.value.message


def inputs(seed, dropped=()):
    """Streams and relations drawn by chance; of some streams most tuples are missing."""
    draw, drop = random.Random(seed), random.Random(seed)
    streams = {}
    for name, value in (("S", "x"), ("U", "y")):
        rows = [
            (at, n, (at, draw.randrange(3), n if name == "U" else draw.randrange(-2, 6)))
            for n, at in enumerate(sorted(draw.randrange(20) for _ in range(12)))
        ]
        rows = [row for row in rows if name not in dropped or drop.random() < 0.4]
        streams[name] = ([("t", "BIGINT"), ("k", "INT"), (value, "INT")], rows)
    schema = [("k", "INT"), ("n", "INT")]
    return streams, {"R": (schema, [(None, 1, (k, 7 * k)) for k in range(2)])}


def contents(query, streams, relations):
    """The answer at each instant at which it changes."""
    present, found = Counter(), {}
    for at, weight, row in reference.evaluate(query, streams, relations):
        present[row] += weight
        found[at] = +present
    return found


def at(found, instant):
    times = [each for each in found if each is None or (instant is not None and each <= instant)]
    return found[times[-1]] if times else Counter()


def is_within(fewer, more, width=None):
    """Whether at every instant all rows of one answer are in another."""
    cut = (lambda rows: rows) if width is None else (lambda rows: {row[:width] for row in rows})
    times = dict.fromkeys([*more, *fewer])
    return all(cut(at(fewer, each)) <= cut(at(more, each)) for each in times)


def test_a_reduced_query_is_the_query_of_its_reduced_text():
    for query, said in (KEPT | FEWER_TUPLES).items():
        entry = entry_of(query, said)
        assert entry.plan == entry_of(entry.text).plan != entry_of(query).plan
        assert entry.reduced == tuple(said.split(", "))
    entry = entry_of("RELATION SELECT x FROM S s WHERE x > 2", "WINDOW OF S = RANGE 3")
    assert entry.text == "RELATION SELECT x FROM S s [RANGE 3] WHERE x > 2"


@pytest.mark.parametrize("query", KEPT)
def test_shorter_windows_only_take_rows_away(query):
    entry = entry_of(query, KEPT[query])
    width = 1 if "count(*) AS n FROM S [RANGE 9 SLIDE" in query else None
    changed = 0
    for seed in range(12):
        streams, relations = inputs(seed)
        more = contents(query, streams, relations)
        fewer = contents(entry.text, streams, relations)
        if query.startswith("SELECT t"):  # a stream of what comes, whatever goes when
            assert fewer == more
            changed += 1
        else:
            assert is_within(fewer, more, width)
            changed += fewer != more
    assert changed > 2


@pytest.mark.parametrize("query", FEWER_TUPLES)
def test_samples_only_take_rows_away(query):
    name = "S"
    entry_of(query, FEWER_TUPLES[query])
    plain = query.replace(" SAMPLE(20)", "")
    for seed in range(8):
        more = contents(plain, *inputs(seed))
        fewer = contents(plain, *inputs(seed, dropped=(name,)))
        assert is_within(fewer, more)


@pytest.mark.parametrize("query", NEGATED)
def test_where_rows_would_come_a_reduction_is_refused(query):
    name = NEGATED[query]
    reason = fault(query, f"WINDOW OF {name} = RANGE 2")
    assert "that the query does not have" in reason
    assert f"WINDOW OF {name} = RANGE 2" in reason
    sampled = fault(query, f"SAMPLE OF {name} = 10 PERCENT")
    assert "that the query does not have" in sampled
    shorter = query.replace(f"{name} [RANGE 9]", f"{name} [RANGE 2]")
    tried = (inputs(seed) for seed in range(60))
    assert any(not is_within(contents(shorter, *one), contents(query, *one)) for one in tried)


DUPLICATES = (
    "SELECT DISTINCT k FROM S [RANGE 9]",
    "SELECT k FROM S [RANGE 9] GROUP BY k",
    "SELECT k FROM S [RANGE 9] UNION SELECT k FROM U [RANGE 9]",
    "SELECT k FROM S [RANGE 9] INTERSECT SELECT k FROM U [RANGE 9]",
    "SELECT k FROM S [RANGE 9] EXCEPT SELECT k FROM R",
)


@pytest.mark.parametrize("query", DUPLICATES)
def test_under_duplicate_elimination_a_reduction_is_refused(query):
    for said in ("WINDOW OF S = RANGE 2", "SAMPLE OF S = 50 PERCENT"):
        assert "so that there is more output and not less" in fault(query, said)
    if "DISTINCT" in query:  # which is so
        istream, shorter = f"ISTREAM ({query})", f"ISTREAM ({query.replace('9', '2')})"
        streams, relations = inputs(1)
        counts = [len(reference.evaluate(each, streams, relations)) for each in (istream, shorter)]
        assert counts[0] < counts[1]


BIASED = (
    "SELECT S.x FROM S [RANGE 9], U [RANGE 9] WHERE S.k = U.k",
    "SELECT S.x FROM S [RANGE 9], Q WHERE S.k = Q.k",
    "SELECT S.x FROM S [RANGE 9], R",
    "SELECT S.x FROM S [RANGE 9], R WHERE S.k <= R.k",
    "SELECT S.x FROM S [RANGE 9], R WHERE S.k = R.n",
    "SELECT S.x FROM S [RANGE 9] LEFT JOIN Q ON S.k = Q.k",
    "SELECT S.x FROM S [RANGE 9] LEFT JOIN R ON S.k = 1 AND R.k > 0",
    "SELECT U.y FROM U [RANGE 9] LEFT SEMI JOIN S [RANGE 9] ON S.k = U.k",
    "SELECT U.y FROM U [RANGE 9] WHERE k IN (SELECT k FROM S [RANGE 9])",
    "SELECT y FROM U, (SELECT k, count(*) AS n FROM S [RANGE 9] GROUP BY k) g WHERE U.k = g.k",
    "SELECT y FROM U [RANGE 9] INTERSECT ALL SELECT x FROM S [RANGE 9]",
)


@pytest.mark.parametrize("query", BIASED)
def test_a_sample_that_a_join_would_bias_is_refused(query):
    assert "no sample of the pairs" in fault(query, "SAMPLE OF S = 10 PERCENT")
    entry_of(query, "WINDOW OF S = RANGE 2")  # a window is no sample


def test_samples_of_both_sides_of_a_join_are_refused():
    query = "WITH a AS (SELECT ISTREAM * FROM S [NOW]) SELECT a.x FROM a [NOW], R WHERE a.k = R.k"
    entry_of(query, "SAMPLE OF S = 10 PERCENT")
    query = "WITH a AS (SELECT ISTREAM * FROM U [NOW]) SELECT b.y FROM a b, a c WHERE b.y = c.y"
    assert "both sides of the join" in fault(query, "SAMPLE OF U = 10 PERCENT")


PUSHED = {
    "SELECT * FROM (SELECT ISTREAM x FROM S i [NOW] WHERE x > 1) T SAMPLE(10)": (
        "SELECT * FROM (SELECT ISTREAM x FROM S i [NOW] SAMPLE(10) WHERE x > 1) T [UNBOUNDED]"
    ),
    "SELECT * FROM (SELECT ISTREAM x FROM S i [RANGE 5]) T SAMPLE(10) [RANGE 3]": (
        "SELECT * FROM (SELECT ISTREAM x FROM S i [RANGE 5] SAMPLE(10)) T  [RANGE 3]"
    ),
    "SELECT * FROM (SELECT ISTREAM x FROM S i [NOW] 50% SAMPLE) T [RANGE 3] 10% SAMPLE": (
        "SELECT * FROM (SELECT ISTREAM x FROM S i [NOW] SAMPLE(5)) T [RANGE 3]"
    ),
    "SELECT * FROM (SELECT ISTREAM i.x FROM R, S i [NOW] WHERE i.k = R.k) T SAMPLE(10) [NOW]": (
        "SELECT * FROM (SELECT ISTREAM i.x FROM R, S i [NOW] SAMPLE(10) WHERE i.k = R.k) T  [NOW]"
    ),
}


@pytest.mark.parametrize("query", PUSHED)
def test_a_sample_is_pushed_down(query):
    assert entry_of(query, "SAMPLE OF T PUSHED TO i").text == PUSHED[query]


NOT_PUSHED = {
    "SELECT * FROM (SELECT ISTREAM k, count(*) AS n FROM S i [RANGE 5] GROUP BY k) T SAMPLE(10)": (
        "is not what it computes of a sample"
    ),
    "SELECT * FROM (RSTREAM (SELECT x FROM S i [RANGE 5])) T SAMPLE(10)": "computes of a sample",
    "SELECT * FROM (SELECT ISTREAM i.x FROM R, S i [RANGE 5] WHERE i.k = R.k) T SAMPLE(10)": (
        "each tuple makes one row"
    ),
    "SELECT * FROM (SELECT ISTREAM i.x FROM U [NOW], S i [NOW] WHERE i.k = U.k) T SAMPLE(10)": (
        "no sample of the pairs"
    ),
    "SELECT * FROM (SELECT ISTREAM DISTINCT x FROM S i [NOW]) T SAMPLE(10)": "under DISTINCT",
    "SELECT * FROM (SELECT ISTREAM x FROM S i [NOW]) T": "has no SAMPLE",
    "SELECT i.x FROM S i, U T SAMPLE(10) WHERE i.k = T.k": "is no subquery",
    "SELECT * FROM (SELECT ISTREAM x FROM S j [NOW]) T SAMPLE(10)": 'no "i" in FROM; there are: j',
    "SELECT * FROM (SELECT ISTREAM i.x FROM U, S i WHERE i.x = U.y) T SAMPLE(10)": "makes one row",
}


@pytest.mark.parametrize("query", NOT_PUSHED)
def test_a_sample_that_would_be_another_one_is_not_pushed(query):
    assert NOT_PUSHED[query] in fault(query, "SAMPLE OF T PUSHED TO i")


@pytest.mark.parametrize(
    ("query", "said", "reason"),
    [
        ("SELECT x FROM S [RANGE 9]", "WINDOW OF S = RANGE 10", "is no shorter than Window RANGE"),
        ("SELECT x FROM S [RANGE 9]", "WINDOW OF S = RANGE 9", "says already"),
        ("SELECT x FROM S [RANGE 9]", "WINDOW OF S = ROWS 3", "the window is RANGE"),
        ("SELECT x FROM S [NOW]", "WINDOW OF S = RANGE 3", "the window is NOW"),
        ("SELECT x FROM S [TUMBLE 9]", "WINDOW OF S = RANGE 3", "the window is TUMBLE"),
        ("SELECT x FROM S [ROWS 9]", "WINDOW OF S = ROWS 10", "is no shorter than Window ROWS"),
        ("SELECT x FROM S [ROWS 9]", "SAMPLE OF S = 10 PERCENT", "reach further back"),
        ("SELECT x FROM S [SESSION 9]", "SAMPLE OF S = 10 PERCENT", "come apart"),
        ("SELECT x FROM S SAMPLE(5)", "SAMPLE OF S = 10 PERCENT", "a sample of 5 PERCENT already"),
        ("SELECT x FROM S SAMPLE(5)", "SAMPLE OF S = 5 PERCENT", "says already"),
        ("SELECT n FROM R", "WINDOW OF R = RANGE 3", "is a relation"),
        ("SELECT n FROM R", "SAMPLE OF R = 3 PERCENT", "is a relation"),
        ("SELECT x FROM S [RANGE 9]", "WINDOW OF T = RANGE 3", 'no "T" in FROM; there are: S'),
        ("SELECT x FROM S [RANGE 9]", "WINDOW OF S = RANGE 3 PARSECS", "no unit of time"),
        ("SELECT x FROM S [RANGE 9]", "WINDOW OF S = ROWS 3 SECONDS", "the window is RANGE"),
        ("SELECT x FROM S", "WINDOW OF S = ROWS 3 SECONDS", "ROWS counts elements"),
        ("SELECT x FROM S", "WINDOW OF S = RANGE -3", "cannot be negative"),
        ("SELECT x FROM S", "SAMPLE OF S = 0 PERCENT", "more than 0 and at most 100"),
        ("SELECT x FROM S", "WINDOW OF S = RANGE 3, WINDOW OF s = RANGE 2", "is said twice"),
        (
            "SELECT x FROM S UNION ALL SELECT x FROM S",
            "WINDOW OF S = RANGE 3",
            '"S" stands 2 times in FROM',
        ),
        ("SELECT x FROM S", "LENGTH OF S = 3", "expected WINDOW or SAMPLE"),
    ],
)
def test_what_is_no_reduction_is_refused(query, said, reason):
    assert reason in fault(query, said)


def test_a_fault_names_the_reduction_and_its_place():
    text = "CREATE QUERY made REDUCED TO (\n  WINDOW OF S = RANGE 10) AS SELECT x FROM S [RANGE 9]"
    with pytest.raises(CqlError, match=r"line 2, column 3.*REDUCED TO WINDOW OF S = RANGE 10"):
        check_statement(text, Position(1, 1), catalog())


def test_explain_offers_what_is_possible_and_says_why_the_rest_is_not():
    lines = list(told_reductions(entry_of("SELECT x FROM S [RANGE 9]"), catalog()))
    assert lines[1:] == ["  WINDOW OF S = RANGE 4", "  SAMPLE OF S = 10 PERCENT"]
    entry = entry_of("SELECT S.x FROM S [RANGE 1 HOUR], U WHERE S.k = U.k")
    lines = list(told_reductions(entry, catalog()))
    assert lines[1:3] == ["  WINDOW OF S = RANGE 30 MINUTES", "  WINDOW OF U = RANGE …"]
    assert lines[3] == "cannot be reduced with:"
    assert all("no sample of the pairs" in line for line in lines[4:])
    lines = list(told_reductions(entry_of("SELECT n FROM R"), catalog()))
    assert lines == ["nothing can be reduced"]
    entry = entry_of("SELECT * FROM (SELECT ISTREAM x FROM S i [NOW]) T SAMPLE(10)")
    assert "  SAMPLE OF T PUSHED TO i" in told_reductions(entry, catalog())


def test_what_is_offered_can_be_said():
    for query in (*KEPT, *FEWER_TUPLES, *NEGATED, *DUPLICATES, *BIASED, *PUSHED):
        entry = entry_of(query)
        offered = True
        for line in told_reductions(entry, catalog()):
            offered = offered and not line.startswith("cannot")
            if offered and line.startswith("  "):
                said = line.strip().replace("…", "5")
                assert entry_of(query, said).reduced == (said,)
