"""Sets of sums of one shape of which some leave the range of BIGINT: each fails by itself."""

from __future__ import annotations

import random

from millpond.errors import MillpondError
from tests import reference
from tests.fuzz import rows_of
from tests.matching import difference
from tests.reference_values import AggregateOverflowError

SCHEMA = (("ts", "BIGINT"), ("k", "INT"), ("n", "BIGINT"))
DDL = "CREATE STREAM B (ts BIGINT, k INT, n BIGINT) TIMESTAMP BY ts"
AMOUNTS = (1, 2, -1, 2**62, -(2**62), 2**63 - 1, None)
SELECTED = "FROM B [RANGE {length}] WHERE k IN ({keys})"
FORMS = (
    f"SELECT k, sum(n) AS x {SELECTED} GROUP BY k",
    f"SELECT sum(n) AS x {SELECTED}",
    f"SELECT sum(DISTINCT n) AS x, max(n) AS m {SELECTED} GROUP BY k",
    f"SELECT sum(x) AS x FROM (SELECT k, sum(n) AS x {SELECTED} GROUP BY k) GROUP BY k",
)


def drawn_set(seed):
    """(steps of rows, texts of queries by name)."""
    rng = random.Random(seed)
    usual = rng.choice((0.0, 0.7, 0.9))
    steps = [
        [(ts, rng.randrange(4), 1 if rng.random() < usual else rng.choice(AMOUNTS))
         for _ in range(rng.randrange(4))]
        for ts in range(rng.randint(2, 8))
    ]  # fmt: skip
    form = rng.choice(FORMS)
    texts = {
        f"q{number}": form.format(
            length=rng.randint(1, 4),
            keys=", ".join(str(rng.randrange(4)) for _ in range(rng.randint(1, 3))),
        )
        for number in range(rng.randint(2, 6))
    }
    return steps, texts


def check_set(make_engine, seed):
    """Runs a set; how many of its queries failed. Raises if one is not what it would be alone."""
    steps, texts = drawn_set(seed)
    elements = [(ts, i, row) for i, (ts, row) in enumerate((r[0], r) for s in steps for r in s)]
    with make_engine() as engine:
        engine.execute(DDL)
        engine.execute(";".join(f"CREATE QUERY {name} AS {text}" for name, text in texts.items()))
        for ts, rows in enumerate(steps):
            tolerant(engine.push, "B", rows)
            tolerant(engine.advance, "B", ts)
            tolerant(engine.run_until_idle)
        for _ in texts:
            tolerant(engine.finish)
        engine.finish()
        failed = {failure.query for failure in engine.failures()}
        for name, text in texts.items():
            try:
                wanted = reference.evaluate(text, {"B": (SCHEMA, elements)}, {})
            except AggregateOverflowError:
                assert name in failed, f"seed {seed}: {name} has not failed"
                continue
            assert name not in failed, f"seed {seed}: {name} has failed"
            surplus = difference(wanted, rows_of(engine.results(name)))
            assert not surplus, f"seed {seed}: {name}: {surplus}"
    return len(failed)


def tolerant(call, *given):
    """Calls the engine; that some query has failed is seen later."""
    try:
        call(*given)
    except MillpondError as error:
        assert "sum leaves the range of BIGINT" in str(error), error  # noqa: PT017
