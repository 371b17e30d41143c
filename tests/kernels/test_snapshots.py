"""Rstream's parts: the content at given instants, what stays open, and the instants of a slide."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels.aggregate import element_schema
from millpond.kernels.hashing import buckets
from millpond.kernels.snapshots import (
    SnapshotsKernel,
    contents,
    limit,
    slide_instants,
    slide_limit,
    still_open,
)
from millpond.schema import BEGINNING, FOREVER
from millpond.storage.synopses import GroupSynopsis
from tests.kernels.histories import LAST, at, cuts, lives, meaning

ROWS = st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["a", None]))
SCHEMA = element_schema((pa.int32(), pa.string()))
KERNEL = SnapshotsKernel((pa.int32(), pa.string()))


def table(history, until=FOREVER, after=BEGINNING - 1):
    """The elements of a history that start by then."""
    return pa.Table.from_pylist(
        [
            {"_ts": ts, "_te": te, "_w": w, "c0": life.row[0], "c1": life.row[1]}
            for life in history
            for ts, te, w in life.elements()
            if after < ts <= until
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


@pytest.mark.slow
@given(
    lives(ROWS, may_open=True, from_beginning=True),
    st.sets(st.integers(0, LAST + 2)),
    cuts(),
    st.integers(1, 3),
)
def test_a_kernel_in_buckets_gives_the_contents_however_steps_are_cut(
    history, wanted, until, count
):
    states = [GroupSynopsis(KERNEL.state_schema, KERNEL.keys) for _ in range(count)]
    found, after = {i: Counter() for i in wanted}, BEGINNING - 1
    for end in until:
        events = table(history, end, after)
        places = buckets([events[name] for name in KERNEL.columns], count)
        instants = np.array(sorted(i for i in wanted if after < i <= end), dtype=np.int64)
        for bucket, state in enumerate(states):
            own = events.filter(pa.array(places == bucket))
            known = state.all() if len(instants) else state.query(own)
            output, changed = KERNEL.run(own, known, instants, end)
            assert output.schema == KERNEL.output_schema
            assert changed.schema == KERNEL.state_schema
            state.insert(changed)
            if len(instants):
                assert all(te > end for te in state.all()["_te"].to_pylist())
            for record in output.to_pylist():
                assert record["_ts"] in instants
                found[record["_ts"]][record["c0"], record["c1"]] += record["_w"]
        after = end
    assert found == {i: Counter(at(history, i)) for i in wanted}


def test_a_step_without_instants_changes_the_rows_of_its_events_only():
    state = pa.table({"c0": [1], "c1": ["a"], "_te": [3], "_n": [1]}, schema=KERNEL.state_schema)
    events = pa.table({"_ts": [5], "_te": [9], "_w": [2], "c0": [2], "c1": [None]}, schema=SCHEMA)
    _, changed = KERNEL.run(events, state.slice(0, 0), np.zeros(0, dtype=np.int64), 6)
    assert changed.to_pylist() == [{"c0": 2, "c1": None, "_te": 9, "_n": 2}]
    _, changed = KERNEL.run(events, state, np.array([6]), 6)
    assert sorted(row["_n"] for row in changed.to_pylist()) == [0, 2]


@given(lives(ROWS, may_open=True), st.sets(st.integers(0, LAST + 2)), st.integers(1, 20))
def test_a_limit_lets_as_many_instants_pass_as_fit(history, wanted, most):
    elements, instants = table(history), np.array(sorted(wanted), dtype=np.int64)
    start, end = (np.array(elements[name].to_pylist(), dtype=np.int64) for name in ("_ts", "_te"))
    until = limit(start, end, instants, LAST + 9, most)
    there = [int(((start <= i) & (i < end)).sum()) for i in instants]
    passing = [size for i, size in zip(instants, there, strict=True) if i <= until]
    assert sum(passing) <= most or len(passing) == 1
    if until < LAST + 9:
        assert until in wanted
        assert sum(there[: len(passing) + 1]) > most
    else:
        assert len(passing) == len(wanted)


@given(
    st.lists(st.tuples(st.integers(-9, 20), st.integers(1, 9)), max_size=8),
    st.integers(1, 5),
    st.integers(-10, 20),
    st.integers(0, 15),
    st.integers(1, 6),
)
def test_a_slide_limit_is_where_the_slide_has_spoken_so_often(spans, slide, after, length, most):
    start = np.array([s for s, _ in spans], dtype=np.int64)
    end = np.array([s + n for s, n in spans], dtype=np.int64)
    whole = slide_instants(start, end, slide, after, after + length).tolist()
    until = slide_limit(start, end, slide, after, after + length, most)
    assert slide_instants(start, end, slide, after, until).tolist() == whole[:most]
    assert until == (whole[most - 1] if len(whole) > most else after + length)


def test_a_billion_answers_are_limited_without_being_listed():
    start, end = np.array([0]), np.array([10**9 + 1])
    until = slide_limit(start, end, 1, -1, 2 * 10**9, 50_000)
    assert until == 49_999
    assert len(slide_instants(start, end, 1, -1, until)) == 50_000
