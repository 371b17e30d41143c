"""Ranks and percentiles of a KLL sketch against the exact ones, while its memory is changed."""

from bisect import bisect_right
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.approximation.synopses import KllSketch
from tests.drawn_examples import examples

VALUE = 8
pages = st.lists(
    st.tuples(st.integers(0, 300), st.integers(0, 2**32), st.integers(1, 400)),
    min_size=1,
    max_size=4,
)


class Told(KllSketch):
    """One that is told which neighbours go up."""

    def __init__(self, draws, memory_bytes):
        self.draws = iter(draws)
        super().__init__(0, memory_bytes)

    def _draw(self):
        return next(self.draws)


@examples(30)
@given(pages, st.lists(st.integers(128, 300), min_size=1, max_size=4))
def test_ranks_and_values_are_in_the_certain_bounds(parts, memories):
    sketch, values = KllSketch(1, VALUE * 128), []
    for number, (rows, seed, different) in enumerate(parts):
        page = np.random.default_rng(seed).integers(0, different, rows)
        sketch.add(page)
        values += page.tolist()
        sketch.change_memory(VALUE * memories[number % len(memories)])
        assert sketch.memory_bytes <= VALUE * memories[number % len(memories)]
    values.sort()
    for value in range(-1, 400, 7):
        assert bisect_right(values, value) in sketch.rank(value, 0.05).certain
    for rank in range(1, len(values) + 1, 11):
        assert values[rank - 1] in sketch.value_of_rank(rank, 0.05).certain


def test_whatever_goes_up_bounds_fail_as_seldom_as_they_say():
    """All draws there can be, each as likely as any other: no chance in it."""
    values, asked, compactions = np.arange(350) * 11 % 350, (50, 170, 333), 6
    risks = (0.9, 0.5, 0.05)
    misses = np.zeros((len(risks), 2, len(asked)))
    for draws in product((0, 1), repeat=compactions):
        sketch = Told(draws, VALUE * 128)
        sketch.add(values)
        assert next(sketch.draws, None) is None
        for (at, risk), (place, value) in product(enumerate(risks), enumerate(asked)):
            misses[at, 0, place] += value + 1 not in sketch.rank(value, risk).confident
            misses[at, 1, place] += value not in sketch.value_of_rank(value + 1, risk).confident
    assert (misses <= np.array(risks)[:, None, None] * 2**compactions).all()
    assert misses[0].max() > 0


@pytest.mark.parametrize("sizes", [[4096], [2048, 8192], [8192, 2048]])
@pytest.mark.parametrize("risk", [0.3, 0.02])
def test_ranks_and_values_are_seldom_outside_the_confident_bounds(sizes, risk):
    random, asked, misses = np.random.default_rng(3), 0, 0
    values = np.floor(random.lognormal(5, 1, 6000))
    ordered = np.sort(values)
    for seed in range(8):
        sketch = KllSketch(seed, sizes[0])
        for part, size in zip(np.array_split(values, len(sizes)), sizes, strict=True):
            sketch.change_memory(size)
            sketch.add(part)
        for rank in (60, 1500, 3000, 5400, 5940):
            value = ordered[rank - 1]
            misses += bisect_right(ordered, value) not in sketch.rank(value, risk).confident
            misses += value not in sketch.value_of_rank(rank, risk).confident
            asked += 2
    assert misses <= risk * asked


def test_the_width_of_a_kll_sketch():
    """With a thousand values ranks are known to 0.7 percent of 50,000 rows, on both sides."""
    sketch = KllSketch(1, VALUE * 1024)
    for page in np.array_split(np.random.default_rng(1).permutation(50_000), 20):
        sketch.add(page)
    assert sketch.rank(25_000, 0.05).confident.width <= 2 * 0.007 * 50_000
    least, most = sketch.value_of_rank(1, 0.05), sketch.value_of_rank(50_000, 0.05)
    assert least.confident.low == 0
    assert most.confident.high == 49_999


def test_what_a_kll_sketch_refuses():
    sketch = KllSketch(1, VALUE * 128)
    with pytest.raises(ValueError, match="rank 1 of 0 rows"):
        sketch.value_of_rank(1, 0.05)
    with pytest.raises(ValueError, match="NaN"):
        sketch.add([np.nan])
    with pytest.raises(ValueError, match="less than 128 values"):
        sketch.change_memory(8)
