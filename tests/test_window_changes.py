"""ALTER QUERY … SET WINDOW OF: the old query's answer up to a time, the new one's from then on."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from millpond import Engine
from millpond.errors import CqlError, MillpondError
from tests.lives import DDL, OTHERS, Dying, Told, alone, sums


def altered(text):
    """What follows SET in the statement that gives a query the window of a text."""
    kind, length = re.search(r"\b(RANGE|ROWS) (\d+)", text).groups()
    return f"WINDOW OF S = {kind} {length}"


def expected(told, life):
    """The old answer, taken out at the time of the alteration, and the new one from there on."""
    whole, begun = Counter(), False
    ends = [at for at, _ in life[1:]] + [len(told.pages)]
    for (first, text), last in zip(life, ends, strict=True):
        if first == last:
            continue  # it is another one before anything comes
        answer = alone(told, text, first, last)
        for (ts, *row), weight in answer.changes.items():
            whole[(max(ts, first - 1) if begun else ts, *row)] += weight
            if last < len(told.pages) and not answer.is_stream:
                whole[(last - 1, *row)] -= weight
        begun = True
    return Counter({key: weight for key, weight in whole.items() if weight})


def run(told, engine, between=lambda engine: engine):
    """Has an engine do all that is told; each query's answer."""
    engine.execute(DDL + OTHERS)
    for at, _ in enumerate(told.pages):
        for number, life in enumerate(told.lives):
            for place, (moment, text) in enumerate(life):
                if moment == at and place == 0:
                    engine.execute(f"CREATE QUERY q{number} AS {text}")
                elif moment == at:
                    engine.execute_anew(f"ALTER QUERY q{number} SET {altered(text)}")
        engine = between(engine)
        told.feed(engine, at)
    engine.finish()
    return [sums(engine, f"q{number}") for number in range(len(told.lives))]


def check(seed, sharing):
    told = Told(seed)
    with Engine({"sharing": sharing}) as engine:
        found = run(told, engine)
    for life, answer in zip(told.lives, found, strict=True):
        assert answer == expected(told, life), (seed, life)


@pytest.mark.parametrize("seed", range(18))
def test_answers_are_those_of_each_query_alone(seed):
    check(seed, ("auto", "on", "off")[seed % 3])


@pytest.mark.parametrize("seed", range(5))
def test_a_crash_changes_nothing(seed, tmp_path):
    told = Told(1_000 + seed)
    with Dying(tmp_path, seed) as dying:
        found = run(told, dying.engine, dying.live_on)
    for life, answer in zip(told.lives, found, strict=True):
        assert answer == expected(told, life), (seed, life)


@pytest.fixture
def engine():
    with Engine() as engine:
        engine.execute(DDL)
        yield engine


def page(engine, ts, *values):
    engine.push("S", [(ts, 0, value) for value in values])
    engine.run_until_idle()


def test_what_waits_is_seen_by_the_new_query_and_nothing_twice(engine):
    engine.execute("CREATE QUERY q AS SELECT sum(v) AS s FROM S [RANGE 9]")
    page(engine, 1, 5)
    page(engine, 2, 7)  # now it has answered up to 1
    engine.push("S", [(3, 0, 100)])
    engine.push("S", [(4, 0, 1000)])
    engine.execute("ALTER QUERY q SET WINDOW OF S = RANGE 0")
    engine.finish()
    rows = [(row["ts"], row["s"]) for row in engine.results("q").to_pylist() if row["weight"] > 0]
    assert rows == [(None, None), (2, 7), (3, 100), (4, 1000), (5, None)]


def test_name_weight_sink_and_subscribers_stay(engine, tmp_path):
    seen = []
    path = tmp_path / "out.csv"
    engine.execute(
        f"CREATE QUERY q WEIGHT 3 AS SELECT count(*) AS n FROM S [ROWS 3] INTO csv('{path}')"
    )
    engine.subscribe("q", lambda table: seen.extend(table.to_pylist()))
    page(engine, 1, 5, 6)
    engine.execute("ALTER QUERY q SET WINDOW OF S = ROWS 1")
    page(engine, 2, 7, 8)
    engine.finish()
    entry = engine.query_entry("q")
    assert (entry.weight, entry.text) == (3.0, "SELECT count(*) AS n FROM S [ROWS 1]")
    told = Counter()
    for row in seen:
        told[-1 if row["ts"] is None else row["ts"], row["n"]] += row["weight"]
    assert {key: weight for key, weight in told.items() if weight} == sums(engine, "q")
    assert len(path.read_text().splitlines()) == len(seen) + 1


def test_one_that_does_not_run_has_it_when_it_runs(engine):
    engine.execute("CREATE QUERY q INACTIVE AS SELECT count(*) AS n FROM S [ROWS 3]")
    engine.execute("ALTER QUERY q SET WINDOW OF s = ROWS 1; ALTER QUERY q ACTIVATE")
    page(engine, 1, 5, 6, 7)
    engine.finish()
    assert engine.results("q").to_pylist()[-1]["n"] == 1


def test_one_that_has_answered_nothing_begins_where_it_began(engine):
    for i in range(3):
        engine.execute(f"CREATE QUERY q{i} AS SELECT k FROM S [ROWS 3 WHERE v > {i}]")
    engine.execute("ALTER QUERY q1 SET WINDOW OF S = ROWS 2")
    assert engine.queries.groups.of("q1") is engine.queries.groups.of("q2") is not None
    page(engine, 1, 5, 6, 7)


@pytest.mark.parametrize(
    ("query", "change", "complaint"),
    [
        ("SELECT k FROM S [RANGE 3]", "T = RANGE 4", r'column 29: no "T".*windows of: S'),
        ("SELECT k FROM S [RANGE 3]", "S = ROWS 4", r"column 29: .*is RANGE; only the length"),
        ("SELECT k FROM S", "S = RANGE 4", r"column 29: .*is UNBOUNDED; only the length"),
        ("SELECT k FROM S [RANGE 3]", "S = RANGE -4", r"column 39: the length of a window"),
        ("SELECT k FROM S [ROWS 3]", "S = ROWS 1.5", r"column 38: "),
        ("SELECT k FROM S [ROWS 3]", "S = ROWS", r"expected a length"),
        ("SELECT k FROM S [ROWS 3]", "S = 4", r"expected RANGE or ROWS"),
        ("SELECT k FROM S [ROWS 3] x", "S = ROWS 4", r'no "S" .*windows of: x'),
        (
            "SELECT k FROM S [ROWS 3] UNION SELECT k FROM S [ROWS 2]",
            "S = ROWS 4",
            r'"S" stands 2 times in the FROM of query "q".*with an alias',
        ),
        ("SELECT k FROM V", "S = ROWS 4", r'no "S" .*windows of: none'),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(engine, query, change, complaint):
    engine.execute("CREATE VIEW V AS SELECT k FROM S [ROWS 3]")
    engine.execute(f"CREATE QUERY q AS {query}")
    before = engine.query_entry("q")
    with pytest.raises(CqlError, match=complaint):
        engine.execute(f"ALTER QUERY q SET WINDOW OF {change}")
    assert engine.query_entry("q") is before


def test_a_view_that_is_another_one_is_told(engine):
    engine.execute("CREATE VIEW V AS SELECT k FROM R")
    engine.execute("CREATE QUERY q AS SELECT S.k FROM S [ROWS 3], V WHERE S.k = V.k")
    engine.execute("DROP VIEW V; CREATE VIEW V AS SELECT k FROM R WHERE k > 1")
    with pytest.raises(CqlError, match="reads a view that was dropped since"):
        engine.execute("ALTER QUERY q SET WINDOW OF S = ROWS 4")


@pytest.mark.parametrize("kept", ["all", "none"])
def test_an_answer_is_taken_back_though_no_results_are_kept(engine, kept):
    engine.execute(f"SET keep_results = '{kept}'")
    engine.execute("CREATE QUERY q AS SELECT count(*) AS n FROM S [ROWS 3]")
    engine.execute("CREATE QUERY z AS SELECT k FROM S [ROWS 3]")
    page(engine, 1, 5)
    page(engine, 2, 5)
    seen = []
    engine.subscribe("q", lambda table: seen.extend(table.to_pylist()))
    engine.execute("ALTER QUERY q SET WINDOW OF S = ROWS 4")
    engine.run_until_idle()
    assert [(row["weight"], row["n"]) for row in seen] == [(-1, 1), (1, 0)]
    engine.execute("ALTER QUERY z SET WINDOW OF S = ROWS 4")


def test_an_answer_that_was_never_kept_is_not_taken_back():
    with Engine(keep_results=False) as engine:
        engine.execute(DDL + "CREATE QUERY q AS SELECT count(*) AS n FROM S [ROWS 3]")
        page(engine, 1, 5)
        page(engine, 2, 5)
        with pytest.raises(MillpondError, match="no longer known"):
            engine.execute("ALTER QUERY q SET WINDOW OF S = ROWS 4")


FAILING = "SELECT count(*) AS n FROM S [RANGE 5] WHERE 9223372036854775000 + v > 7"


LINES = f"SELECT k, v\n FROM S [RANGE 5]\n WHERE {2**62} * v > 1"


@pytest.mark.parametrize(
    ("around", "text"),
    [
        ("CREATE QUERY q ON ERROR SKIP AS {}", FAILING),
        ("CREATE QUERY q\n  ON ERROR SKIP\nAS {}", LINES),
        ("CREATE QUERY q /* a\u2028b\fc */\n  ON ERROR SKIP\nAS {}", LINES),
        (f"CREATE QUERY q ON ERROR SKIP /* was {FAILING} */ AS {{}}", FAILING),
    ],
)
def test_a_store_with_an_altered_query_opens_after_its_log_is_shortened(tmp_path, around, text):
    with Engine(store=tmp_path) as engine:
        engine.execute(DDL + OTHERS + around.format(text))
        engine.push("S", [(1, 1, 3), (2, 1, 10**9)])
        engine.run_until_idle()
        engine.execute("ALTER QUERY q SET WINDOW OF S = RANGE 1")
        engine.compact_log()
    with Engine(store=tmp_path) as engine:
        (again,) = [each for each in engine.memory.living() if each.name == "q"]
        assert again.text == around.format(text.replace("[RANGE 5]", "[RANGE 1]")).rstrip()
        engine.push("S", [(3, 1, 3), (4, 1, 10**9)])
        engine.finish()
        assert engine.left_out("q")


def test_another_policy_right_after_another_window_begins_where_that_did():
    with Engine() as engine:
        engine.execute(DDL + OTHERS + f"CREATE QUERY q AS {FAILING}")
        engine.push("S", [(1, 1, 1), (2, 1, 1)])
        engine.run_until_idle()
        engine.advance("S", 2)
        engine.run_until_idle()
        engine.execute("ALTER QUERY q SET WINDOW OF S = RANGE 1; ALTER QUERY q ON ERROR SKIP")
        engine.push("S", [(3, 1, 1)])
        engine.finish()
        found = [tuple(row.values()) for row in engine.results("q").to_pylist()]
    assert found[:3] == [(None, 1, 0), (1, -1, 0), (1, 1, 1)]
    assert found[3:] == [(2, -1, 1), (2, 1, 0), (3, -1, 0), (3, 1, 1), (5, -1, 1), (5, 1, 0)]
