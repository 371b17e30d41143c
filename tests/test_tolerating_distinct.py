"""Counts of different values that tolerate a sample: values are drawn, not tuples."""

import numpy as np
import pyarrow as pa
import pytest

from millpond import Engine
from millpond.approximation.sampling.draws import is_below
from millpond.catalog import Tolerance
from millpond.errors import CqlError
from millpond.intake.drop_point import DropPoint, draws_of_values
from tests import covering
from tests.test_tolerating import (
    TOLERATE,
    answers,
    engine_with,
    exact_part,
    fed,
    results,
    tuples,
)

QUERIES = {
    "plain": "SELECT count(DISTINCT v) AS d, count(*) AS n, max(v) AS h FROM S [RANGE 20]",
    "grouped": """SELECT k, count(DISTINCT v) AS d FROM S [RANGE 20 SLIDE 4] WHERE x < 2
      GROUP BY k HAVING count(DISTINCT v) > 2""",
    "met": """SELECT kind AS k, approx_count_distinct(v) AS d FROM S [RANGE 20], Kinds
      WHERE k = i AND x > 0.5 GROUP BY kind""",
}


def rows_of(count=240):
    """Tuples of which several have one value."""
    return [(k, x, None if v == 13 else v % 40, at) for k, x, v, at in tuples(count)]


def test_counts_of_different_values_are_exact_while_nothing_is_dropped_and_bounded_then():
    rows = rows_of()
    exact, calm, sampled = (engine_with(QUERIES, said) for said in ("", TOLERATE, TOLERATE))
    for engine, percents in ((exact, ()), (calm, ()), (sampled, (50, 30, 100, 20, 60))):
        fed(engine, rows, 5, percents)
    for name in QUERIES:
        assert exact_part(calm.results(name, "rows"), exact, name) == results(exact, name)
        truth, found = (answers(each, name, "k") for each in (exact, sampled))
        for at in truth.keys() & found.keys():
            for group, row in truth[at].items():
                near = found[at].get(group)
                if near is not None:
                    assert near["d_certain_low"] <= row["d"] <= near["d_certain_high"]
                    ends = [near[f"d{end}"] for end in ("_certain_low", "_low", "", "_high")]
                    assert sorted(ends) == ends
                    assert near.get("n_low") == row.get("n") == near.get("n_high")
    assert sampled.quality("plain").dropped > 60


def misses(seed, groups=200, values=60):
    """How often bounds miss: many groups, each of values that come several times, at two rates,
    of which some pass WHERE and some come while nothing is dropped."""
    random = np.random.default_rng(seed)
    rows = groups * values * 3
    columns = {
        "g": random.integers(0, groups, rows),
        "v": random.integers(0, values, rows),
        "f": random.integers(0, 100, rows),
    }
    table = pa.table(columns)
    text = "SELECT g, count(DISTINCT v) AS d FROM W WHERE f < 30 GROUP BY g"
    with Engine(settings={"overload": "approximate", "seed": 50 + seed}) as engine:
        engine.execute("CREATE STREAM W (g INT, v INT, f INT)")
        engine.execute(f"CREATE QUERY q {TOLERATE} AS {text}; CREATE QUERY e AS {text}")
        third = rows // 6
        for place, percent in enumerate((100, 20, 20, 60, 40, 20)):
            engine.execute(f"ALTER STREAM W KEEP {percent} PERCENT")
            engine.push("W", table.slice(place * third, third))
        engine.finish()
        truth = {row["g"]: row["d"] for row in engine.results("e", "rows") if row["weight"] > 0}
        found = {row["g"]: row for row in engine.results("q", "rows") if row["weight"] > 0}
    ends = [(found[g]["d_low"], found[g]["d_high"]) for g in truth]
    counts = list(truth.values())
    missed = sum(not low <= d <= high for (low, high), d in zip(ends, counts, strict=True))
    width = sum(high - low for low, high in ends) / sum(counts)
    return missed, len(truth), width


def test_confident_bounds_of_different_values_fail_as_rarely_as_they_say():
    missed, groups, width = misses(seed=1)
    assert groups == 200
    assert missed <= covering.most_misses(groups)
    assert 0.1 < width < 2.5  # the rates are three times apart


VALUES = {
    "texts": pa.array(["a", "b", None, "a", "", "long text"] * 30),
    "doubles": pa.array([0.0, -0.0, float("nan"), 1e300, None, 2.5] * 30),
    "numbers": pa.array([1, 2, None, 1, -(2**62), 7] * 30),
    "truths": pa.array([True, False, None] * 60),
    "days": pa.array([1, 2, None, 90_000] * 45, pa.int32()).cast(pa.date32()),
    "times": pa.array([1, 2, None, 10**15] * 45).cast(pa.timestamp("us")),
}


@pytest.mark.parametrize("kind", VALUES)
def test_all_tuples_of_a_value_are_kept_or_none(kind):
    column = VALUES[kind]
    draws = draws_of_values(5, column)
    again = draws_of_values(5, column[::-1])[::-1]
    assert draws.tolist() == again.tolist()  # whatever else is on the page
    known = {}
    for value, draw in zip(column.to_pylist(), draws.tolist(), strict=True):
        assert known.setdefault(repr(value).removeprefix("-0.0") or "0.0", draw) == draw
    assert len(set(known.values())) >= len(known) - 1  # NULL may be drawn as 0 is
    rows = np.arange(len(column))
    page = pa.table({"_ts": rows // 40, "_seq": rows, "c0": column})
    needs = Tolerance(stream="S", drawn_by=(0,))
    for rate in (0.7, 0.3):
        kept = DropPoint.of(needs, 5, rate).kept(page)
        seqs = set(kept.filter(pa.compute.field("c1") == 0)["_seq"].to_pylist())
        assert seqs == set(np.flatnonzero(is_below(draws, rate)).tolist())
    thinned = DropPoint.of(needs, 5, 0.3).thinned(DropPoint.of(needs, 5, 0.7).kept(page))
    assert repr(thinned.to_pylist()) == repr(kept.to_pylist())


REFUSED = {
    "SELECT count(DISTINCT v + 1) AS d FROM S": "these are a column of the stream",
    "SELECT count(DISTINCT kind) AS d FROM S, Kinds WHERE k = i": "a column of the stream",
    "SELECT count(DISTINCT v) AS d, count(DISTINCT k) AS e FROM S": "beside count(DISTINCT",
    "SELECT count(DISTINCT v) AS d, sum(v) AS s FROM S": "query of its own",
    "SELECT count(DISTINCT v) AS d, count(*) AS n FROM S WHERE x > 1": "query of its own",
    "SELECT sum(DISTINCT v) AS s FROM S": "without DISTINCT",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_bound_beside_different_values_is_refused(text):
    with pytest.raises(CqlError) as refusal:
        engine_with({"q": text}, TOLERATE)
    assert REFUSED[text] in str(refusal.value)


def test_a_restart_goes_on_with_the_same_values(tmp_path):
    rows, store = rows_of(120), str(tmp_path / "store")
    settings = {"store": store, "validate": "on", "overload": "approximate"}
    whole = fed(engine_with(QUERIES, TOLERATE), rows, 2, [30, 30])
    engine = engine_with(QUERIES, TOLERATE, store=store)
    for part in (rows[:60], rows[60:]):
        engine.execute("ALTER STREAM S KEEP 30 PERCENT")
        engine.push("S", part)
        engine.run_until_idle()
        engine.compact_log()
        engine.close()
        engine = Engine(settings=settings)
    assert engine.query_entry("plain").tolerates.drawn_by == (2,)
    engine.finish()
    assert all(results(engine, name) == results(whole, name) for name in QUERIES)
    engine.close()
