"""Rows windows hold the last elements of each partition at every instant, however cut."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels.ordered import merged_members
from millpond.kernels.rows_window import RowsWindowKernel
from millpond.schema import FOREVER
from tests.drawn_examples import examples
from tests.kernels.histories import INSTANTS, LAST, cuts, fed, meaning

TYPES = (pa.int32(), pa.string(), pa.bool_(), pa.float64())
NAMES = ("c0", "c1", "c2", "c3")
ROWS = st.tuples(
    st.sampled_from([1, 2, None]),
    st.sampled_from(["a", "b", "é", None]),
    st.sampled_from([True, False, None]),
    st.sampled_from([0.0, 1.5, -2.0, None]),
)
ELEMENTS = st.lists(st.tuples(st.integers(0, LAST), ROWS), max_size=30)


def sort_key(row):
    """Column by column, NULL first, false before true, strings by code point."""
    return tuple((value is not None, value) if value is not None else (False,) for value in row)


def window(elements, instant, rows, slide, partition):
    """The window's content at an instant, by definition; the elements are in order."""
    parts = {}
    for ts, row in elements:
        if ts <= instant:
            parts.setdefault(tuple(row[i] for i in partition), []).append(row)
    found = Counter()
    for content in parts.values():
        found.update(content[: len(content) // slide * slide][-rows:])
    return dict(found)


def run(kernel, records, order, until):
    """Feeds stream elements in steps."""
    keys = [pa.field(n, t) for n, t in zip(kernel.keys, kernel.key_types, strict=True)]
    data = [pa.field(n, t) for n, t in zip(NAMES, TYPES, strict=True)]
    schema = pa.schema([*keys, *data, pa.field("_ts", pa.int64()), pa.field(order, pa.int64())])
    output, synopsis = fed(
        kernel, schema, lambda after, end: [r for r in records if after < r["_ts"] <= end], until
    )
    return meaning(output), synopsis


PARTITIONS = st.sampled_from([(), (0,), (1, 2), (3,)])


@pytest.mark.slow
@examples(80)
@given(ELEMENTS, st.integers(1, 5), st.integers(1, 4), PARTITIONS, cuts(), st.randoms())
def test_the_last_rows_of_a_base_stream(elements, rows, slide, partition, until, random):
    numbered = [(ts, seq, row) for seq, (ts, row) in enumerate(elements)]
    records = [
        dict(zip(NAMES, row, strict=True))
        | {f"k{i}": row[p] for i, p in enumerate(partition)}
        | {"_ts": ts, "_seq": seq}
        for ts, seq, row in numbered
    ]
    random.shuffle(records)
    types = tuple(TYPES[p] for p in partition)
    kernel = RowsWindowKernel(types, TYPES, rows, slide, is_base=True)
    found, _ = run(kernel, records, "_seq", until)
    ordered = [(ts, row) for ts, _, row in sorted(numbered, key=lambda e: e[:2])]
    for instant in INSTANTS:
        assert found[instant] == window(ordered, instant, rows, slide, partition)


@pytest.mark.slow
@examples(80)
@given(ELEMENTS, st.integers(1, 5), st.integers(1, 4), PARTITIONS, cuts(), st.randoms())
def test_the_last_rows_of_a_computed_stream(elements, rows, slide, partition, until, random):
    weights = Counter(elements)
    records = [
        dict(zip(NAMES, row, strict=True))
        | {f"k{i}": row[p] for i, p in enumerate(partition)}
        | {"_ts": ts, "_w": weight}
        for (ts, row), weight in weights.items()
    ]
    random.shuffle(records)
    types = tuple(TYPES[p] for p in partition)
    kernel = RowsWindowKernel(types, TYPES, rows, slide, is_base=False)
    found, _ = run(kernel, records, "_w", until)
    ordered = sorted(elements, key=lambda e: (e[0], sort_key(e[1])))
    for instant in INSTANTS:
        assert found[instant] == window(ordered, instant, rows, slide, partition)


@pytest.mark.slow
@examples(80)
@given(ELEMENTS, st.lists(st.integers(1, 5), min_size=3, max_size=3), st.integers(1, 3), cuts())
def test_partitions_have_lengths_of_their_own(elements, lengths, slide, until):
    """Of many queries in one operator each is a partition, and its elements say how many it has."""
    rows_of = dict(zip([1, 2, None], lengths, strict=True))
    records = [
        dict(zip(NAMES, (rows_of[row[0]], *row[1:]), strict=True))
        | {"k0": row[0], "_ts": ts, "_seq": seq}
        for seq, (ts, row) in enumerate(elements)
    ]
    kernel = RowsWindowKernel((pa.int32(),), TYPES, "c0", slide, is_base=True)
    found, _ = run(kernel, records, "_seq", until)
    ordered = sorted(enumerate(elements), key=lambda e: (e[1][0], e[0]))
    for instant in INSTANTS:
        expected = Counter()
        for query, rows in rows_of.items():
            own = [(ts, (rows, *row[1:])) for _, (ts, row) in ordered if row[0] == query]
            expected.update(window(own, instant, rows, slide, ()))
        assert found[instant] == dict(expected)


@pytest.mark.parametrize("slide", [1, 3])
def test_state_does_not_grow_with_the_age_of_the_stream(slide):
    records = [
        dict(zip(NAMES, (n % 2, "a", True, 0.0), strict=True)) | {"k0": n % 2, "_ts": n, "_seq": n}
        for n in range(600)
    ]
    kernel = RowsWindowKernel((pa.int32(),), TYPES, 4, slide, is_base=True)
    _, synopsis = run(kernel, records, "_seq", [*range(19, 600, 20), FOREVER - 1])
    state = synopsis.all()
    assert sorted(state["_n"].to_pylist()) == [300, 300]
    assert merged_members([synopsis.members.all()]).num_rows <= 2 * (4 + slide)
