"""What is kept follows from what a row is, and what is told of the others is true."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.approximation.intervals import rest_of, total
from millpond.approximation.sampling import (
    Drop,
    Dropped,
    Pane,
    ThresholdSample,
    draws_of_keys,
    draws_of_rows,
    is_below,
    merged,
)
from millpond.kernels.sampling import draws_of, hash_longs, hash_of_stream

rates = st.one_of(st.floats(0, 1), st.sampled_from([0, 1e-19, 0.5, 1]))


@given(rates, rates, st.integers(-5, 5), st.text(max_size=5))
def test_samples_at_lower_rates_are_contained_in_those_at_higher_ones(a, b, seed, stream):
    draws = draws_of_rows(seed, stream, np.arange(500))
    low, high = is_below(draws, min(a, b)), is_below(draws, max(a, b))
    assert not (low & ~high).any()
    assert is_below(draws, 1).all()
    assert not is_below(draws, 0).any()


@given(st.lists(st.integers(0, 2**63 - 1), max_size=30), st.integers(0, 30), rates)
def test_what_is_kept_does_not_depend_on_pages(seqs, at, rate):
    drop = Drop(3, "S", rate)
    whole = drop.split(np.array(seqs, dtype=np.int64)).is_kept
    parts = [drop.split(np.array(part, dtype=np.int64)) for part in (seqs[:at], seqs[at:])]
    assert whole.tolist() == [kept for part in parts for kept in part.is_kept.tolist()]


def test_arrow_columns_are_taken_as_they_are():
    seqs = pa.array(range(1000), pa.int64())
    assert (draws_of_rows(1, "S", seqs) == draws_of_rows(1, "S", range(1000))).all()
    keys = pa.array(["a", "b", "a"])
    assert draws_of_keys(1, keys).tolist() == draws_of_keys(1, ["a", "b", "a"]).tolist()


def test_equal_keys_have_one_draw():
    assert draws_of_keys(1, [0.0]).tolist() == draws_of_keys(1, [-0.0]).tolist()
    nans = np.array([0x7FF8000000000000, 0x7FF8000000000001], dtype=np.uint64).view(np.float64)
    assert len(set(draws_of_keys(1, nans).tolist())) == 1
    assert len(set(draws_of_keys(1, np.arange(10_000)).tolist())) == 10_000


def test_draws_are_even_and_those_of_streams_and_seeds_have_nothing_in_common():
    count, seqs = 200_000, np.arange(200_000)
    one = is_below(draws_of_rows(1, "S", seqs), 0.3)
    slack = 5 * np.sqrt(0.3 * 0.7 / count)
    assert abs(one.mean() - 0.3) < slack
    for other in (draws_of_rows(1, "T", seqs), draws_of_rows(2, "S", seqs), draws_of_keys(1, seqs)):
        assert abs(is_below(other, 0.3)[one].mean() - 0.3) < 2 * slack
    shifted = is_below(draws_of_rows(1, "S", seqs + 1), 0.3)
    assert abs(shifted[one].mean() - 0.3) < 2 * slack


def test_dropping_does_not_favour_what_a_query_samples():
    seqs = np.arange(100_000)
    dropped = is_below(draws_of_rows(42, "S", seqs), 0.1)
    hashes = hash_longs(seqs, hash_of_stream(42, "S"))
    sampled = draws_of(hashes) < 0.1 * (draws_of(hashes).max() + 1)
    assert abs(dropped[sampled].mean() - 0.1) < 0.02


values = st.lists(
    st.tuples(st.sampled_from([1.0, 2.5, -3.0, float("nan")]), st.integers(0, 3)), max_size=40
)


@given(values, rates, st.integers(0, 40))
def test_what_is_told_of_dropped_rows_is_true(rows, rate, at):
    amounts = np.array([amount for amount, _ in rows], dtype=float)
    keys = np.array([key for _, key in rows], dtype=np.int64)
    drop, seqs = Drop(1, "S", rate), np.arange(len(rows))
    split = drop.split(seqs, {"a": amounts}, keys)
    gone = amounts[~split.is_kept]
    assert split.dropped.rows == len(gone)
    assert split.dropped.rest("a") == rest_of(gone[~np.isnan(gone)])
    for key in range(4):
        told = split.dropped.rows_by_key.get(key, 0)
        assert told == (keys[~split.is_kept] == key).sum()
    parts = [
        drop.split(seqs[part], {"a": amounts[part]}, keys[part]).dropped
        for part in (slice(at), slice(at, None))
    ]
    assert parts[0] + parts[1] == split.dropped


def test_nothing_is_told_of_nothing():
    assert Dropped() + Dropped() == Dropped()
    assert Dropped().rest("a").rows == 0


@given(st.lists(rates, min_size=1, max_size=4), st.integers(1, 30))
def test_pieces_at_several_rates_are_one_sample_at_the_least(some, length):
    amounts = np.random.default_rng(1).normal(size=len(some) * length)
    keys = np.arange(len(amounts)) % 3.0

    def piece(rate, first, last):
        columns = {"a": amounts[first:last], "k": keys[first:last]}
        return Pane.of(Drop(1, "S", rate), np.arange(first, last), columns, keys[first:last])

    panes = [piece(rate, at * length, (at + 1) * length) for at, rate in enumerate(some)]
    whole = piece(min(some), 0, len(amounts))
    found = merged(panes, "k")
    assert found.drawn("a").tolist() == whole.drawn("a").tolist()
    assert found.dropped == whole.dropped
    assert found.rate == min(some)


def test_rows_that_are_gone_do_not_come_back():
    pane = Pane.of(Drop(1, "S", 0.3), range(10), {"a": np.arange(10.0)})
    with pytest.raises(ValueError, match="are gone"):
        pane.at(0.4)
    with pytest.raises(ValueError, match="from 0 to 1"):
        Drop(1, "S", 1.1)


def test_sums_over_sorted_input_are_covered_by_the_order_of_draws():
    """Taken in order of arrival, sorted values would look like a sample of small ones."""
    amounts, misses = np.arange(2000.0), 0
    for seed in range(100):
        pane = Pane.of(Drop(seed, "S", 0.1), range(2000), {"a": amounts})
        found = total(pane.drawn("a"), pane.rest("a"), 0.05)
        misses += amounts.sum() not in found.confident
        assert amounts.sum() in found.certain
    assert misses <= 5


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=300), st.integers(1, 40))
def test_a_threshold_sample_is_as_if_it_had_always_been_at_its_level(steps, most):
    sample, there = ThresholdSample(5, 128 * most), []
    for key, comes in steps:
        if comes or key not in there:
            sample.add([key])
            there.append(key)
        else:
            sample.add([key], copies=-1)
            there.remove(key)
        assert sample.memory_bytes <= 128 * most
    keys = np.array(sorted(set(there)), dtype=np.int64)
    expected = keys[is_below(draws_of_keys(5, keys), sample.rate)]
    found = []
    sample.distinct(0.05, lambda key, rows: found.append((key, rows)) or True)
    assert sorted(found) == [(key, there.count(key)) for key in expected]
    assert len(keys) in sample.distinct(0.05).certain


def test_distinct_keys_are_covered_while_rows_come_and_go():
    misses = twice = 0
    for seed in range(300):
        sample = ThresholdSample(seed, 128 * 40)
        sample.add(np.arange(1000))
        sample.add(np.arange(0, 1000, 2))
        sample.add(np.arange(600), copies=-1)
        misses += 700 not in sample.distinct(0.2).confident
        twice += 200 not in sample.distinct(0.2, lambda key, rows: rows == 2).confident
        sample.change_memory(128 * 10)
        misses += 700 not in sample.distinct(0.2).confident
    assert misses <= 0.2 * 600
    assert twice <= 0.2 * 300


def test_rows_that_never_came_cannot_go():
    sample = ThresholdSample(1, 1280)
    with pytest.raises(ValueError, match="never came"):
        sample.add([1], copies=-1)
    with pytest.raises(ValueError, match="not enough"):
        sample.change_memory(10)
