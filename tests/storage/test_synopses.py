"""The state of groups: the last row of each key, whatever was inserted before."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.storage import synopses
from millpond.storage.synopses import GroupSynopsis

SCHEMA = pa.schema(
    [
        ("k0", pa.int32()),
        ("k1", pa.float64()),
        ("_n", pa.int64()),
        ("list", pa.list_(pa.int64())),
    ]
)
KEYS = st.tuples(st.sampled_from([1, 2, 3, None]), st.sampled_from([0.0, 1.5, math.nan, None]))
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "query"]),
        st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=6, unique_by=lambda p: str(p[0])),
    ),
    max_size=15,
)


def rows(pairs, number):
    """State rows, each distinguishable by the number of its insertion."""
    return pa.Table.from_pylist(
        [{"k0": k0, "k1": k1, "_n": n, "list": [number]} for (k0, k1), n in pairs], SCHEMA
    )


def contents(table):
    return {str((r["k0"], r["k1"])): (r["_n"], r["list"]) for r in table.to_pylist()}


@pytest.mark.slow
@pytest.mark.parametrize("compact_rows", [0, 1000], ids=["compacting", "lazy"])
@given(actions=ACTIONS)
def test_a_synopsis_is_a_dictionary_by_key(compact_rows, actions):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synopses, "COMPACT_ROWS", compact_rows)
        patch.setattr(synopses, "LEAST_CHUNK_BYTES", compact_rows)
        synopsis, model = GroupSynopsis(SCHEMA, ["k0", "k1"]), {}
        for number, (action, pairs) in enumerate(actions):
            table = rows(pairs, number)
            keys = [str(key) for key, _ in pairs]
            if action == "insert":
                synopsis.insert(table)
                model |= {str(key): (n, [number]) for key, n in pairs}
                model = {key: value for key, value in model.items() if value[0]}
            else:
                found = synopsis.query(table)
                assert found.schema == SCHEMA
                assert contents(found) == {k: model[k] for k in keys if k in model}
            assert len(synopsis) == len(model)
        assert contents(synopsis.all()) == model
        assert synopsis.all().num_rows == len(model)


def test_replaced_rows_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(synopses, "COMPACT_ROWS", 10)
    synopsis, sizes = GroupSynopsis(SCHEMA, ["k0", "k1"]), []
    for number in range(200):
        synopsis.insert(rows([((key, None), 1) for key in range(5)], number))
        sizes.append(synopsis.bytes)
    assert max(sizes[100:]) <= max(sizes[:100])
    assert {tuple(v[1]) for v in contents(synopsis.all()).values()} == {(199,)}


@pytest.mark.slow
def test_many_small_steps_leave_few_chunks():
    synopsis = GroupSynopsis(SCHEMA, ["k0", "k1"])
    for number in range(2_000):
        synopsis.insert(rows([((number, None), 1)], number))
    assert len(synopsis) == 2_000
    assert len(synopsis._chunks) <= 12
    wanted = rows([((number, None), 1) for number in (0, 999, 1_999)], 0)
    assert {r["list"][0] for r in synopsis.query(wanted).to_pylist()} == {0, 999, 1_999}


def test_chunks_are_merged_up_to_a_part_of_all_rows(monkeypatch):
    monkeypatch.setattr(synopses, "LEAST_CHUNK_BYTES", 0)
    synopsis = GroupSynopsis(SCHEMA, ["k0", "k1"])
    for number in range(400):
        synopsis.insert(rows([((100 * number + n, None), 1) for n in range(100)], number))
    whole = sum(synopsis._sizes)
    assert max(synopsis._sizes) <= 2 * whole / synopses.CHUNK_SHARES
    assert len(synopsis._chunks) <= 4 * synopses.CHUNK_SHARES


def test_a_synopsis_without_keys_holds_one_row_even_of_an_empty_group():
    synopsis = GroupSynopsis(pa.schema([("_n", pa.int64())]), [])
    for count in (3, 0):
        synopsis.insert(pa.table({"_n": [count]}))
        assert synopsis.all().to_pylist() == [{"_n": count}]
