"""A set of keys in bits (Bloom 1970): says of each key that was added that it is there.

Of others it seldom does. How seldom is not estimated from how many were added, but measured: a key
that was not added has its places anywhere, so each is set with the chance that is the part of bits
that are set, whatever was added.
"""

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import require
from millpond.approximation.sampling.draws import Draws
from millpond.approximation.synopses.hash_layers import (
    Cells,
    Places,
    fitted,
    places_of,
    within,
)

LEAST_BITS = 64


class BloomFilter:
    """Keys that came, for DISTINCT, EXCEPT and INTERSECT.

    >>> seen = BloomFilter(1, memory_bytes=1024)
    >>> seen.add(["a", "b"]); seen.may_have(["a", "c"]).tolist()
    [True, False]
    """

    def __init__(self, seed: int, memory_bytes: int, hashes: int = 4) -> None:
        require(hashes > 0, f"{hashes} hashes: there has to be one")
        self._seed, self._hashes = seed, hashes
        self._layers: list[Cells] = []
        self.change_memory(memory_bytes)

    @property
    def memory_bytes(self) -> int:
        """How much memory is taken."""
        return sum(layer.nbytes for layer in self._layers)

    def change_memory(self, memory_bytes: int) -> None:
        """Changes how much memory may be taken: bits are folded, or there are more for new keys."""
        self._layers = fitted(self._layers, memory_bytes, LEAST_BITS // 8, _no_bits, np.bitwise_or)

    @property
    def false_positive_rate(self) -> float:
        """The chance that a key that was not added is said to be there, given the bits as they are.

        >>> BloomFilter(1, 1024).false_positive_rate
        0.0
        """
        fills = [np.bitwise_count(layer).sum() / (8 * len(layer)) for layer in self._layers]
        return float(1 - np.prod([1 - fill**self._hashes for fill in fills]))

    def add(self, keys: npt.ArrayLike) -> None:
        """Adds keys."""
        newest = self._layers[-1]
        for hashes in places_of(self._seed, keys, self._hashes):
            np.bitwise_or.at(newest, *_byte_and_bit(hashes, len(newest)))

    def may_have(self, keys: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which keys may have been added; those that are not were not, for certain."""
        hashes = places_of(self._seed, keys, self._hashes)
        found = np.zeros(len(hashes[0]), dtype=bool)
        for layer in self._layers:
            is_there = np.ones(len(found), dtype=bool)
            for each in hashes:
                byte, bit = _byte_and_bit(each, len(layer))
                is_there &= (layer[byte] & bit) != 0
            found |= is_there
        return found


def _no_bits(width: int) -> Cells:
    return np.zeros(width, dtype=np.uint8)


def _byte_and_bit(hashes: Draws, width: int) -> tuple[Places, Cells]:
    """Where a hash is in so many bytes: the bit by its last three bits, the byte by others."""
    bit = np.left_shift(1, within(hashes, 8)).astype(np.uint8)
    return within(hashes >> np.uint64(3), width), bit
