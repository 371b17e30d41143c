"""Totals: few rows that counts and sums cannot tell from those they stand for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels import totals as module
from millpond.kernels.totals import totals
from tests.drawn_examples import examples

SCHEMA = pa.schema(
    {"_ts": pa.int64(), "_w": pa.int64(), "c0": pa.string(), "c1": pa.int64(), "c2": pa.int32()}
)
LIMIT, SMALL_LIMIT = 2**63 - 1, 2**31 - 1
NUMBERS = st.sampled_from([None, 0, 1, -1, 3, -7, 2**40, LIMIT, -LIMIT - 1, LIMIT // 5])
SMALL = st.sampled_from([None, 0, 2, -5, SMALL_LIMIT, -SMALL_LIMIT - 1])
ROW = st.tuples(
    st.integers(0, 3), st.integers(1, 3), st.sampled_from(["a", "b", None]), NUMBERS, SMALL
)


def table(rows):
    columns = zip(*rows, strict=True) if rows else [[]] * len(SCHEMA)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def told(rows, sums):
    """What counts and sums tell: of each tick and key how many rows, values and their sum."""
    found = Counter()
    for row in rows.to_pylist():
        key = row["_ts"], *(row[name] for name in ("c0", "c1", "c2") if name not in sums)
        found[key, "rows"] += row["_w"]
        for name in sums:
            if row[name] is not None:
                found[key, name, "values"] += row["_w"]
                found[key, name, "sum"] += row["_w"] * row[name]
    return {what: number for what, number in found.items() if number}


@pytest.mark.parametrize("sums", [(), ("c1",), ("c2",), ("c1", "c2")])
@pytest.mark.parametrize("share", [0.5, 1e9])
@examples(60)
@given(rows=st.lists(ROW, max_size=30))
def test_counts_and_sums_are_the_same(sums, share, rows):
    usual, module.MOST_SHARE = module.MOST_SHARE, share
    try:
        made = totals(table(rows), sums)
    finally:
        module.MOST_SHARE = usual
    assert made.schema.equals(SCHEMA)
    assert told(made, sums) == told(table(rows), sums)
    assert np.all(np.diff(made["_ts"].to_numpy()) >= 0)
    if share < 1:
        assert made.num_rows <= len(rows)


def test_many_rows_become_few():
    rows = table([(i // 100, 1, "a", i % 7, None) for i in range(300)])
    made = totals(rows, ("c1", "c2"))
    assert made.num_rows == 6
    assert told(made, ("c1", "c2")) == told(rows, ("c1", "c2"))


def test_rows_without_a_like_stay_what_they_are():
    rows = table([(i, 1, "a", i, None) for i in range(9, 0, -1)])
    assert totals(rows, ("c1", "c2")).to_pylist() == rows.sort_by("_ts").to_pylist()
    assert totals(table([]), ("c1",)).num_rows == 0
