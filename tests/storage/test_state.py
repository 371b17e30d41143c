"""Versions of state: whatever is thrown away, merged or forgotten, a state is a dictionary."""

from __future__ import annotations

import json
import tempfile
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels import levels
from millpond.kernels.counts import CountKernel
from millpond.kernels.levels import SMALL_ROWS
from millpond.schema import FOREVER
from millpond.storage import state as state_module
from millpond.storage import state_cache
from millpond.storage.deltas import read_delta, write_delta
from millpond.storage.forms import Keyed
from millpond.storage.state import Delta, StateVersion
from millpond.storage.state_cache import BucketName, StateCache
from tests.drawn_examples import examples

KERNEL = CountKernel((pa.int32(), pa.string()), "distinct")
FORM = Keyed(KERNEL.state_schema, tuple(KERNEL.keys))
EVENTS = pa.schema(
    [(n, pa.int64()) for n in ("_ts", "_te", "_w", "_side")]
    + [("k0", pa.int32()), ("k1", pa.string())]
)
BUCKETS = 2

KEYS = st.tuples(st.integers(0, 5) | st.none(), st.sampled_from(["a", None]))
CHANGES = st.lists(
    st.tuples(st.integers(0, BUCKETS - 1), KEYS, st.sampled_from([1, 1, 2, -1])), max_size=6
)
PROCESS = st.integers(0, 2)
ACTIONS = st.lists(
    st.tuples(st.just("commit"), CHANGES, PROCESS)
    | st.tuples(st.just("throw away"), CHANGES, PROCESS)
    | st.tuples(st.just("read"), st.just([]), PROCESS)
    | st.tuples(st.just("forget"), st.just([]), PROCESS),
    max_size=25,
)


class Operator:
    """One operator's state in a store, worked on by several processes."""

    def __init__(self, directory, limit_bytes=10**9):
        self.directory = str(directory)
        self.caches = [StateCache(limit_bytes) for _ in range(3)]
        self.version = StateVersion.empty(BUCKETS)
        self.names = (f"d{number}" for number in count())

    def execute(self, changes, process, time):
        """A step: the next deltas of the buckets touched."""
        cache, found = self.caches[process], {}
        for bucket in {bucket for bucket, _, _ in changes}:
            rows = [
                {"_ts": time, "_te": FOREVER, "_w": w, "_side": 0, "k0": k0, "k1": k1}
                for b, (k0, k1), w in changes
                if b == bucket
            ]
            name = BucketName(self.directory, "op", bucket)
            events = pa.Table.from_pylist(rows, EVENTS)
            known = cache.rows_of(name, FORM, self.version, events)
            _, delta = KERNEL.run(events, known, time - 1, time)
            found[bucket] = cache.write(name, FORM, self.version, delta, next(self.names), time)
        return found

    def commit(self, deltas):
        self.version = self.version.after(deltas)
        self.version = StateVersion.from_json(json.loads(json.dumps(self.version.to_json())))

    def contents(self, process):
        found = {}
        for bucket in range(BUCKETS):
            name = BucketName(self.directory, "op", bucket)
            state = self.caches[process].state_at(name, FORM, self.version)
            for row in state.all().to_pylist():
                found[bucket, (row["k0"], row["k1"])] = row["left"]
        return found


@pytest.mark.slow
@examples(240)
@given(
    limit_bytes=st.sampled_from([10**9, 1_000]),
    merges_often=st.booleans(),
    in_pieces=st.booleans(),
    actions=ACTIONS,
)
def test_a_state_is_a_dictionary_whatever_is_thrown_away_merged_or_forgotten(
    limit_bytes, merges_often, in_pieces, actions
):
    with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        if in_pieces:
            patch.setattr(state_cache, "LEAST_MERGE_BYTES", 500)
            patch.setattr(state_cache, "MERGE_SHARES", 10**7)
        patch.setattr(levels, "SMALL_ROWS", 1 if merges_often else 1_024)
        patch.setattr(state_module, "COMPACT_ROWS", 4 if merges_often else 4_096)
        operator, model = Operator(directory, limit_bytes), {}
        for time, (action, changes, process) in enumerate(actions):
            if action == "forget":
                operator.caches[process].forget(operator.directory)
            elif action == "read":
                assert operator.contents(process) == model
            else:
                deltas = operator.execute(changes, process, time)
                if action == "commit":
                    operator.commit(deltas)
                    for bucket, key, weight in changes:
                        model[bucket, key] = model.get((bucket, key), 0) + weight
                    model = {key: value for key, value in model.items() if value}
        for process in range(3):
            assert operator.contents(process) == model
        operator.caches.append(StateCache(10**9))
        assert operator.contents(3) == model
        for cache in operator.caches[:3]:  # the bucket in use stays, however large it is
            assert cache.bytes <= limit_bytes or len(cache._held) == 1


def test_a_process_that_holds_the_last_version_reads_nothing(tmp_path):
    operator = Operator(tmp_path)
    for time in range(40):
        operator.commit(operator.execute([(0, (time % 7, "a"), 1)], 0, time))
    merged = operator.caches[0].rows_read
    assert len(operator.contents(0)) == 7
    assert operator.caches[0].rows_read == merged
    operator.contents(1)
    operator.commit(operator.execute([(0, (100, "a"), 1)], 0, 50))
    before = operator.caches[1].rows_read
    assert len(operator.contents(1)) == 8
    assert operator.caches[1].rows_read - before <= max(d.rows for d in operator.version.buckets[0])


def test_a_version_of_another_history_is_read_anew(tmp_path):
    one, other = Operator(tmp_path), Operator(tmp_path)
    other.caches, other.names = one.caches, (f"other{number}" for number in count())
    one.commit(one.execute([(0, (1, "a"), 1)], 0, 0))
    assert one.contents(0) == {(0, (1, "a")): 1}
    one.caches[1].forget(one.directory)
    other.commit(other.execute([(0, (2, "a"), 1)], 1, 0))
    assert other.contents(0) == {(0, (2, "a")): 1}
    assert one.contents(1) == {(0, (1, "a")): 1}


@pytest.mark.slow
def test_many_small_steps_leave_few_small_files(tmp_path):
    operator = Operator(tmp_path)
    for time in range(600):
        operator.commit(operator.execute([(0, (time, "a"), 1)], 0, time))
        assert len(operator.version.buckets[0]) <= 9
    assert operator.caches[0].rows_read <= 600 * SMALL_ROWS
    assert sum(delta.rows for delta in operator.version.buckets[0]) == 600


def test_a_state_without_keys_is_one_row_even_of_an_empty_group(tmp_path):
    form, version = Keyed(pa.schema([("_n", pa.int64())]), ()), StateVersion.empty(1)
    name, writer = BucketName(str(tmp_path), "op", 0), StateCache(10**6)
    for number, value in enumerate([3, 7, 0, 5, 0]):
        changes = pa.table({"_n": [value]})
        delta = writer.write(name, form, version, changes, f"d{number}", number)
        version = version.after({0: delta})
        for cache in (writer, StateCache(10**6)):
            assert cache.state_at(name, form, version).all().to_pylist() == [{"_n": value}]


def test_replaced_rows_make_a_base_due():
    deltas = (Delta("a", 100, 1, 0, 1), Delta("b", 6_000, 1, 2, 2))
    version = StateVersion(2, (deltas,))
    assert version.first_of_next(0, 10, live_rows=100) == 0
    assert version.first_of_next(0, 10, live_rows=6_000) == 3
    assert version.after({0: Delta("c", 100, 1, 0, 3)}).paths == {"c"}
    assert version.after({}).paths == {"a", "b"}


def test_a_delta_that_includes_others_takes_their_place():
    version = StateVersion.empty(1)
    for number in (1, 2, 3):
        version = version.after({0: Delta(f"d{number}", 1, 1, number, number)})
    version = version.after({0: Delta("m", 2, 1, 2, 4)})
    assert [delta.path for delta in version.buckets[0]] == ["d1", "m"]


def test_what_is_written_is_read_with_its_types(tmp_path):
    table = pa.table({"k0": [1, None], "_n": [1, 0], "l": [[1, 2], []]})
    size = write_delta(tmp_path / "x", pa.concat_tables([table, table]))
    assert size == (tmp_path / "x").stat().st_size
    assert read_delta(tmp_path / "x") == pa.concat_tables([table, table])
