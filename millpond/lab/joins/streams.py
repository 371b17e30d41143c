"""Two streams to be joined over a window: a tuple of each at each instant, and who meets whom."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
INSTANTS, WINDOW, KEYS = 600, 60, 50
SKEW = 1.0
"""Of Zipf keys: the k-th most frequent is drawn as often as 1 / k is large."""
LAG = (24, 37)
"""Where partners come at an age: how old the tuple is that one meets, from and below."""


class Side(NamedTuple):
    """The tuples of one stream that are to be kept, by key, and those of the other that probe them.

    `chances` has how often a key probes, `by_age` in how many probes in the mean a tuple of an age
    is met: what policies know, as in the papers, without seeing the future.
    """

    keys: Ints
    probes: Ints
    chances: Floats
    by_age: Floats
    window: int = WINDOW


def matches(side: Side) -> list[list[int]]:
    """The instants at which each tuple is met: after it came, and before it leaves the window.

    >>> matches(Side(np.array([7, 8, 7]), np.array([7, 7, 7]), np.ones(9), np.ones(9), window=2))
    [[1], [], []]
    """
    last = len(side.keys)
    found = []
    for instant, key in enumerate(side.keys.tolist()):
        seen = side.probes[instant + 1 : min(instant + side.window, last)]
        found.append((np.flatnonzero(seen == key) + instant + 1).tolist())
    return found


def zipf(seed: int) -> list[Side]:
    """Both streams draw from the same few keys, which are frequent by their rank."""
    return _drawn(seed, 1 / np.arange(1, KEYS + 1) ** SKEW)


def uniform(seed: int) -> list[Side]:
    """Both streams draw from as many keys, all alike."""
    return _drawn(seed, np.ones(KEYS))


def aged(seed: int) -> list[Side]:
    """Each tuple has a key of its own; those of the other stream meet one that came a while ago."""
    random = np.random.default_rng(seed)
    keys = np.arange(INSTANTS)
    probes = keys - random.integers(*LAG, INSTANTS)
    by_age = np.zeros(WINDOW)
    by_age[slice(*LAG)] = 1 / (LAG[1] - LAG[0])
    return [Side(keys, probes, np.full(INSTANTS, 1 / INSTANTS), by_age)]


def _drawn(seed: int, weights: Floats) -> list[Side]:
    """Of each stream the side that keeps it; every pair is met by the later of its two tuples."""
    random = np.random.default_rng(seed)
    chances = weights / weights.sum()
    one, other = random.choice(len(weights), (2, INSTANTS), p=chances)
    by_age = np.full(WINDOW, float((chances**2).sum()))
    return [Side(one, other, chances, by_age), Side(other, one, chances, by_age)]


STREAMS: Mapping[str, Callable[[int], list[Side]]] = {
    "zipf": zipf,
    "uniform": uniform,
    "aged": aged,
}
