"""What is missing from window joins is in the bounds, whatever is evicted, with any memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.approximation.synopses import EvictedRows
from tests.drawn_examples import examples

COUNTER = 128
instants = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), max_size=40)


def run(rows, window, memories):
    """Of each instant what a probe missed and what is said of it; a row that comes may go at any
    later instant, here at once or after three."""
    gone, there, evicted, found = EvictedRows(window, COUNTER * memories[0]), [], [], []
    for now, (key, probe, goes_at_once) in enumerate(rows):
        gone.change_memory(COUNTER * memories[now % len(memories)])
        truth = sum(k == probe and came > now - window for k, came in evicted)
        found.append((truth, gone.missed(probe, now)))
        there.append((key, now))
        leaves = [row for row in there if row[1] == (now if goes_at_once else now - 3)]
        there = [row for row in there if row not in leaves]
        evicted += leaves
        gone.add(leaves)
        gone.forget(now)
        assert gone.memory_bytes <= COUNTER * memories[now % len(memories)]
    return found


@examples(40)
@given(instants, st.integers(1, 20), st.lists(st.integers(1, 12), min_size=1, max_size=4))
def test_missing_pairs_are_in_the_bounds(rows, window, memories):
    for truth, said in run(rows, window, memories):
        assert truth in said


@examples(30)
@given(instants, st.integers(1, 20))
def test_with_a_counter_for_each_row_it_is_known_what_is_missing(rows, window):
    for truth, said in run(rows, window, [window + 1]):
        assert said.low == truth == said.high


def test_panes_that_are_cut_by_the_window_may_be_in_it_and_rare_keys_may_be_missing():
    gone = EvictedRows(window=4, memory_bytes=3 * COUNTER)
    gone.add([("a", 0), ("a", 1), ("b", 1), ("a", 2)])
    assert gone.memory_bytes == 3 * COUNTER
    assert (gone.missed("a", 3).low, gone.missed("a", 3).high) == (3, 3)
    assert (gone.missed("a", 4).low, gone.missed("a", 4).high) == (1, 3)
    gone.change_memory(COUNTER)
    assert (gone.missed("b", 3).low, gone.missed("b", 3).high) == (0, 1)
    assert (gone.missed("a", 3).low, gone.missed("a", 3).high) == (3, 4)
    gone.forget(7)
    assert gone.missed("a", 7).high == 0


def test_what_it_refuses():
    with pytest.raises(ValueError, match="not enough for a key"):
        EvictedRows(10, 5)
    with pytest.raises(ValueError, match="a window of 0"):
        EvictedRows(0, 1024)
