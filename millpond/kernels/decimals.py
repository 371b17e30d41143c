"""DECIMALs as whole numbers of their smallest unit: in 64 bits where they fit, else Python's."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.kernels.groups import Bools, Ints

NARROW_DIGITS = 18
"""So many digits fit in 64 bits, also twice; Spark too keeps and hashes those as such."""

LIMBS = 5
"""Columns of a sum: four of 32 bits, the lowest first, and what is above them."""

_LIMB_BITS = 32
_MASK = np.int64(2**_LIMB_BITS - 1)

Wholes = npt.NDArray[np.int64] | npt.NDArray[np.object_]


def is_narrow(type_: pa.DataType) -> bool:
    """Whether the numbers of a DECIMAL fit in 64 bits."""
    return bool(type_.precision <= NARROW_DIGITS)


def is_wide(type_: pa.DataType | None) -> bool:
    """Whether it is a DECIMAL of which they do not."""
    return type_ is not None and pa.types.is_decimal(type_) and not is_narrow(type_)


def wholes(array: pa.Array) -> Wholes:
    """The numbers of a column; anything where NULL.

    >>> wholes(pa.array(["-1.50", "12"]).cast(pa.decimal128(5, 2))).tolist()
    [-150, 1200]
    """
    low, high = halves(array)
    if is_narrow(array.type):
        return low.view(np.int64)
    found: Wholes = (high.astype(object) << 64) + low.astype(object)
    return found


def halves(array: pa.Array) -> tuple[npt.NDArray[np.uint64], Ints]:
    """The lower and the upper 64 bits of each."""
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    words = np.frombuffer(buffer, np.uint64, 2 * len(array), array.offset * 16).reshape(-1, 2)
    return words[:, 0], words[:, 1].view(np.int64)


def column_of(data: Wholes, type_: pa.DataType, valid: Bools | None = None) -> pa.Array:
    """Such numbers as a column."""
    words = np.empty((len(data), 2), np.uint64)
    if data.dtype == object:
        inner = data if valid is None else np.where(valid, data, 0)
        words[:, 0] = (inner & (2**64 - 1)).astype(np.uint64)
        words[:, 1] = (inner >> 64).astype(np.int64).view(np.uint64)
    else:
        words[:, 0] = data.view(np.uint64)
        words[:, 1] = (data >> np.int64(63)).view(np.uint64)
    mask = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(type_, len(data), [mask, pa.py_buffer(words)])


def as_bytes(array: pa.Array) -> list[bytes | None]:
    """Each as its shortest two's complement, the highest byte first, as Java writes it."""
    pairs = zip(wholes(array).tolist(), np.asarray(array.is_valid()).tolist(), strict=True)
    return [_bytes_of(number) if is_there else None for number, is_there in pairs]


def _bytes_of(number: int) -> bytes:
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


def limbs(array: pa.Array, weights: Ints) -> list[Ints]:
    """The parts of each number times its weight, which is zero where the column is NULL."""
    low, high = halves(array)
    shift = np.uint64(_LIMB_BITS)
    parts = [
        (low & np.uint64(_MASK)).astype(np.int64),
        (low >> shift).astype(np.int64),
        high & _MASK,
        high >> np.int64(_LIMB_BITS),
    ]
    found = [np.where(weights != 0, part, 0) * weights for part in parts]
    return [*found, np.zeros(len(weights), np.int64)]


def normalised(parts: list[Ints]) -> list[Ints]:
    """The same sums with what a part has too much carried into the next."""
    found = list(parts)
    for place in range(LIMBS - 1):
        found[place + 1] = found[place + 1] + (found[place] >> np.int64(_LIMB_BITS))
        found[place] = found[place] & _MASK
    return found


def joined(parts: list[Ints]) -> npt.NDArray[np.object_]:
    """Sums of their parts."""
    total = parts[-1].astype(object)
    for part in reversed(parts[:-1]):
        total = (total << _LIMB_BITS) + part.astype(object)
    found: npt.NDArray[np.object_] = total
    return found


def within(data: Wholes, type_: pa.DataType) -> Bools:
    """Which numbers a DECIMAL has room for."""
    found: Bools = np.abs(data) < 10**type_.precision
    return found.astype(np.bool_)


def mean_of(total: Wholes, count: Ints, of: pa.DataType, type_: pa.DataType) -> Wholes:
    """Sums of some numbers of one type, divided by how many they are, as numbers of another."""
    more = type_.scale - of.scale
    over = total.astype(object) * 10 ** max(more, 0)
    return rounded(over, np.maximum(count, 1).astype(object) * 10 ** max(-more, 0))


def rounded(data: Wholes, divisor: int | Wholes) -> Wholes:
    """Quotients, halves away from zero; divisors are above zero."""
    size = (np.abs(data) * 2 + divisor) // (2 * divisor)
    found: Wholes = np.where(data < 0, -size, size)
    return found
