"""Closed values: the last are known, each from a time on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.storage import bounds
from millpond.storage.bounds import Closings
from millpond.storage.frees import Closed


@given(st.lists(st.lists(st.integers(-9, 9), max_size=4), max_size=12), st.integers(0, 12))
def test_what_is_over_is_known_from_its_time_on(parts, until):
    closings = Closings()
    for after, values in enumerate(parts):
        closings.note(after, values)
    known = [value for values in parts[: until + 1] for value in values]
    found = closings.at(until, len(known))
    assert closings.count(until) == len(known)
    assert (found.listed.to_pylist() if found is not None else []) == known


def test_the_oldest_are_forgotten_and_little_is_put_together(monkeypatch):
    monkeypatch.setattr(bounds, "MOST_CLOSED", 100)
    monkeypatch.setattr(bounds, "MOST_PARTS", 60)
    closings = Closings()
    for value in range(400):
        closings.note(value, np.array([value]))
    assert closings.count(399) == 400
    known = closings.at(399, 100).listed.to_pylist()
    assert known == list(range(known[0], 400))
    assert 100 <= len(known) <= 110
    assert len(closings._parts) <= 61
    for until in range(400):
        some = closings.at(until, 100)
        assert some is None or max(some.listed.to_pylist()) <= until


@pytest.mark.parametrize("type_", [pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us")])
def test_numbers_are_looked_for_in_order(type_):
    closed = Closed(pa.array([7, 3, 5, 3]))
    plain = pa.int32() if type_ == pa.date32() else pa.int64()
    column = pa.chunked_array([pa.array([3, None, 4], plain), pa.array([7, 8, 2], plain)])
    assert closed.of(column.cast(type_)).tolist() == [True, False, False, True, False, False]


def test_texts_are_looked_for():
    closed = Closed(pa.array(["a", "c"]))
    assert closed.of(pa.chunked_array([["a", None, "b"]])).tolist() == [True, False, False]
