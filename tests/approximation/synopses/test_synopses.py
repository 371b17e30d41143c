"""Synopses against the exact answer, while their memory is changed."""

from bisect import bisect_left, bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.approximation.intervals.tails import binomial_at_least, binomial_at_most
from millpond.approximation.synopses import (
    BloomFilter,
    CountMin,
    EquiDepthHistogram,
    ExponentialHistogram,
    HaarWavelets,
)
from tests.drawn_examples import examples

amounts = st.one_of(st.integers(0, 20), st.floats(0, 1e6))
arrivals = st.lists(st.tuples(st.integers(0, 3), amounts), max_size=80)
memories = st.lists(st.integers(4, 30), min_size=1, max_size=4)


@given(arrivals, memories)
def test_sums_of_windows_are_in_the_bounds_of_an_exponential_histogram(rows, buckets):
    times = np.cumsum([gap for gap, _ in rows]).astype(int)
    values = [float(amount) for _, amount in rows]
    histogram = ExponentialHistogram(24 * buckets[0])
    pieces = np.array_split(np.arange(len(rows)), len(buckets))
    for most, piece in zip(buckets, pieces, strict=True):
        histogram.change_memory(24 * most)
        histogram.add(times[piece], np.array(values)[piece])
        assert histogram.memory_bytes <= 24 * most
    for start in range(-1, int(max(times, default=0)) + 1):
        truth = sum(amount for time, amount in zip(times, values, strict=True) if time > start)
        certain = histogram.sum_since(start).certain
        assert certain.low <= truth * (1 + 1e-12)
        assert truth <= certain.high * (1 + 1e-12)


@pytest.mark.parametrize("most", [20, 60, 200])
def test_the_error_of_an_exponential_histogram_is_what_was_proved(most):
    random = np.random.default_rng(1)
    rows = random.integers(1, 50, 3000).astype(float)
    histogram = ExponentialHistogram(24 * most)
    histogram.add(np.arange(3000), rows)
    error = (rows.sum() / rows.min()) ** (1 / (most // 2)) - 1
    for start in range(0, 2999, 37):
        truth, certain = rows[start + 1 :].sum(), histogram.sum_since(start).certain
        assert truth in certain
        assert certain.width <= error * truth
    histogram.forget(2000)
    assert rows[2501:].sum() in histogram.sum_since(2500).certain


def test_what_an_exponential_histogram_refuses():
    histogram = ExponentialHistogram(24 * 4)
    histogram.add([5], [1])
    for times, values, message in (
        ([4], [1], "order"),
        ([6], [-1], "negative"),
        ([6], [np.nan], "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            histogram.add(times, values)
    with pytest.raises(ValueError, match="less than 4"):
        histogram.change_memory(24)
    assert histogram.sum_since(4).is_exact


def seldom(hits, trials, rate):
    """Whether so many hits, or so few, come once in a million times at most."""
    return min(binomial_at_least(hits, trials, rate), binomial_at_most(hits, trials, rate)) < 1e-6


@given(st.sets(st.integers(0, 10**6), max_size=60), st.lists(st.integers(3, 8), max_size=4))
def test_a_bloom_filter_has_all_keys_whatever_its_memory(keys, sizes):
    seen, added = BloomFilter(1, 128), []
    for size, part in zip([*sizes, 7], np.array_split(sorted(keys), len(sizes) + 1), strict=True):
        seen.add(part.astype(np.int64))
        added += part.tolist()
        seen.change_memory(2**size)
        assert seen.memory_bytes <= 2**size
        assert seen.may_have(np.array(added, dtype=np.int64)).all()


@pytest.mark.parametrize("sizes", [[512], [512, 256], [2048, 512], [256, 4096], [4096, 512, 2048]])
def test_the_rate_of_false_positives_is_what_was_measured(sizes):
    seen = BloomFilter(2, sizes[0])
    for part, size in enumerate(sizes):
        seen.change_memory(size)
        seen.add(np.arange(part * 500, (part + 1) * 500))
    others = np.arange(10**6, 10**6 + 20_000)
    found = int(seen.may_have(others).sum())
    assert found > 0
    assert not seldom(found, len(others), seen.false_positive_rate)
    assert seldom(found, len(others), min(1, seen.false_positive_rate * 1.3 + 0.002))


@given(st.lists(st.integers(0, 15), max_size=100), st.lists(st.integers(8, 14), max_size=3))
def test_counts_are_never_more_than_count_min_says(keys, sizes):
    counts = CountMin(1, 1024)
    for size, part in zip([*sizes, 9], np.array_split(keys, len(sizes) + 1), strict=True):
        counts.add(part.astype(np.int64))
        counts.change_memory(2**size)
        assert counts.memory_bytes <= 2**size
    for key in range(16):
        assert keys.count(key) in counts.count(key, 0.05).certain


@pytest.mark.parametrize("sizes", [[4096], [8192, 1024], [1024, 8192]])
@pytest.mark.parametrize("risk", [0.3, 0.01])
def test_counts_are_seldom_less_than_the_confident_bound(sizes, risk):
    random = np.random.default_rng(3)
    keys = random.zipf(1.3, 5000) % 1000
    truth, misses, asked = np.bincount(keys, minlength=1000), 0, 0
    for seed in range(10):
        counts = CountMin(seed, sizes[0])
        for part, size in zip(np.array_split(keys, len(sizes)), sizes, strict=True):
            counts.change_memory(size)
            counts.add(part)
        for key in range(0, 1000, 20):
            misses += int(truth[key]) not in counts.count(key, risk).confident
            asked += 1
    assert misses <= risk * asked


def test_what_counters_refuse():
    with pytest.raises(ValueError, match="that come"):
        CountMin(1, 1024).add(["a"], [-1])
    with pytest.raises(ValueError, match="too little"):
        BloomFilter(1, 4)


pages = st.lists(st.lists(st.integers(-20, 20), max_size=30), min_size=1, max_size=5)


@given(pages, st.integers(1, 12), st.integers(1, 12), st.integers(-22, 22), st.integers(0, 20))
def test_counts_and_ranks_are_in_the_bounds_of_an_equi_depth_histogram(parts, a, b, low, length):
    histogram, values = EquiDepthHistogram(24 * a), sorted(v for part in parts for v in part)
    for part in parts:
        histogram.add(part)
    histogram.change_memory(24 * b)
    assert histogram.memory_bytes <= 24 * b
    truth = bisect_right(values, low + length) - bisect_left(values, low)
    assert truth in histogram.count_between(low, low + length).certain
    for rank in range(1, len(values) + 1):
        assert values[rank - 1] in histogram.value_of_rank(rank).certain


@pytest.mark.parametrize("count_of_pages", [1, 20])
def test_the_width_of_an_equi_depth_histogram(count_of_pages):
    """Twice the depth of a bucket for one page; a few times that for many."""
    random, most = np.random.default_rng(4), 50
    values = random.lognormal(size=10_000)
    histogram = EquiDepthHistogram(24 * most)
    for page in np.array_split(values, count_of_pages):
        histogram.add(page)
    times = 2 if count_of_pages == 1 else 8
    for low, high in ((0.1, 0.5), (0.5, 3), (1, 1.01), (2, 100)):
        found = histogram.count_between(low, high).certain
        assert ((low <= values) & (values <= high)).sum() in found
        assert found.width <= times * len(values) / most


steps = st.lists(st.tuples(st.lists(st.integers(0, 63), max_size=12), st.booleans()), max_size=8)


@examples(60)
@given(steps, st.integers(1, 40), st.integers(1, 40))
def test_counts_are_in_the_bounds_of_haar_wavelets(moves, a, b):
    wavelets, there = HaarWavelets(6, 128 * a), np.zeros(64, dtype=int)
    for at, (positions, comes) in enumerate(moves):
        if at == len(moves) // 2:
            wavelets.change_memory(128 * b)
        if comes:
            wavelets.add(positions)
            np.add.at(there, positions, 1)
        else:
            gone = [p for p in set(positions) if there[p]]
            wavelets.add(gone, copies=-1)
            np.add.at(there, gone, -1)
    wavelets.change_memory(128 * b)
    assert wavelets.memory_bytes <= 128 * b
    for low in range(0, 64, 5):
        for high in range(low - 1, 64, 7):
            truth = int(there[low : high + 1].sum())
            assert truth in wavelets.count_between(low, high).certain


def test_smooth_data_needs_few_coefficients():
    positions = np.repeat(np.arange(256), np.arange(256) // 64 + 1)
    wavelets = HaarWavelets(8, 128 * 8)
    wavelets.add(positions)
    assert wavelets.count_between(10, 99).certain.width == 0
    assert wavelets.count_between(10, 99).estimate == ((positions >= 10) & (positions <= 99)).sum()


def test_what_wavelets_refuse():
    with pytest.raises(ValueError, match="outside"):
        HaarWavelets(3, 1280).add([8])
    with pytest.raises(ValueError, match="levels"):
        HaarWavelets(99, 1280)
