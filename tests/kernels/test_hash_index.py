"""A hash table of rows is a dictionary, also where different keys have one hash."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels import hash_index
from millpond.kernels.hash_index import HashIndex, hashes_of, same_keys

ACTIONS = st.lists(
    st.tuples(st.booleans(), st.lists(st.integers(0, 40), max_size=12, unique=True)), max_size=25
)


@pytest.mark.parametrize("block_rows", [1, 2**16])
@given(actions=ACTIONS, different_hashes=st.sampled_from([1, 3, 2**63 - 1]))
def test_rows_are_found_by_their_keys(block_rows, actions, different_hashes):
    """Keys are numbers; as hashes only the remainders of a few are different."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hash_index, "_BLOCK_ROWS", block_rows)
        check_rows_are_found(actions, different_hashes)


def check_rows_are_found(actions, different_hashes):
    index, model, keys_of_rows = HashIndex(), {}, []
    for puts, keys in actions:
        asked = np.array(keys, dtype=np.int64)
        hashes = asked % different_hashes

        def same(probes, rows, asked=asked, known=tuple(keys_of_rows)):
            return asked[probes] == np.array(known, dtype=np.int64)[rows]

        slots, rows = index.find(hashes, same)
        assert rows.tolist() == [model.get(key, -1) for key in keys]
        known = rows >= 0
        if puts:
            new = len(keys_of_rows) + np.arange(len(keys))
            keys_of_rows += keys
            index.replace(slots[known], hashes[known], new[known])
            index.add(hashes[~known], new[~known])
            model |= dict(zip(keys, new.tolist(), strict=True))
        else:
            index.remove(slots[known])
            model = {key: row for key, row in model.items() if key not in keys}
        assert len(index) == len(model)
        assert index.rows.tolist() == sorted(model.values())


def test_a_row_beyond_32_bits_is_found():
    index, far = HashIndex(), 2**31 + 5
    index._hashes = FewOfMany()
    hashes = np.array([7, 8])
    index.add(hashes, np.array([3, far]))
    assert index.rows.tolist() == [3, far]
    _, rows = index.find(hashes, lambda probes, rows: np.ones(len(rows), dtype=np.bool_))
    assert rows.tolist() == [3, far]


class FewOfMany:
    """An array of billions of numbers of which few are not 0."""

    def __init__(self):
        self.numbers = {}

    def __len__(self):
        return 2**40

    def __setitem__(self, places, numbers):
        self.numbers |= dict(zip(places.tolist(), numbers.tolist(), strict=True))

    def __getitem__(self, places):
        return np.array([self.numbers.get(place, 0) for place in places.tolist()])


def test_looking_up_few_among_many_looks_at_few(monkeypatch):
    index = HashIndex()
    hashes = hashes_of([pa.chunked_array([np.arange(100_000)])])
    for first in range(0, 100_000, 1_000):
        index.add(hashes[first : first + 1_000], np.arange(first, first + 1_000))
    looked = []

    def same(probes, rows):
        looked.append(len(rows))
        return probes * 1_000 == rows

    _, rows = index.find(hashes[::1_000], same)
    assert rows.tolist() == list(range(0, 100_000, 1_000))
    assert sum(looked) == 100


def test_equal_keys_are_equal_whatever_they_are_made_of():
    numbers = pa.chunked_array([[0.0, -0.0, math.nan, -math.nan, None, None, 1.0]])
    words = pa.chunked_array([["a", "a", None, None, "b", "b", "c"]])
    hashes = hashes_of([numbers, words]).tolist()
    assert hashes[0::2][:3] == hashes[1::2]
    assert len(set(hashes)) == 4
    left = [column.take(pa.array([0, 2, 4, 6, 6])) for column in (numbers, words)]
    right = [column.take(pa.array([1, 3, 5, 6, 4])) for column in (numbers, words)]
    assert same_keys(left, right).tolist() == [True] * 4 + [False]
