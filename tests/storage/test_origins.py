"""Where pages stem from: no row is lost or invented when moments are drawn together."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.storage.origins import MOST_MOMENTS, mixed, part
from millpond.storage.pages import Page, Span
from millpond.storage.store import Store
from tests.drawn_examples import examples

MOMENTS = st.floats(0, 1e6)
ORIGINS = st.lists(st.tuples(MOMENTS, st.floats(0.5, 1e4)), min_size=1, max_size=12)
PARTS = st.lists(st.tuples(ORIGINS.map(tuple), st.integers(0, 10_000)), max_size=4)


@examples(40)
@given(PARTS)
def test_rows_and_their_mean_moment_stay_what_they_were(parts):
    found = mixed(parts)
    total = sum(rows for _, rows in parts)
    assert sum(rows for _, rows in found) == pytest.approx(total)
    mean = sum(
        rows * moment * count / sum(c for _, c in origins)
        for origins, rows in parts
        for moment, count in origins
    )
    assert sum(moment * rows for moment, rows in found) == pytest.approx(mean)


@examples(40)
@given(PARTS)
def test_moments_are_few_in_order_and_within_those_that_were(parts):
    moments = [moment for moment, _ in mixed(parts)]
    assert moments == sorted(moments)
    assert len(moments) <= MOST_MOMENTS
    given_moments = [moment for origins, _ in parts for moment, _ in origins]
    assert bool(moments) == any(rows for _, rows in parts)
    if moments:
        assert moments[0] >= min(given_moments) * (1 - 1e-9)
        assert moments[-1] <= max(given_moments) * (1 + 1e-9)


def test_what_is_made_of_no_rows_or_of_what_has_no_origin_has_none():
    assert mixed([]) == mixed([(((1.0, 2.0),), 0)]) == mixed([((), 5)]) == ()


def test_each_moment_is_off_by_at_most_a_stretch():
    parts = [(((float(second), 1.0),), 1) for second in range(160)]
    assert len(mixed(parts)) == MOST_MOMENTS
    assert mixed(parts)[0][0] < 160 / MOST_MOMENTS


@examples(40)
@given(ORIGINS.map(lambda found: tuple(sorted(found))), st.lists(st.floats(0, 1), max_size=3))
def test_parts_have_the_rows_of_the_whole_the_oldest_first(origins, cuts):
    bounds = [0.0, *sorted(cuts), 1.0]
    shares = [(low, high) for low, high in pairwise(bounds) if high - low > 1e-6]
    parts = [part(origins, low, high) for low, high in shares]
    for moments, later in pairwise(parts):
        assert moments[-1][0] <= later[0][0]
    for kind in (lambda moment, rows: rows, lambda moment, rows: moment * rows):
        whole = sum(kind(*each) for each in origins)
        assert sum(kind(*e) for each in parts for e in each) == pytest.approx(whole, rel=1e-4)


def test_what_is_left_of_a_page_is_younger_than_the_page():
    page = Page.of(Store(), pa.table({"_ts": [1, 2, 3, 4]}), is_sorted=True)
    page.origins = ((10.0, 1.0), (20.0, 1.0))
    assert page.arrived_after(0) == 10.0
    assert page.arrived_after(1) == 10.0
    assert page.arrived_after(2) == 20.0
    assert Span(page, 0, 2).origins == ((10.0, 1.0),)
    assert Span(page, 1, 3).origins == ((10.0, 0.5), (20.0, 0.5))
