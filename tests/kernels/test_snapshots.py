"""Rstream's parts: the content at given instants, what stays open, and the instants of a slide."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels.aggregate import element_schema
from millpond.kernels.snapshots import contents, slide_instants, still_open
from millpond.schema import FOREVER
from tests.kernels.histories import LAST, at, lives, meaning

ROWS = st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["a", None]))
SCHEMA = element_schema((pa.int32(), pa.string()))


def table(history, until=FOREVER):
    """The elements of a history that start by then."""
    return pa.Table.from_pylist(
        [
            {"_ts": ts, "_te": te, "_w": w, "c0": life.row[0], "c1": life.row[1]}
            for life in history
            for ts, te, w in life.elements()
            if ts <= until
        ],
        SCHEMA,
    )


@given(lives(ROWS, may_open=True), st.sets(st.integers(0, LAST + 2)))
def test_contents_are_the_rows_there_at_each_instant(history, wanted):
    instants = np.array(sorted(wanted), dtype=np.int64)
    found = {int(i): {} for i in instants}
    for record in contents(table(history), ["c0", "c1"], instants).to_pylist():
        row = (record["c0"], record["c1"])
        assert row not in found[record["_ts"]]
        found[record["_ts"]][row] = record["_w"]
    assert found == {int(i): dict(Counter(at(history, int(i)))) for i in instants}


@given(lives(ROWS, may_open=True), st.integers(0, LAST))
def test_what_stays_open_means_the_same_from_then_on(history, until):
    elements = table(history, until)
    later = range(until + 1, LAST + 12)
    kept = still_open(elements, ["c0", "c1"], until)
    assert meaning(kept, later) == meaning(elements, later)
    assert kept.num_rows <= elements.num_rows
    assert all(end > until for end in kept["_te"].to_pylist())


@given(
    st.lists(st.tuples(st.integers(-9, 20), st.integers(1, 9)), max_size=8),
    st.integers(1, 5),
    st.integers(-10, 20),
    st.integers(0, 15),
)
def test_a_slide_speaks_at_its_multiples_while_something_is_there(spans, slide, after, length):
    start = np.array([s for s, _ in spans], dtype=np.int64)
    end = np.array([s + n for s, n in spans], dtype=np.int64)
    found = slide_instants(start, end, slide, after, after + length)
    assert found.tolist() == [
        i
        for i in range(after + 1, after + length + 1)
        if i % slide == 0 and any(s <= i < s + n for s, n in spans)
    ]


def test_many_overlapping_intervals_cost_no_more_than_their_instants():
    start = np.arange(100_000, dtype=np.int64)
    found = slide_instants(start, start + 50_000, 10, -1, 200_000)
    assert len(found) == 15_000
