"""The join by runs: what a nested loop over the elements gives, however the steps are cut."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels import join, levels, runs
from millpond.kernels.aggregate import element_schema
from millpond.kernels.join import JoinKernel
from millpond.kernels.runs import HASH, RunIndex, as_run, merged_runs
from millpond.schema import BEGINNING, FOREVER
from tests.drawn_examples import examples
from tests.kernels.histories import INSTANTS, LAST, check_times, cuts, lives, meaning, plain

ROWS = st.tuples(
    st.sampled_from([1, 2, 3, None]),
    st.sampled_from([0.0, -0.0, math.nan, 1.5, None]),
    st.sampled_from(["x", "y", None]),
)
LIVES = lives(ROWS, may_open=True, from_beginning=True)
TYPES = (pa.int32(), pa.float64(), pa.string())
KEYS = {"no keys": (), "one": (0,), "doubles": (1,), "all": (0, 1, 2)}


def table(history, keys, after, until):
    """The elements of a history that start within a step."""
    schema = element_schema(TYPES)
    for number, column in enumerate(keys):
        schema = schema.append(pa.field(f"k{number}", TYPES[column]))
    found = []
    for life in history:
        row = {f"c{i}": value for i, value in enumerate(life.row)}
        row |= {f"k{n}": life.row[column] for n, column in enumerate(keys)}
        found += [
            row | {"_ts": ts, "_te": te, "_w": w}
            for ts, te, w in life.elements()
            if after < ts <= until
        ]
    return pa.Table.from_pylist(found, schema).select(
        ["_ts", "_te", "_w", *(f"k{n}" for n in range(len(keys))), "c0", "c1", "c2"]
    )


def naive(left, right, keys, instant):
    """The pairs at an instant, by definition."""

    def same(one, other):
        return one is not None and (one == other or (one != one and other != other))

    return dict(
        Counter(
            plain(one.row + other.row)
            for one in left
            for other in right
            if one.start <= instant < one.end and other.start <= instant < other.end
            if all(same(one.row[column], other.row[column]) for column in keys)
        )
    )


def joined(kernel, *step):
    return pa.concat_tables([kernel.output_schema.empty_table(), *kernel.pages(*step)])


@pytest.mark.slow
@examples(320)
@given(
    keys=st.sampled_from(list(KEYS.values())),
    small=st.booleans(),
    left=LIVES,
    right=LIVES,
    until=cuts(),
)
def test_a_join_is_a_nested_loop_however_steps_are_cut(keys, small, left, right, until):
    kernel = JoinKernel(tuple(TYPES[column] for column in keys), TYPES, TYPES)
    indexes, outputs, after = [kernel.index(0), kernel.index(1)], [], BEGINNING - 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "SMALL_ROWS", 1 if small else 1_024)
        patch.setattr(levels, "PARTS_A_LEVEL", 2 if small else 3)
        patch.setattr(join, "PAIRS", 3 if small else 1_000)
        patch.setattr(join, "MANY_PLACES", 0 if small else 4)
        for end in until:
            new = [kernel.new_run(table(history, keys, after, end)) for history in (left, right)]
            output = joined(kernel, *new, *indexes)
            assert output.schema == kernel.output_schema
            check_times(output, after, end)
            indexes = [with_run(index, run, end) for index, run in zip(indexes, new, strict=True)]
            outputs.append(output)
            after = end
    found = meaning(pa.concat_tables(outputs))
    assert found == {instant: naive(left, right, keys, instant) for instant in INSTANTS}


def with_run(index, table, until):
    """The index with one run more, merged with those of its size; true after a time."""
    lasting = tuple(run for run in index.runs if run.last_end > until)
    merged = levels.parts_to_merge([run.table.num_rows for run in lasting], table.num_rows)
    last = index.runs[-1].last + 1 if index.runs else 1
    old = lasting[len(lasting) - merged :]
    run = merged_runs([*(run.table for run in old), table], until) if old else table
    return RunIndex(index.schema, lasting).succeeded(run, old[0].first if old else last, last)


@pytest.mark.slow
@given(LIVES, st.integers(0, LAST), st.integers(1, 4))
def test_merged_runs_mean_the_same_after_the_time_and_stay_sorted(history, until, parts):
    pieces = [as_run(table(history[i::parts], (0,), BEGINNING - 1, until), 1) for i in range(parts)]
    merged = merged_runs(pieces, until)
    later = range(until + 1, LAST + 12)
    assert meaning(merged, later) == meaning(pa.concat_tables(pieces), later)
    hashes = merged[HASH].to_pylist()
    assert hashes == sorted(hashes)
    assert all(end > until for end in merged["_te"].to_pylist())
    staying = [r for r in merged.to_pylist() if r["_te"] == FOREVER]  # others go by themselves
    rows = [plain((r["c0"], r["c1"], r["c2"])) for r in staying]
    assert len(rows) == len(set(rows))


def test_equal_hashes_of_different_keys_do_not_meet(monkeypatch):
    monkeypatch.setattr(runs, "hashes_of", lambda keys: np.zeros(len(keys[0]), dtype=np.int64))
    kernel = JoinKernel((pa.int64(),), (pa.int64(),), (pa.int64(),))
    rows = {"_ts": [1, 1], "_te": [9, 9], "_w": [1, 1], "k0": [1, 2], "c0": [1, 2]}
    run = kernel.new_run(pa.table(rows))
    pairs = joined(kernel, run, run, kernel.index(0), kernel.index(1))
    assert [(r["c0"], r["c1"]) for r in pairs.to_pylist()] == [(1, 1), (2, 2)]


@pytest.mark.slow
def test_rows_of_a_key_meet_only_those_that_are_there_in_a_step_longer_than_the_windows(
    monkeypatch,
):
    rng, kernel = np.random.default_rng(1), JoinKernel((pa.int32(),), TYPES[:1], TYPES[:1])
    sides = []
    for _ in range(2):
        times, keys = np.arange(3_000), pa.array(rng.integers(0, 5, 3_000), pa.int32())
        arrays = [times, times + 4, np.ones(3_000, dtype=np.int64), keys, keys]
        names = ["_ts", "_te", "_w", "k0", "c0"]
        sides.append(kernel.new_run(pa.table(dict(zip(names, arrays, strict=True)))))
    looked_at = []
    meetings = join._candidates

    def counted(new, run, at_once):
        for probe, at in meetings(new, run, at_once):
            looked_at.append(len(probe))
            yield probe, at

    monkeypatch.setattr(join, "_candidates", counted)
    indexes = kernel.index(0), kernel.index(1)
    few = joined(kernel, *sides, *indexes)
    assert sum(looked_at) == few.num_rows > 0
    monkeypatch.setattr(join, "MANY_PLACES", 10**9)
    looked_at.clear()
    assert joined(kernel, *sides, *indexes).sort_by("_ts").num_rows == few.num_rows
    assert sum(looked_at) > 100 * few.num_rows


def test_what_cancels_and_what_ends_leaves_the_index():
    kernel = JoinKernel((pa.int64(),), (pa.int64(),), (pa.int64(),))
    index = kernel.index(0)
    for time in range(0, 2_000, 2):
        for start, weight in ((time, 1), (time + 1, -1)):
            rows = {"_ts": [start] * 2, "_te": [FOREVER, start + 3], "_w": [weight] * 2}
            run = kernel.new_run(pa.table(rows | {"k0": [7, start], "c0": [7, start]}))
            index = with_run(index, run, start)
    assert len(index) <= levels.SMALL_ROWS * levels.PARTS_A_LEVEL
    assert len(index.runs) <= 6


def test_runs_that_have_ended_go_at_once():
    kernel = JoinKernel((pa.int64(),), (), ())
    index = kernel.index(0)
    size = 1_000
    for step in range(100):
        keys = np.arange(size) + step * size
        times = {"_ts": np.full(size, step), "_te": np.full(size, step + 10)}
        run = kernel.new_run(pa.table(times | {"_w": np.ones(size, np.int64), "k0": keys}))
        index = with_run(index, run, step)
        assert len(index) <= 3 * 10 * size
