"""How often keys came, in a table of counters (Cormode and Muthukrishnan 2005): never too few."""

import math

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import check_risk, require
from millpond.approximation.intervals.approximate import Approximate, bounded
from millpond.approximation.intervals.interval import Interval
from millpond.approximation.synopses.hash_layers import Cells, fitted, places_of, within

LEAST_WIDTH = 8


class CountMin:
    """How many rows of each key came; rows only come.

    >>> counts = CountMin(1, memory_bytes=4096)
    >>> counts.add(["a", "b", "a"]); counts.count("a", 0.05).estimate
    2
    """

    def __init__(self, seed: int, memory_bytes: int, depth: int = 4) -> None:
        require(depth > 0, f"a depth of {depth}: there has to be a row of counters")
        self._seed, self._depth = seed, depth
        self._layers: list[Cells] = []
        self.change_memory(memory_bytes)

    @property
    def memory_bytes(self) -> int:
        """How much memory is taken."""
        return sum(layer.nbytes for layer in self._layers)

    def change_memory(self, memory_bytes: int) -> None:
        """Changes how much memory may be taken: rows are folded, or there are more for new keys."""
        self._layers = fitted(self._layers, memory_bytes, LEAST_WIDTH, self._no_counters, np.add)

    def _no_counters(self, width: int) -> Cells:
        return np.zeros((self._depth, width), dtype=np.int64)

    def add(self, keys: npt.ArrayLike, rows: npt.ArrayLike = 1) -> None:
        """Counts a row of each key, or as many as are said."""
        counts = np.asarray(rows, dtype=np.int64)
        require(bool((counts >= 0).all()), "rows that go again: counters are for those that come")
        newest = self._layers[-1]
        for number, hashes in enumerate(places_of(self._seed, keys, self._depth)):
            np.add.at(newest[number], within(hashes, newest.shape[1]), counts)

    def count(self, key: str | float, risk: float) -> Approximate:
        """How many rows of a key came: at most what is estimated, and seldom much less."""
        check_risk(risk)
        hashes = places_of(self._seed, [key], self._depth)
        most = min(
            sum(int(layer[number, within(each, layer.shape[1])[0]]) for layer in self._layers)
            for number, each in enumerate(hashes)
        )
        too_many = math.ceil(self._mean_excess() / risk ** (1 / self._depth) * (1 + 1e-9)) - 1
        confident = Interval(most - min(max(too_many, 0), most), most)
        return bounded(most, Interval(0, most), confident, risk)

    def _mean_excess(self) -> float:
        """How many rows of other keys a counter has in the mean, at most."""
        return math.fsum(layer[0].sum() / layer.shape[1] for layer in self._layers)
