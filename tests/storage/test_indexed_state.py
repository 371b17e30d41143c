"""A join's side in a store: every process finds the elements that were committed, and no others."""

from __future__ import annotations

import tempfile
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels import levels
from millpond.kernels.join import JoinKernel
from millpond.schema import FOREVER
from millpond.storage.forms import Indexed
from millpond.storage.state import StateVersion
from millpond.storage.state_cache import BucketName, StateCache
from tests.kernels.histories import meaning

KERNEL = JoinKernel((pa.int32(),), (pa.int32(),), (pa.int32(),))
FORM = Indexed(KERNEL.run_schema(0))
ELEMENTS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 6) | st.none(), st.sampled_from([1, -1])),
    max_size=5,
)
DEEDS = st.sampled_from(["commit", "commit", "throw away", "read"])
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["commit", "commit", "throw away", "read"]), ELEMENTS, st.integers(0, 2)
    ),
    max_size=20,
)


def run_of(elements, time):
    rows = [
        {"_ts": time, "_te": FOREVER if n is None else time + n, "_w": w, "k0": key, "c0": key}
        for key, n, w in elements
    ]
    fields = [field for field in FORM.schema if field.name != "_h"]
    return KERNEL.new_run(pa.Table.from_pylist(rows, pa.schema(fields)))


@pytest.mark.slow
@pytest.mark.parametrize("limit_bytes", [10**9, 100], ids=["roomy", "tight"])
@given(actions=ACTIONS)
def test_all_processes_find_the_committed_elements(limit_bytes, actions):
    with tempfile.TemporaryDirectory() as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels, "SMALL_ROWS", 1)
        patch.setattr(levels, "PARTS_A_LEVEL", 2)
        name, names = BucketName(store, "op.left", 0), (f"d{n}" for n in count())
        caches = [StateCache(limit_bytes) for _ in range(3)]
        version, committed = StateVersion.empty(1), [run_of([], 0)]
        for time, (action, elements, process) in enumerate(actions):
            cache, later = caches[process], range(time, time + 8)
            if action == "read":
                index = cache.state_at(name, FORM, version)
                assert meaning(index.all(), later) == meaning(pa.concat_tables(committed), later)
                continue
            run = run_of(elements, time)
            delta = cache.write(name, FORM, version, run, next(names), time)
            if action == "commit":
                version = version.after({0: delta}, time)
                committed.append(run)
        later = range(len(actions), len(actions) + 8)
        for cache in caches:
            index = cache.state_at(name, FORM, version)
            assert meaning(index.all(), later) == meaning(pa.concat_tables(committed), later)
            assert len(index) == sum(delta.rows for delta in version.buckets[0])


def test_what_is_held_is_not_read_to_be_merged(tmp_path):
    """A hundred steps of one process merge runs many times, from memory."""
    name, cache = BucketName(str(tmp_path), "op.left", 0), StateCache(10**9)
    version = StateVersion.empty(1)
    for time in range(100):
        run = run_of([(time % 4, None, 1)], time)
        version = version.after({0: cache.write(name, FORM, version, run, f"d{time}", time)}, time)
    assert len(version.buckets[0]) <= 12
    assert cache.rows_read == 0
