"""Distinct counts of HyperLogLog against the exact ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.approximation.synopses import HyperLogLog
from millpond.approximation.synopses.hyper_log_log import distinct_of

keys = st.lists(st.integers(-(2**62), 2**62), max_size=60)


@given(keys, keys, st.integers(4, 9), st.integers(4, 9))
def test_it_is_as_if_it_had_had_the_least_memory_from_the_beginning(first, second, a, b):
    changed, smallest = HyperLogLog(1, 2**a), HyperLogLog(1, 2 ** min(a, b))
    for part in (first, second):
        changed.add(np.array(part, dtype=np.int64))
        changed.change_memory(2**b)
        smallest.add(np.array(part[::-1], dtype=np.int64))
    assert changed.memory_bytes <= 2**b
    assert len({*first, *second}) in changed.distinct(0.05).certain
    if first:
        assert changed.distinct(0.05) == smallest.distinct(0.05)


@pytest.mark.parametrize("count", [2, 5, 12])
@pytest.mark.parametrize("risk", [0.5, 0.1])
def test_bounds_fail_as_seldom_as_they_say_whatever_the_hashes(count, risk):
    """All that two registers can be, with exact weights; ranks above 11 count as misses."""
    ranks = np.arange(12)
    at_most = 1 - 0.5 ** ranks.astype(float)
    both = ((at_most[:, None] + at_most[None, :]) / 2) ** count
    chances = np.diff(np.diff(both, axis=0, prepend=0), axis=1, prepend=0)
    held = 0.0
    for one in ranks.tolist():
        for other in ranks[: one + 1].tolist():
            times = 1 if one == other else 2
            found = distinct_of(np.array([one, other], dtype=np.uint8), 20, risk)
            held += times * float(chances[one, other]) * (count in found.confident)
    assert held >= 1 - risk


@pytest.mark.parametrize(("memory", "count"), [(64, 700), (256, 3000), (1024, 9000)])
def test_bounds_are_narrow_and_seldom_missed(memory, count):
    """At most 1.5 times as wide as the normal approximation says that estimates are spread."""
    misses, widths = 0, []
    for seed in range(40):
        seen = HyperLogLog(seed, memory)
        seen.add(np.arange(2 * count) % count)
        bounds = seen.distinct(0.05).confident
        misses += count not in bounds
        widths.append(bounds.width / (2 * 1.96 * 1.04 / memory**0.5 * count))
    assert misses <= 2
    assert np.mean(widths) <= 1.5


def test_as_long_as_no_key_came_twice_and_registers_are_many_it_is_exact():
    seen = HyperLogLog(1, 4096)
    assert seen.distinct(0.05).is_exact
    seen.add(["a", "b"])
    assert seen.distinct(0.05).is_exact
    seen.add(["a"])
    assert seen.distinct(0.05).certain.low == 2


def test_what_it_refuses():
    with pytest.raises(ValueError, match="too little memory"):
        HyperLogLog(1, 8)
    with pytest.raises(ValueError, match="risk"):
        HyperLogLog(1, 64).distinct(0)
