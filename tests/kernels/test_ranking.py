"""The ranks of rows are right at every instant, however a history is cut into steps."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cmp_to_key

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels.ordered import MemberIndex
from millpond.kernels.ranking import RankingKernel
from millpond.kernels.sorts import Sort
from millpond.schema import FOREVER
from tests.drawn_examples import examples
from tests.kernels.histories import INSTANTS, at, cuts, fed, lives, meaning, step_events

TYPES = (pa.int32(), pa.string(), pa.float64())
ROWS = st.tuples(
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from(["a", "b", "é", "a long text", "a long word", None]),
    st.sampled_from([0.0, 1.5, -2.0, float("inf"), None]),
)
SORTS = st.lists(
    st.tuples(st.sampled_from([0, 1, 2]), st.booleans(), st.booleans()),
    max_size=2,
    unique_by=lambda sort: sort[0],
)
FUNCTIONS = st.sampled_from(["row_number", "rank", "dense_rank"])


def compared(sorts, one, other):
    """By the sort keys, then by all columns, NULL first."""
    everything = [*sorts, *((i, False, True) for i in range(len(one)))]
    for column, is_descending, nulls_first in everything:
        x, y = one[column], other[column]
        if x == y:
            continue
        if x is None or y is None:
            return -1 if (x is None) == nulls_first else 1
        return -1 if (x < y) != is_descending else 1
    return 0


def ranked(rows, sorts, function, limit):
    """{(row, rank): copies} by definition."""
    ordered = sorted(rows, key=cmp_to_key(lambda x, y: compared(sorts, x, y)))
    keys = [tuple(row[column] for column, _, _ in sorts) for row in ordered]
    found = Counter()
    for position, (row, key) in enumerate(zip(ordered, keys, strict=True)):
        rank = {
            "row_number": position + 1,
            "rank": keys.index(key) + 1,
            "dense_rank": len(dict.fromkeys(keys[: position + 1])),
        }[function]
        if limit is None or rank <= limit:
            found[*row, rank] += 1
    return found


def check(history, sorts, function, limit, partition, until, is_append_only=False):
    key_types = tuple(TYPES[p] for p in partition)
    order = tuple(Sort(f"r{column}", *rest) for column, *rest in sorts)
    kernel = RankingKernel(key_types, TYPES, order, function, limit, is_append_only)
    schema = pa.schema(
        [*kernel.key_fields, *(pa.field(f"r{i}", t) for i, t in enumerate(TYPES))]
        + [pa.field(name, pa.int64()) for name in ("_ts", "_te", "_w")]
    )

    def events(after, end):
        found = step_events(history, [f"r{i}" for i in range(len(TYPES))], after, end)
        return [each | {f"k{i}": each[f"r{p}"] for i, p in enumerate(partition)} for each in found]

    output, synopsis = fed(kernel, schema, events, until)
    found = meaning(output)
    for instant in INSTANTS:
        parts = {}
        for row in at(history, instant):
            parts.setdefault(tuple(row[p] for p in partition), []).append(row)
        expected = sum((ranked(p, sorts, function, limit) for p in parts.values()), Counter())
        assert found[instant] == dict(expected), instant
    return synopsis


@pytest.mark.slow
@examples(100)
@given(
    lives(ROWS, may_open=True, from_beginning=True),
    SORTS,
    FUNCTIONS,
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from([(), (0,), (1, 2)]),
    cuts(),
)
def test_ranks_of_rows_that_come_and_go(history, sorts, function, limit, partition, until):
    check(history, sorts, function, limit, partition, until)


@pytest.mark.slow
@examples(60)
@given(
    lives(ROWS, may_open=False).map(lambda lives: [replace(x, end=FOREVER) for x in lives]),
    SORTS,
    FUNCTIONS,
    st.integers(1, 3),
    st.sampled_from([(), (0,)]),
    cuts(),
)
def test_where_rows_only_come_the_first_are_kept(history, sorts, function, limit, partition, until):
    synopsis = check(history, sorts, function, limit, partition, until, is_append_only=True)
    if function == "row_number":
        groups = len(dict.fromkeys(tuple(x.row[p] for p in partition) for x in history))
        assert sum(synopsis.members.all()["_n"].to_pylist()) <= limit * groups


def test_a_step_reads_the_first_rows_and_as_many_more_as_go():
    kernel = RankingKernel((), TYPES[:1], (Sort("r0", True, False),), "row_number", 3, False)
    schema = pa.schema([("r0", pa.int32()), *((n, pa.int64()) for n in ("_ts", "_te", "_w"))])
    rows = [{"r0": i, "_ts": 0, "_te": FOREVER, "_w": 1} for i in range(5_000)]
    goes = [{"r0": 4_999, "_ts": 1, "_te": FOREVER, "_w": -1}]
    read = []

    class Watched(MemberIndex):
        def between(self, group, low, high):
            read.append(super().between(group, low, high))
            return read[-1]

    _, state, moved = kernel.run_with_members(
        pa.Table.from_pylist(rows, schema),
        kernel.state_schema.empty_table(),
        MemberIndex(kernel.member_schema),
        -1,
        0,
        0,
    )
    members = Watched(kernel.member_schema).succeeded(moved, 1, 1)
    output, *_ = kernel.run_with_members(
        pa.Table.from_pylist(goes, schema), state, members, 0, 1, 1
    )
    assert [each.num_rows for each in read] < [100]
    assert sorted(zip(*(output[n].to_pylist() for n in ("_w", "c0", "c1")), strict=True)) == [
        (-1, 4_997, 3),
        (-1, 4_998, 2),
        (-1, 4_999, 1),
        (1, 4_996, 3),
        (1, 4_997, 2),
        (1, 4_998, 1),
    ]
