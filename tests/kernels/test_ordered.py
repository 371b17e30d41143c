"""Members of groups are found by place and by rank, whatever runs they lie in."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels import ordered
from millpond.kernels.aggregate import aggregate_kernel
from millpond.kernels.grouped import AggregateSpec
from millpond.kernels.kernel import fresh_number
from millpond.kernels.ordered import LEAST, MOST, MemberIndex, member_schema, merged_members
from millpond.kernels.rows_window import RowsWindowKernel
from millpond.schema import FOREVER

PLACES = st.sampled_from([LEAST, -7, -1, 0, 1, 2, 3, 50, MOST])
RUNS = st.lists(
    st.lists(st.tuples(st.integers(0, 2), PLACES, st.integers(1, 3)), max_size=8), max_size=6
)


def indexed(runs, random_):
    """The index of some runs, of which later ones also take members away; and what is there."""
    index, there = MemberIndex(member_schema()), Counter()
    for version, rows in enumerate(runs, 1):
        changes = Counter()
        for group, place, count in rows:
            changes[group, place] += count
        for key in sorted(there):
            if random_.random() < 0.5:
                changes[key] -= random_.randint(1, there[key])
        there.update(changes)
        there = Counter({key: count for key, count in there.items() if count})
        table = [{"_g": g, "_v": v, "_n": n} for (g, v), n in changes.items()]
        sorted_ = merged_members([pa.Table.from_pylist(table, member_schema())])
        index = index.succeeded(sorted_, version, version)
    return index, there


def in_order(there, group):
    """The places of a group's members, one by one."""
    return sorted(place for (g, place), n in there.items() if g == group for _ in range(n))


@given(RUNS, st.randoms(), PLACES, PLACES)
def test_members_between_places(runs, random_, low, high):
    index, there = indexed(runs, random_)
    groups = np.arange(4)
    found = index.between(groups, np.full(4, low), np.full(4, high)).to_pylist()
    wanted = {key: n for key, n in there.items() if low <= key[1] <= high}
    assert {(row["_g"], row["_v"]): row["_n"] for row in found} == wanted
    before = index.before(groups, np.full(4, low)).tolist()
    assert before == [sum(p < low for p in in_order(there, g)) for g in range(4)]


@given(RUNS, st.randoms())
def test_a_rank_lies_between_the_places_around_it(runs, random_):
    index, there = indexed(runs, random_)
    asked = [(g, rank) for g in range(3) for rank in range(len(in_order(there, g)))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordered, "FEW", 0)
        group, rank = (np.array([a[i] for a in asked], dtype=np.int64) for i in (0, 1))
        low, high = index.around(group, rank)
    for (g, number), first, end in zip(asked, low.tolist(), high.tolist(), strict=True):
        content = in_order(there, g)
        assert first <= content[number]
        assert content[number] < end or end == MOST
        assert first in (LEAST, content[number]) or content[number] == MOST


class Counting(MemberIndex):
    """Counts the members that are read."""

    read = 0

    def between(self, group, low, high):
        found = super().between(group, low, high)
        Counting.read += found.num_rows
        return found


def fed(kernel, steps):
    """Feeds tables of events step by step; the members read and written by each."""
    index, state, counts = Counting(kernel.member_schema), kernel.state_schema.empty_table(), []
    output = []
    for number, (events, after, until) in enumerate(steps):
        Counting.read = 0
        made, state, changes = kernel.run_with_members(
            events, state, index, after, until, fresh_number(number)
        )
        output.append(made)
        counts.append((Counting.read, changes.num_rows))
        together = merged_members([index.all(), changes])
        runs = index.succeeded(together, 0, number + 1).runs
        index = Counting(kernel.member_schema, runs)
    return pa.concat_tables(output), counts


def test_a_step_of_a_rows_window_touches_what_enters_and_leaves():
    kernel = RowsWindowKernel((), (pa.int64(),), 10_000, 1, is_base=True)

    def events(first, count):
        numbers = pa.array(range(first, first + count), pa.int64())
        return pa.table({"_ts": numbers, "_seq": numbers, "c0": numbers})

    steps = [(events(0, 20_000), -1, 19_999)]
    steps += [(events(n, 10), n - 1, n + 9) for n in range(20_000, 20_100, 10)]
    output, counts = fed(kernel, steps)
    assert counts[1:] == [(10, 20)] * 10
    gone = [row["c0"] for row in output.to_pylist() if row["_w"] < 0]
    assert gone == list(range(10_000, 10_100))


@pytest.mark.parametrize("function", ["percentile", "min", "max"])
@pytest.mark.parametrize("type_", [pa.int64(), pa.float64()])
def test_a_step_of_a_ranked_aggregate_touches_what_is_near_its_rank(function, type_):
    """Among 5,000 values a step that moves 10 reads some hundred, and is right."""
    result = pa.float64() if function == "percentile" else type_
    spec = AggregateSpec(function, 0, result, type_, parameter=0.3)
    kernel = aggregate_kernel((), (spec,), is_append_only=False)
    rng, window, time, steps, wanted = random.Random(1), [], 0, [], []
    for number in range(41):
        before, time = time, time + 10
        new = [rng.choice([rng.randint(0, 9), rng.randint(-(10**6), 10**6)]) for _ in range(5)]
        new = [rng.randint(-(10**6), 10**6) for _ in range(5_000)] if number == 0 else new
        old = [window.pop(rng.randrange(len(window))) for _ in range(5 if number else 0)]
        window += new
        rows = [(value, 1) for value in new] + [(value, -1) for value in old]
        events = {
            "_ts": pa.array([time] * len(rows), pa.int64()),
            "_te": pa.array([FOREVER] * len(rows), pa.int64()),
            "_w": pa.array([weight for _, weight in rows], pa.int64()),
            "a0": pa.array([value for value, _ in rows], type_),
        }
        steps.append((pa.table(events), before, time))
        ranked = sorted(window)
        place = 0.3 * (len(ranked) - 1)
        low, high = ranked[int(place)], ranked[min(int(place) + 1, len(ranked) - 1)]
        middle = low + (high - low) * (place - int(place)) if place != int(place) else low
        wanted.append({"percentile": middle, "min": ranked[0], "max": ranked[-1]}[function])
    output, counts = fed(kernel, steps)
    assert max(read for read, _ in counts[1:]) < 400
    assert max(written for _, written in counts[1:]) <= 10
    value, found = None, []
    by_time = {row["_ts"]: row["c0"] for row in output.to_pylist() if row["_w"] > 0}
    for _, _, until in steps:
        value = by_time.get(until, value)
        found.append(value)
    assert found == pytest.approx(wanted)


def test_a_percentile_of_integers_too_large_for_doubles_is_rounded():
    spec = AggregateSpec("percentile", 0, pa.float64(), pa.int64(), parameter=0.5)
    kernel = aggregate_kernel((), (spec,), is_append_only=True)
    numbers = {name: pa.array([value], pa.int64()) for name, value in (("_ts", 1), ("_w", 1))}
    large = pa.array([2**53 + 1], pa.int64())
    events = pa.table({**numbers, "_te": pa.array([FOREVER]), "a0": large})
    output, _ = fed(kernel, [(events, 0, 1)])
    assert [row["c0"] for row in output.to_pylist() if row["_w"] > 0] == [float(2**53 + 1)]
