"""Queries of rows that tolerate false negatives: none is wrong, no more are missed than said."""

from collections import Counter

import pytest

from millpond import Engine
from millpond.errors import CqlError
from millpond.identities import StreamId
from tests.test_thinning import thin
from tests.test_tolerating import engine_with, exact_part, fed, results, tuples

QUERIES = {
    "stream": "SELECT k, v FROM S WHERE v > 30",
    "window": "SELECT at, x + 1 AS y FROM S [RANGE 6 SLIDE 3] WHERE v < 60",
    "different": "RELATION SELECT DISTINCT k, v % 10 AS r FROM S [RANGE 6]",
    "met": "RELATION SELECT kind, v FROM S [RANGE 6], Kinds WHERE k = i AND v > 20",
    "partnered": """RELATION SELECT k, v FROM S [RANGE 6] WHERE k IN (SELECT i FROM Kinds
      WHERE kind = 7 OR v > 50)""",
    "alone": """RELATION SELECT x, k FROM S [RANGE 6 SLIDE 2] WHERE v > 10 AND NOT EXISTS
      (SELECT * FROM O [RANGE 9] WHERE o = k AND least > v)""",
    "derived": """RELATION SELECT k, v FROM S [RANGE 6],
      (SELECT i FROM Kinds WHERE kind NOT IN (SELECT o FROM O)) D WHERE k = i""",
    "smallest": "RELATION SELECT k, x FROM S [RANGE 4] WHERE v <= ALL (SELECT least FROM O)",
    "met_alone": """RELATION SELECT kind, (SELECT max(i) FROM Kinds) AS m FROM Kinds, S [RANGE 6]
      WHERE k = i AND v NOT IN (SELECT 2 * least FROM O WHERE o <> kind)""",
    "fewer": """RELATION SELECT k, v % 10 AS r FROM S [RANGE 6] EXCEPT SELECT o, least % 7 FROM O
      EXCEPT SELECT i, 1 FROM Kinds""",
    "both": """RELATION SELECT k FROM S [RANGE 3] WHERE v > 80 INTERSECT
      SELECT CAST(o AS INT) FROM O [RANGE 12]""",
    "longer": "RELATION SELECT k FROM S [RANGE 3] WHERE v > 80 INTERSECT SELECT o FROM O",
    "having_one": """RELATION SELECT kind, i FROM Kinds WHERE kind > 6 AND
      i + 1 IN (SELECT k FROM S [RANGE 2 SLIDE 2] WHERE v > 94)""",
    "different_ones": """RELATION SELECT DISTINCT kind FROM O [RANGE 15], Kinds
      WHERE i < 3 AND o IN (SELECT k FROM S [RANGE 2] WHERE v > 94) AND least > 10""",
    "snapshots": "SELECT Rstream k, v FROM S [RANGE 2] WHERE v > 50",
}
SAID = "TOLERATE (FALSE NEGATIVES 400 PERCENT, FALSE POSITIVES 0 PERCENT)"
ROWS = tuples(480)


def content(engine, query):
    """At each time at which it has changed, how often each row is there."""
    names = [name for name in engine.query_entry(query).plan.schema.names if name != "stands_for"]
    present, found = Counter(), {}
    for row in engine.results(query, "rows"):
        present[repr([row[name] for name in names])] += row.get("weight", 1)
        found[row["ts"]] = +present
    return found


def times(contents):
    """When a content has changed."""
    return {at for at in contents if at is not None}


def at_time(contents, at):
    """What is there at a time."""
    last = max((each for each in times(contents) if each <= at), default=None)
    return contents.get(last, Counter())


def test_no_row_is_wrong_and_while_nothing_is_dropped_none_is_missing():
    exact = fed(engine_with(QUERIES), ROWS)
    calm = fed(engine_with(QUERIES, SAID), ROWS)
    sampled = fed(engine_with(QUERIES, SAID), ROWS, 5, (20, 50, 20, 100, 30))
    for name in QUERIES:
        assert exact_part(calm.results(name, "rows"), exact, name) == results(exact, name)
        assert {row["stands_for"] for row in calm.results(name, "rows")} == {1.0}
        truth, found = content(exact, name), content(sampled, name)
        missing = 0
        for at in times(truth) | times(found):
            there, delivered = at_time(truth, at), at_time(found, at)
            assert delivered <= there, (name, at)
            missing += (there - delivered).total()
        assert missing, name
    assert sampled.quality("stream").false_positives == 0
    assert sampled.quality("stream").false_negatives == pytest.approx(70 / 0.3)


def stood_for(engine, query, until=20):
    """How many rows of the exact answer those stand for that are there at a time, or came by it."""
    rows = engine.results(query, "rows")
    return sum(
        row["weight"] * row.get("stands_for", 1) for row in rows if (row["ts"] or 0) <= until
    )


def test_as_many_rows_are_missed_as_those_that_are_there_say():
    """Over some seeds the sum of what rows stand for is in the mean how many there are; where
    equal ones count once it is at least that, as it says less of them is missed."""
    texts = {name: QUERIES[name] for name in ("stream", "different")}
    exact = fed(engine_with(texts), ROWS)
    truth = {name: stood_for(exact, name) for name in texts}
    found: dict[str, list[float]] = {name: [] for name in texts}
    for seed in range(8):
        with fed(engine_with(texts, SAID, seed=seed), ROWS, 2, (25, 60)) as engine:
            for name in texts:
                found[name].append(stood_for(engine, name))
    mean = {name: sum(each) / len(each) for name, each in found.items()}
    error = 4 * (truth["stream"] * 3.0 / 8) ** 0.5  # w - 1 is the variance of a draw, 3 at most
    assert abs(mean["stream"] - truth["stream"]) < error
    assert mean["different"] > truth["different"]


def test_no_more_are_missed_than_is_tolerated(tmp_path):
    store = str(tmp_path / "store")
    texts = {"q": QUERIES["stream"]}
    engine = engine_with(texts, "TOLERATE (FALSE NEGATIVES 100 PERCENT)", store=store)
    engine.execute("ALTER STREAM S KEEP 5 PERCENT")
    assert engine.quality("q").kept_percent == 50
    assert engine.quality("q").false_negatives == 100
    engine.execute(
        "ALTER QUERY q TOLERATE (FALSE NEGATIVES 300 PERCENT, SAMPLE AT LEAST 1 PERCENT)"
    )
    engine.push("S", ROWS[:240])
    engine.close()
    said = "TOLERATE (SAMPLE AT LEAST 1 PERCENT, FALSE NEGATIVES 300 PERCENT)"
    with Engine({"overload": "approximate", "validate": "on"}, store=store) as engine:
        assert str(engine.query_entry("q").tolerates) == said
        assert engine.quality("q").kept_percent == 25
        shown = engine.execute("SHOW QUALITY")[0].to_pylist()[0]
        assert (shown["at least"], shown["false negatives"]) == (25, 300)
        thin(engine, 25)
        assert engine.quality("q").dropped > 120
        assert engine.quality("q").exact == "from 12 on"
        engine.execute("ALTER STREAM S KEEP 100 PERCENT")
        engine.push("S", ROWS[460:])
        engine.finish()
        assert engine.quality("q").exact == "now"


def test_a_restart_changes_nothing(tmp_path):
    texts = {name: QUERIES[name] for name in ("alone", "fewer", "both", "having_one")}
    settings = {"store": str(tmp_path / "store"), "validate": "on", "overload": "approximate"}
    whole = fed(engine_with(texts, SAID), ROWS, 2, (20, 60))
    engine = engine_with(texts, SAID, **settings)
    engine.execute("ALTER STREAM S KEEP 20 PERCENT")
    engine.push("S", ROWS[:240])
    engine.run_until_idle()
    engine.close()
    with Engine(settings) as engine:
        engine.execute("ALTER STREAM S KEEP 60 PERCENT")
        engine.push("S", ROWS[240:])
        engine.finish()
        assert all(results(engine, name) == results(whole, name) for name in texts)


def test_what_came_without_a_window_may_have_met_something_later():
    text = "SELECT k, at FROM S WHERE k IN (SELECT i FROM Kinds) AND at > 0"
    with pytest.raises(CqlError, match="put out columns that are UNIQUE in S"):
        engine_with({"q": text}, SAID)
    engine = fed(
        engine_with({"q": f"RELATION {text}", "r": QUERIES["stream"]}, SAID), ROWS, 2, (20,)
    )
    assert engine.quality("q").exact == "never"
    assert engine.quality("r").exact == "now"


def test_what_is_said_for_all_is_said_of_rows_too():
    engine = engine_with({})
    engine.execute("SET tolerate = 'SAMPLE AT LEAST 5 PERCENT, FALSE NEGATIVES 100 PERCENT'")
    for name in ("stream", "different"):
        engine.execute(f"CREATE QUERY {name} AS {QUERIES[name]}")
        assert engine.query_entry(name).tolerates.needed_percent == 50
    engine.execute("CREATE QUERY number AS SELECT count(*) AS n FROM S [RANGE 5]")
    assert engine.query_entry("number").tolerates.needed_percent == 5
    engine.execute("CREATE QUERY last AS SELECT k FROM S [ROWS 5]")
    assert engine.query_entry("last").tolerates is None
    assert StreamId("S") in engine.inputs.kept


@pytest.mark.parametrize("row", ["0", "k", "k, v"])
@pytest.mark.parametrize("stream", ["Istream", "Dstream"])
def test_a_row_that_would_be_news_only_if_another_was_missed_is_refused(stream, row):
    text = f"SELECT {stream} {row} FROM S [RANGE 6]"
    with pytest.raises(CqlError, match=r"if an equal one leaves .* put out at or columns"):
        engine_with({"q": text}, SAID)
    engine_with({"q": text.replace("FROM", ", at FROM"), "r": text.replace("[RANGE 6]", "")}, SAID)
    with pytest.raises(CqlError, match="put out columns that are UNIQUE in S"):
        engine_with({"q": f"SELECT {stream} v, at FROM S, Kinds WHERE k = i"}, SAID)
    engine_with({"q": f"SELECT {stream} o FROM O [RANGE 6], Kinds WHERE least = i"}, SAID)


REFUSED = {
    "SELECT count(*) AS n FROM S": "for counts and sums write SAMPLE AT LEAST",
    "SELECT k FROM S [ROWS 5]": "write RANGE",
    "SELECT A.k FROM S A [RANGE 3], S B [RANGE 3] WHERE A.k = B.k": "can meet several rows",
    "SELECT k FROM S WHERE NOT EXISTS (SELECT * FROM O WHERE o = k)": "as it comes",
    "SELECT k FROM S [RANGE 5] EXCEPT SELECT least FROM O": "a row of EXCEPT that was missed",
    "RELATION SELECT k FROM S EXCEPT ALL SELECT least FROM O": "write EXCEPT",
    "RELATION SELECT k FROM S UNION SELECT least FROM O": "ask in a query each",
    "RELATION SELECT i FROM Kinds EXCEPT SELECT k FROM S": "behind IN, and there is Relation Kinds",
    "RELATION SELECT i FROM Kinds WHERE i NOT IN (SELECT k FROM S)": "have no partner",
    "RELATION SELECT i FROM Kinds WHERE EXISTS (SELECT k FROM S WHERE k = i)": "behind IN, and",
    "RELATION SELECT i FROM Kinds WHERE i IN (SELECT k FROM S) OR i = 2": "behind IN, and",
    "ISTREAM(SELECT i FROM Kinds WHERE i IN (SELECT k FROM S))": "a row whose partner was missed",
    "SELECT DISTINCT k FROM S [RANGE 5]": "comes later, when it is no news",
    "SELECT k AS stands_for FROM S": "would be there twice",
}


@pytest.mark.parametrize("text", REFUSED)
def test_rows_of_which_it_is_not_known_what_is_missing_are_refused(text):
    with pytest.raises(CqlError) as refusal:
        engine_with({"q": text}, SAID)
    assert REFUSED[text] in str(refusal.value)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("FALSE NEGATIVES 0 PERCENT", "or write EXACT"),
        ("FALSE POSITIVES 100 PERCENT", "less than 100"),
        ("FALSE ALARMS 1 PERCENT", "NEGATIVES or POSITIVES"),
        ("FALSE NEGATIVES 5 PERCENT, ERROR 2 PERCENT", "ERROR is of numbers"),
        ("SAMPLE AT LEAST 5 PERCENT", "have FALSE NEGATIVES n PERCENT"),
    ],
)
def test_what_cannot_be_tolerated_is_refused(said, reason):
    with pytest.raises(CqlError, match=reason):
        engine_with({"q": QUERIES["stream"]}, f"TOLERATE ({said})")
