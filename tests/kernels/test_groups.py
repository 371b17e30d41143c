"""Codes of keys are those of the rows as Python sees them, in the order in which keys come."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from millpond.kernels.groups import MOST_PACKED, distinct, encode
from tests.drawn_examples import examples

VALUES = {
    pa.int32(): st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1, MOST_PACKED, 1 << 40]),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, math.nan]),
    pa.string(): st.sampled_from(["", "a", "b"]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.sampled_from([dt.date(2000, 1, 1), dt.date(1900, 2, 3)]),
    pa.timestamp("us"): st.sampled_from([dt.datetime(2000, 1, n) for n in (1, 2)]),
}


@st.composite
def columns(draw):
    """Columns of equally many rows, some in pieces."""
    rows, found = draw(st.integers(0, 12)), []
    for type_ in draw(st.lists(st.sampled_from(list(VALUES)), max_size=4)):
        value = VALUES[type_] if draw(st.booleans()) else VALUES[type_] | st.none()
        values = draw(st.lists(value, min_size=rows, max_size=rows))
        cut = draw(st.integers(0, rows))
        parts = [pa.array(part, type_) for part in (values[:cut], values[cut:])]
        found.append(pa.chunked_array(parts))
    return rows, found


def by_coming(rows, found):
    """The codes by a table of Python's."""
    codes = {}

    def same(value):
        return "nan" if isinstance(value, float) and math.isnan(value) else value

    keys = zip(*([same(each) for each in c.to_pylist()] for c in found), strict=True)
    told = list(keys) if found else [()] * rows
    return [codes.setdefault(key, len(codes)) for key in told]


@examples(40)
@given(columns())
def test_codes_are_dense_and_in_the_order_of_coming(given_columns):
    rows, found = given_columns
    assert encode(found, rows).tolist() == by_coming(rows, found)


def test_many_rows_of_few_and_of_far_keys_have_codes_too():
    """Each of the ways to make numbers dense: a table, Arrow's hashes, and a step between."""
    numbers = np.arange(70_000)
    near, far = (numbers * 7919) % 1000, (numbers * 7919) % 90_001 * (1 << 41)
    for parts in ((near,), (near, near[::-1]), (far, far[::-1])):
        found = [pa.chunked_array([pa.array(part)]) for part in parts]
        assert encode(found, len(numbers)).tolist() == by_coming(len(numbers), found)


@examples(20)
@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 3)))
def test_distinct_numbers_are_in_order_and_there_once(numbers):
    assert distinct(np.array(numbers, dtype=np.int64)).tolist() == sorted(set(numbers))
