"""Tables of cells indexed by hashes, whose widths are powers of two, so that they can be folded.

Half of a table's cells can be laid on the other half, since a place in the smaller table is the
same hash with one bit less. What is in a table cannot be spread again: with more memory there is a
further table, a *layer*, for what comes from then on.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from millpond.approximation.checks import require
from millpond.approximation.sampling.draws import Draws, draws_of_keys, keyed

Cells = npt.NDArray[Any]
Places = npt.NDArray[np.intp]


def places_of(seed: int, keys: npt.ArrayLike, hashes: int) -> list[Draws]:
    """The hashes of keys, one array for each of several functions."""
    draws = draws_of_keys(seed, keys)
    return [keyed(draws, f"{seed}:place:{number}") for number in range(hashes)]


def within(hashes: Draws, width: int) -> Places:
    """The places of hashes in a table of a width."""
    return (hashes & np.uint64(width - 1)).astype(np.intp)


def fitted(
    layers: list[Cells],
    memory_bytes: int,
    least_width: int,
    made: Callable[[int], Cells],
    folded: Callable[[Cells, Cells], Cells],
) -> list[Cells]:
    """The layers folded until they fit, or with one more where there is room for it."""
    cell_bytes = made(least_width).nbytes // least_width
    require(memory_bytes >= least_width * cell_bytes, f"{memory_bytes} bytes: too little memory")
    found = list(layers)
    while sum(layer.nbytes for layer in found) > memory_bytes:
        found = _folded_once(found, least_width, folded)
    room = (memory_bytes - sum(layer.nbytes for layer in found)) // cell_bytes
    is_worth_it = not found or room >= found[-1].shape[-1]
    return [*found, made(1 << (room.bit_length() - 1))] if is_worth_it else found


def _folded_once(
    layers: list[Cells], least_width: int, folded: Callable[[Cells, Cells], Cells]
) -> list[Cells]:
    """The layers with the widest one half as wide; two of the least width are one."""
    widths = [layer.shape[-1] for layer in layers]
    at = widths.index(max(widths))
    if widths[at] > least_width:
        half = widths[at] // 2
        smaller = folded(layers[at][..., :half], layers[at][..., half:])
        return [*layers[:at], smaller, *layers[at + 1 :]]
    return [folded(layers[0], layers[1]), *layers[2:]]
