"""SHED BY: unimportant tuples are dropped first, important ones never; bounds hold as before."""

import numpy as np
import pyarrow as pa
import pytest

from millpond import Engine
from millpond.catalog import Tolerance
from millpond.errors import CqlError
from millpond.intake.drop_point import DropPoint
from tests import covering

CREATED = "CREATE STREAM W (g INT, x DOUBLE, f INT, v DOUBLE, s STRING)"
SAID = "TOLERATE (CONFIDENCE 95 PERCENT, SHED BY V)"
TEXT = "SELECT g, count(*) AS n, sum(x) AS s, avg(x) AS a, max(x) AS h FROM W {} GROUP BY g"
GROUPS = 120


def rows(seed=1, count=GROUPS * 80):
    """Values of which few are large, and important; others are more or less so."""
    random = np.random.default_rng(seed)
    values = random.pareto(1.1, count)
    columns = {
        "g": random.integers(0, GROUPS, count).astype(np.int32),
        "x": values,
        "f": random.integers(0, 100, count).astype(np.int32),
        "v": np.where(values > 8, 1.0, np.clip(values / 10, -1.0, 2.0)),
    }
    table = pa.table(columns)
    return table.append_column("s", pa.nulls(count, pa.string()))


def page():
    """A page of the stream as a queue has it."""
    table = rows(count=400).rename_columns([f"c{place}" for place in range(5)])
    table = table.set_column(3, "c3", pa.array([*[None, float("nan")] * 5, *table["c3"][10:]]))
    order = pa.array(np.arange(400))
    return pa.table(
        {"_ts": pa.array(np.arange(400) // 20), "_seq": order}
        | dict(zip(table.column_names, table.columns, strict=True))
    )


def test_the_rate_follows_importance_and_lower_ones_are_thinned_from_higher_ones():
    needs = Tolerance(stream="W", keys=(0,), ranged=(1, 3), shed_by=(3,))
    whole, once = page(), DropPoint.of(needs, 3, 0.1).kept(page())
    tuples = [row for row in once.to_pylist() if row["c5"] == 0]
    assert {row["_seq"] for row in tuples} >= set(range(10))  # of which no importance is known
    important = [row["_seq"] for row in whole.to_pylist() if (row["c3"] or 0.0) >= 1]
    assert {row["_seq"] for row in tuples} >= set(important)
    for row in tuples[10:]:
        rate = 1.0 if row["_seq"] < 10 else 0.1 ** (1 - min(1.0, max(0.0, row["c3"])))
        assert row["c6"] == pytest.approx(1 / rate)
    for rate in (0.9, 0.3):
        left = DropPoint.of(needs, 3, 0.1).thinned(DropPoint.of(needs, 3, rate).kept(whole))
        assert repr(left.to_pylist()) == repr(once.to_pylist())


def answered(said, percents, where=""):
    """The answers of a query, by groups, and the exact ones."""
    table = rows()
    with Engine(settings={"overload": "approximate", "seed": 4}) as engine:
        engine.execute(CREATED)
        engine.execute(f"CREATE QUERY q {said} AS {TEXT.format(where)}")
        engine.execute(f"CREATE QUERY e AS {TEXT.format(where)}")
        third = table.num_rows // len(percents)
        for number, percent in enumerate(percents):
            engine.execute(f"ALTER STREAM W KEEP {percent} PERCENT")
            engine.push("W", table.slice(number * third, third))
        engine.finish()
        found, truth = (
            {row["g"]: row for row in engine.results(name, "rows") if row["weight"] > 0}
            for name in "qe"
        )
        assert engine.quality("q").dropped > table.num_rows / 3
    return found, truth


def missed(found, truth, name):
    ends = [
        (found[g][f"{name}_low"], row[name], found[g][f"{name}_high"]) for g, row in truth.items()
    ]
    return sum(not low <= value <= high for low, value, high in ends)


def width(found, name):
    """How wide bounds are in the median, relative to the answers."""
    return np.median(
        [(row[f"{name}_high"] - row[f"{name}_low"]) / row[name] for row in found.values()]
    )


@pytest.mark.parametrize("where", ["", "WHERE f < 60"])
def test_bounds_hold_and_are_narrower_where_large_values_are_important(where):
    found, truth = answered(SAID, (10, 40, 5), where)
    for name in ("n", "s", "a"):
        assert missed(found, truth, name) <= covering.most_misses(GROUPS)
    for g, row in truth.items():
        for name in ("n", "s", "a", "h"):
            low, high = (found[g][f"{name}_certain_{end}"] for end in ("low", "high"))
            assert low <= row[name] <= high
    evenly, _ = answered("TOLERATE (CONFIDENCE 95 PERCENT)", (10, 40, 5), where)
    assert width(found, "s") < 0.5 * width(evenly, "s")


def test_it_is_said_and_lasts(tmp_path):
    store = str(tmp_path / "store")
    with Engine(store=store) as engine:
        engine.execute(CREATED)
        engine.execute("CREATE QUERY q TOLERATE (SHED BY v) AS SELECT count(*) AS n FROM W")
        said = "TOLERATE (FALSE NEGATIVES 50 PERCENT, SHED BY f)"
        engine.execute(f"CREATE QUERY r {said} AS SELECT x FROM W")
    with Engine(store=store) as engine:
        said = [engine.query_entry(name).tolerates for name in "qr"]
        assert [each.shed_by for each in said] == [(3,), (2,)]
        assert str(said[0]) == 'TOLERATE (SHED BY "v", CONFIDENCE 95 PERCENT)'
        engine.execute(f"ALTER QUERY q {said[0]}")
        for other in ('SHED BY "x"', "CONFIDENCE 90 PERCENT"):
            with pytest.raises(CqlError, match="another SHED BY or WINDOW AT LEAST, or none"):
                engine.execute(f"ALTER QUERY q TOLERATE ({other})")


@pytest.mark.parametrize(
    ("said", "text", "reason"),
    [
        ("SHED BY y", "count(*) AS n FROM W", "no column of numbers of W.*there are: g, x, f, v"),
        ("SHED BY s", "count(*) AS n FROM W", "no column of numbers of W"),
        ("SHED BY v", "count(DISTINCT x) AS n FROM W", "values are drawn"),
        ("SHED BY v, SHED BY v", "count(*) AS n FROM W", "twice"),
        ("SHED v", "count(*) AS n FROM W", "BY"),
    ],
)
def test_what_is_no_importance_is_refused(said, text, reason):
    with pytest.raises(CqlError, match=reason):
        Engine().execute(f"{CREATED}; CREATE QUERY q TOLERATE ({said}) AS SELECT {text}")
