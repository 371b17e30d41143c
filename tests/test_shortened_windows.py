"""Windows that are shortened while queries run: bounds hold, whatever is cut.

Truths are those of the reference evaluator. Costs five seconds.
"""

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond import Engine
from millpond.errors import CqlError, StateError
from millpond.facade.window_memory import WindowMemory
from millpond.identities import StreamId
from tests import reference
from tests.drawn_examples import examples

DECLARED = """
CREATE STREAM S (t BIGINT, k INT, x INT, y DOUBLE) TIMESTAMP BY t;
CREATE RELATION R (k INT PRIMARY KEY, n INT);
INSERT INTO R VALUES (0, 10), (1, 20);
"""
SCHEMAS = {
    "S": [("t", "BIGINT"), ("k", "INT"), ("x", "INT"), ("y", "DOUBLE")],
    "R": [("k", "INT"), ("n", "INT")],
}
RELATIONS = {"R": (SCHEMAS["R"], [(None, 1, (0, 10)), (None, 1, (1, 20))])}
QUERIES = {
    "whole": "SELECT count(*) AS n, sum(x) AS s, avg(y) AS m, max(x) AS h FROM S [{}]",
    "grouped": "SELECT k, count(*) AS n, sum(y) AS s, min(x) AS l FROM S [{}] GROUP BY k",
    "filtered": """SELECT k, count(*) AS n, sum(x) AS s, avg(x) AS m, max(y) AS h FROM S [{}]
      WHERE x > 2 GROUP BY k""",
    "spread": """SELECT k, stddev(x) AS d, variance(y) AS v, percentile(x, 0.5) AS p FROM S [{}]
      GROUP BY k""",
    "hits": "SELECT stddev(x) AS d, percentile(y, 0.8) AS p FROM S [{}] WHERE x < 6",
    "different": "SELECT k, count(DISTINCT x) AS c FROM S [{}] WHERE y > 1 GROUP BY k",
    "met": """SELECT n AS k, count(*) AS c, sum(x) AS s FROM S [{}], R
      WHERE S.k = R.k AND x > 1 GROUP BY n""",
}
WINDOWS = {"RANGE 9": (0, 3, 8), "RANGE 8 SLIDE 4": (0, 4), "RANGE 9 SLIDE 2": (4,)}
WINDOWS |= {"UNBOUNDED": (3,)}


def engine_with(queries, said, **settings):
    """An engine with queries that tolerate something, by name."""
    engine = Engine(settings={"overload": "approximate", **settings})
    engine.execute(DECLARED)
    for name, text in queries.items():
        engine.execute(f"CREATE QUERY {name} {said} AS {text}")
    return engine


def said(shortest, is_cut=False, more=""):
    memory = ", MEMORY 0 B" if is_cut else ""
    return f"TOLERATE (WINDOW AT LEAST RANGE {shortest}{memory}{more})"


def rows_of(elements, names):
    """Elements of a relation as pairs of a time and what changes then."""
    found = {}
    for ts, weight, row in elements:
        at = -1 if ts is None else ts  # what is there from the beginning
        found.setdefault(at, []).append((weight, dict(zip(names, row, strict=True))))
    return found


def at_all_times(changes, times):
    """The answer at each time, by its key."""
    present, found = [], {}
    for at in times:
        for weight, row in changes.get(at, ()):
            if weight > 0:
                present.append(row)
            else:
                present.remove(next(each for each in present if repr(each) == repr(row)))
        found[at] = {row.get("k"): row for row in present}
    return found


def truth(text, rows):
    """What the reference says, and the names of its columns."""
    streams = {"S": (SCHEMAS["S"], [(row[0], n, row) for n, row in enumerate(rows)])}
    names = reference.output_names(text, streams, RELATIONS)
    return rows_of(reference.evaluate(text, streams, RELATIONS), names), names


def answered(engine, name):
    names = engine.query_entry(name).plan.schema.names
    elements = engine.results(name, "rows")
    return rows_of(
        [(row["ts"], row["weight"], tuple(row[each] for each in names)) for row in elements], names
    )


def compared(engine, name, text, rows):
    """Of each number of each answer the truth and the row that bounds it."""
    expected, names = truth(text, rows)
    found = answered(engine, name)
    times = sorted({*expected, *found})
    near, exact = at_all_times(found, times), at_all_times(expected, times)
    for at in times:
        for key, row in exact[at].items():
            for column in names:
                if column != "k":
                    yield at, column, row[column], near[at][key]


def is_within(value, column, row, part="certain_"):
    low, high = row[f"{column}_{part}low"], row[f"{column}_{part}high"]
    if value is None or low is None:
        return value is None or row[column] is None
    room = 1e-9 * max(1.0, abs(value))  # the reference adds up in another order
    return low - room <= value <= high + room


ROWS = st.lists(
    st.tuples(
        st.integers(0, 24),
        st.integers(0, 2),
        st.integers(0, 9) | st.none(),
        st.sampled_from([0.5, 1.25, 3.0, 700.0]),
    ),
    min_size=8,
    max_size=60,
)


@pytest.mark.slow
@examples(8)
@given(ROWS, st.sampled_from(sorted(WINDOWS)), st.data())
def test_bounds_hold_at_every_time_whatever_is_cut(rows, window, data):
    rows = sorted(rows, key=lambda row: row[0])
    shortest = data.draw(st.sampled_from(WINDOWS[window]))
    name = data.draw(st.sampled_from(sorted(QUERIES)))
    cuts = data.draw(st.lists(st.booleans(), min_size=1, max_size=4))
    text = QUERIES[name].format(window)
    with engine_with({name: text}, said(shortest, cuts[0])) as engine:
        for part, is_cut in enumerate(cuts):
            engine.execute(f"ALTER QUERY {name} {said(shortest, is_cut)}")
            first, last = (len(rows) * each // len(cuts) for each in (part, part + 1))
            engine.push("S", rows[first:last])
            engine.run_until_idle()
        engine.finish()
        for at, column, value, row in compared(engine, name, text, rows):
            assert is_within(value, column, row), (at, column, value, row)
            assert is_within(value, column, row, ""), (at, column, value, row)
            if not any(cuts):
                assert row[f"{column}_low"] == row[f"{column}_high"]


def drawn(rows=300, seed=3, times=30):
    random = np.random.default_rng(seed)
    keys, numbers = random.integers(0, 3, rows).tolist(), random.integers(0, 10, rows).tolist()
    values = random.lognormal(0, 1, rows).tolist()
    return [(n * times // rows, keys[n], numbers[n], values[n]) for n in range(rows)]


def results(engine, name):
    return sorted(map(repr, engine.results(name, "rows")))


SOME = {name: QUERIES[name].format("RANGE 9") for name in ("whole", "filtered", "met")}
CUTS = (False, True, False)


def run(pages=1, store=None, others=(), cuts=CUTS, **settings):
    """The queries over parts of which some are cut, in so many pages each; a restart between."""
    settings |= {} if store is None else {"store": store, "validate": "on"}
    engine = engine_with(SOME, said(3), **settings)
    for each in others:
        engine.execute(f"CREATE QUERY other_{len(each)} AS {each}")
    for part, rows in enumerate(np.array_split(np.arange(120), len(cuts))):
        for name in SOME:
            engine.change_memory(name, 0 if cuts[part] else 10**9)
        for page in np.array_split(rows, pages):
            engine.push("S", [drawn(120, times=24)[at] for at in page.tolist()])
            if pages > 1:
                engine.run_until_idle()
        if store is not None:
            engine.close()
            engine = Engine(settings={"overload": "approximate", **settings})
    engine.finish()
    found = {name: (results(engine, name), engine.quality(name).dropped) for name in SOME}
    engine.close()
    return found


@pytest.mark.slow
def test_what_is_cut_depends_on_no_pages_strategy_other_queries_or_restarts(tmp_path):
    once = run()
    assert once["whole"][1] == 40
    others = QUERIES["whole"].format("RANGE 9"), "SELECT x FROM S [RANGE 2]"
    assert run(pages=2, strategy="chain", others=others) == once
    assert run(store=str(tmp_path / "store")) == once


@pytest.mark.slow
def test_who_is_exact_reads_all_and_whole_windows_are_exact_to_the_bit():
    exact, whole = engine_with(SOME, "EXACT"), engine_with(SOME, said(3))
    beside = engine_with({f"{name}_cut": text for name, text in SOME.items()}, said(3, True))
    for name, text in SOME.items():
        beside.execute(f"CREATE QUERY {name} EXACT AS {text}")
    for engine in (exact, whole, beside):
        engine.push("S", drawn())
        engine.finish()
    for name in SOME:
        columns = ("ts", "weight", *exact.query_entry(name).plan.schema.names)
        found = whole.results(name, "rows")
        assert sorted(repr({each: row[each] for each in columns}) for row in found) == results(
            exact, name
        )
        assert results(beside, name) == results(exact, name)
        assert beside.quality(f"{name}_cut").dropped > 200


def test_where_overload_means_to_wait_no_window_is_shortened():
    engine = engine_with(SOME, said(3, True), overload="wait")
    engine.push("S", drawn())
    engine.finish()
    assert engine.quality("whole").dropped == 0
    assert engine.quality("whole").window == "whole"


def test_it_says_when_answers_are_exact_again_and_they_are():
    engine = engine_with({"q": SOME["whole"]}, said(3, True))
    engine.push("S", drawn(100, times=10))
    engine.run_until_idle()
    assert engine.quality("q").window == "RANGE 3, as it may take 0 B"
    engine.execute(f"ALTER QUERY q {said(3)}")
    assert (engine.quality("q").window, engine.quality("q").exact) == ("whole", "from 19 on")
    later = [(10 + row[0], *row[1:]) for row in drawn(100, times=10)]
    engine.push("S", later)
    engine.finish()
    assert engine.quality("q").exact == "now"
    times = {True: set(), False: set()}
    rows = drawn(100, times=10) + later
    for at, column, value, row in compared(engine, "q", SOME["whole"], rows):
        assert is_within(value, column, row)
        times[row["s_low"] == row["s_high"]].add(at)
    assert times[False] == set(range(4, 19))  # while what was cut would be older than 3, and there


def test_samples_of_a_shortened_window_have_certain_bounds_that_hold():
    text = QUERIES["filtered"].format("RANGE 9")
    engine = engine_with({"q": text}, said(3, True, ", SAMPLE AT LEAST 1 PERCENT"))
    rows = drawn()
    for part, percent in enumerate((100, 30, 60)):
        engine.execute(f"ALTER STREAM S KEEP {percent} PERCENT")
        engine.push("S", rows[part * 100 : part * 100 + 100])
    engine.finish()
    found = [
        is_within(value, column, row) for _, column, value, row in compared(engine, "q", text, rows)
    ]
    assert len(found) > 300
    assert all(found)


def test_who_tolerates_another_window_alone_reads_no_sample():
    engine = engine_with({"q": SOME["whole"]}, said(3))
    engine.execute("ALTER STREAM S KEEP 10 PERCENT")
    assert engine.quality("q").kept_percent == 100
    assert str(engine.query_entry("q").tolerates) == (
        "TOLERATE (SAMPLE AT LEAST 100 PERCENT, WINDOW AT LEAST RANGE 3, CONFIDENCE 95 PERCENT)"
    )


def burst(first, times, rows_a_time, ticks=1):
    random = np.random.default_rng(first)
    for at in range(first, first + times, ticks):
        rows = range(rows_a_time * ticks)
        yield [(at + n // rows_a_time, n % 3, int(random.integers(9)), 1.0) for n in rows]


def memory(engine, kind, name):
    return engine.entities().get(kind, name).get("memory")


@pytest.mark.slow
def test_memory_is_changed_while_it_runs_by_every_door(caplog):
    engine = engine_with({"q": QUERIES["whole"].format("RANGE 100")}, said(2))
    most = 0
    engine.change_memory("q", 40_000)
    for page in burst(0, 40, 50):
        engine.push("S", page)
        engine.run_until_idle()
        most = max(most, memory(engine, "query", "q"))
    assert 40_000 < most < 60_000  # a page more, and those of the shortest window
    assert 0 < engine.quality("q").dropped < 40 * 50
    synopses = engine.entities().of_kind("synopsis")
    (window,) = (each for each in synopses if "~kept" in each.name)
    assert window.get("memory") == memory(engine, "query", "q")
    window.set("memory", 10**9)
    assert engine.query_entry("q").tolerates.window_bytes == 10**9
    dropped = engine.quality("q").dropped
    engine.push("S", next(burst(40, 1, 50)))
    assert engine.quality("q").dropped == dropped
    engine.entities().get("query", "q").set("memory", 0)
    with caplog.at_level(logging.INFO, "millpond"), engine.held():
        WindowMemory(engine.queries).look()
    assert "RANGE 2, as it may take 0 B" in caplog.text
    state = next(each for each in synopses if each != window)
    with pytest.raises(StateError, match="exact, so it is as it is"):
        state.set("memory", 5)
    engine.execute("CREATE QUERY plain AS SELECT count(*) AS n FROM S [RANGE 9]")
    with pytest.raises(StateError, match="WINDOW AT LEAST"):
        engine.change_memory("plain", 5)


@pytest.mark.slow
def test_memory_is_allotted_to_the_heaviest_and_windows_are_whole_again_after_a_burst(monkeypatch):
    two = {name: QUERIES[name].format("RANGE 60") for name in ("whole", "grouped")}
    engine = engine_with(two, said(2), budget="1 MB")
    engine.execute("ALTER QUERY whole SET WEIGHT 5")
    watch, windows = WindowMemory(engine.queries), engine.inputs.windows
    monkeypatch.setattr(engine._watch, "look", lambda: None)
    light, heavy = (StreamId(engine.query_entry(n).tolerates.kept) for n in ("grouped", "whole"))

    def feed(pages):
        for page in pages:
            engine.push("S", page)
            engine.run_until_idle()
            with engine.held():
                watch.look()

    feed(burst(0, 10, 10, 5))
    assert windows.allotted == {}
    feed(burst(10, 40, 250, 4))
    assert windows.allotted[heavy] > 2 * windows.allotted[light] > 0
    assert engine.quality("grouped").dropped > engine.quality("whole").dropped
    taken = sum(memory(engine, "query", name) for name in two)
    assert taken < engine.ground.budget.page_bytes  # three quarters, and a page of each window
    engine.execute("ALTER QUERY whole SET INACTIVE")
    with engine.held():
        watch.look()
    assert heavy not in windows.allotted
    engine.execute("ALTER QUERY whole SET ACTIVE")
    feed(burst(50, 80, 10, 10))
    assert windows.allotted == {}
    assert engine.quality("grouped").exact == "now"


def test_of_long_windows_no_more_looks_are_remembered_than_of_short_ones():
    with engine_with({"q": QUERIES["whole"].format("RANGE 1600000")}, said(2)) as engine:
        watch, kept = WindowMemory(engine.queries), engine.query_entry("q").tolerates.kept
        for at in range(0, 16_000, 100):
            engine.push("S", [(at, 0, 1, 1.0)])
            with engine.held():
                watch.look()
        assert 1 < len(watch._marks[StreamId(kept)]) < 70


REFUSED = {
    "TUMBLE and HOP": "SELECT count(*) AS n FROM S [TUMBLE 9]",
    "less than the window": "SELECT count(*) AS n FROM S [RANGE 3]",
    "ERROR and WINDOW AT LEAST": "SELECT sum(x) AS n FROM S [RANGE 9]",
    "of counts, sums": "RELATION SELECT k FROM S [RANGE 9]",
    "write RANGE": "SELECT count(*) AS n FROM S [ROWS 9]",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_has_no_bound_is_refused(reason):
    more = ", FALSE NEGATIVES 50 PERCENT" if "SELECT k" in REFUSED[reason] else ""
    more = ", ERROR 2 PERCENT" if "ERROR" in reason else more
    with pytest.raises(CqlError, match=reason):
        engine_with({"q": REFUSED[reason]}, said(3, more=more))


def test_the_shortest_window_stays_what_it_is():
    engine = engine_with({"q": SOME["whole"]}, said(3))
    with pytest.raises(CqlError, match="another SHED BY or WINDOW AT LEAST"):
        engine.execute(f"ALTER QUERY q {said(4)}")
    with pytest.raises(CqlError, match="MEMORY is that of a window"):
        engine.execute("ALTER QUERY q TOLERATE (MEMORY 5 KB)")
