"""A sample of keys with the number of rows of each, for distinct counts where rows also go again.

A key is in the sample iff its draw is below 2^-level; all its rows are then counted. When there
are too many keys the level rises, and what no longer belongs is let go: nothing was ever let go
that belongs at the level there is, so the sample is as if it had always been there.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import check_risk, require
from millpond.approximation.intervals.approximate import Approximate, exactly
from millpond.approximation.intervals.counts import count_of_distinct
from millpond.approximation.sampling.draws import draws_of_keys, is_below

BYTES_OF_A_KEY = 128
"""About what a key with draw and count takes in a dictionary."""


class ThresholdSample:
    """Counts distinct keys of rows that come and go, in bounded memory.

    >>> sample = ThresholdSample(1, memory_bytes=128 * 50)
    >>> sample.add(np.arange(30)); sample.distinct(0.05).estimate
    30
    >>> sample.add(np.arange(1000)); sample.distinct(0.05).confident
    Interval(low=649, high=1029)
    """

    def __init__(self, seed: int, memory_bytes: int) -> None:
        self.level = 0
        self._seed = seed
        self._rows = 0
        self._counts: dict[object, int] = {}
        self._draws: dict[object, int] = {}
        self.change_memory(memory_bytes)

    @property
    def rate(self) -> float:
        """At which rate keys are kept."""
        return 2.0**-self.level

    def change_memory(self, memory_bytes: int) -> None:
        """Changes how much memory may be taken; with less, keys are let go."""
        require(memory_bytes >= BYTES_OF_A_KEY, f"{memory_bytes} bytes: not enough for a key")
        self._most_keys = memory_bytes // BYTES_OF_A_KEY
        self._shrink()

    @property
    def memory_bytes(self) -> int:
        """How much memory is taken, about."""
        return len(self._counts) * BYTES_OF_A_KEY

    def add(self, keys: npt.ArrayLike, copies: int = 1) -> None:
        """Takes rows with these keys in, or, with ``copies`` of -1, out again."""
        array = np.asarray(keys)
        draws = draws_of_keys(self._seed, array)
        is_kept = is_below(draws, self.rate)
        self._rows += copies * len(array)
        kept = zip(array[is_kept].tolist(), draws[is_kept].tolist(), strict=True)
        for key, draw in kept:
            self._count(key, draw, copies)
        self._shrink()

    def _count(self, key: object, draw: int, copies: int) -> None:
        rows = self._counts.get(key, 0) + copies
        require(rows >= 0, f"rows of {key!r} go that never came")
        self._counts[key], self._draws[key] = rows, draw
        if not rows:
            del self._counts[key], self._draws[key]

    def _shrink(self) -> None:
        while len(self._counts) > self._most_keys:
            self.level += 1
            limit = 2 ** (64 - self.level)
            for key in [key for key, draw in self._draws.items() if draw >= limit]:
                del self._counts[key], self._draws[key]

    def distinct(
        self, risk: float, holds: Callable[[object, int], bool] = lambda key, rows: True
    ) -> Approximate:
        """How many keys there are, or keys for which something holds, with their number of rows.

        The level follows from the draws, so a level l gets a part 1 / (l (l + 1)) of the risk:
        together these parts are one.
        """
        check_risk(risk)
        found = sum(holds(key, rows) for key, rows in self._counts.items())
        if not self.level:
            return exactly(found)
        part = risk / (self.level * (self.level + 1))
        bounds = count_of_distinct(found, self.rate, self._dropped_rows(), part)
        return Approximate(
            bounds.estimate, bounds.certain, bounds.confident, risk if bounds.risk else 0
        )

    def _dropped_rows(self) -> int:
        return self._rows - sum(self._counts.values())
