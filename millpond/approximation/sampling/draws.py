"""Draws: numbers of 64 bits, even over all of them, that follow from what a row or a key is.

A row is kept at a rate p iff its draw is below p·2^64: so samples at lower rates are contained in
those at higher ones, however rows come in pages. The draws of SAMPLE in the language come from
another hash: dropping rows of a stream does not favour those that a query samples.
"""

import hashlib

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import require

Draws = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ALL = 2**64


def draws_of_rows(seed: int, stream: str, seqs: npt.ArrayLike) -> Draws:
    """The draws of the tuples of a stream with these sequence numbers.

    >>> draws_of_rows(1, "Bids", [7, 8])[1] == draws_of_rows(1, "Bids", [8])[0]
    np.True_
    """
    numbers = np.asarray(seqs).astype(np.int64).view(np.uint64)
    return keyed(numbers, f"{seed}:row:{stream}")


def draws_of_keys(seed: int, keys: npt.ArrayLike) -> Draws:
    """The draws of keys: integers, doubles or texts; equal keys have one draw.

    >>> len(set(draws_of_keys(1, ["a", "b", "a"]).tolist()))
    2
    """
    return keyed(_bits(np.asarray(keys)), f"{seed}:key")


def keyed(numbers: Draws, key: str) -> Draws:
    """Numbers mixed with a key: one of a family of functions that look drawn by chance."""
    digest = hashlib.blake2b(key.encode(), digest_size=16, person=b"millpond").digest()
    one, other = np.frombuffer(digest, "<u8").astype(np.uint64)
    with np.errstate(over="ignore"):
        return _mixed(_mixed(numbers * _GOLDEN + one) ^ other)


def limit_of(rate: float) -> int:
    """Draws below it are kept at a rate."""
    require(0 <= rate <= 1, f"a rate of {rate}: it has to be from 0 to 1")
    return int(rate * _ALL)


def is_below(draws: Draws, rate: float) -> Bools:
    """Which draws are kept at a rate.

    >>> is_below(np.array([0, 2**63], dtype=np.uint64), 0.5).tolist()
    [True, False]
    """
    limit = limit_of(rate)
    if limit == _ALL:
        return np.ones(len(draws), dtype=bool)
    kept: Bools = draws < np.uint64(limit)
    return kept


def _bits(keys: npt.NDArray[np.generic]) -> Draws:
    """Keys as numbers of 64 bits: integers and doubles as they are, others by a digest."""
    if keys.dtype.kind in "iub":
        return keys.astype(np.int64 if keys.dtype.kind != "u" else np.uint64).view(np.uint64)
    if keys.dtype.kind == "f":
        numbers = keys.astype(np.float64) + 0.0  # which makes one zero of two
        return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)
    words = [hashlib.blake2b(str(key).encode(), digest_size=8).digest() for key in keys.tolist()]
    return np.frombuffer(b"".join(words), "<u8").astype(np.uint64)


def _mixed(numbers: Draws) -> Draws:
    """Steele, Lea and Flood's finaliser (SplitMix, 2014), a bijection."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    return numbers ^ (numbers >> np.uint64(31))
