"""Numbers in rows of one length as text of a log: of each row the steps, which are small."""

import base64
import zlib

import numpy as np
import numpy.typing as npt


def packed(rows: npt.NDArray[np.int64]) -> str:
    """As text.

    >>> unpacked(packed(np.array([[1, 2], [7, 5]])), 2).tolist()
    [[1, 2], [7, 5]]
    """
    steps = np.diff(rows, axis=1, prepend=0)
    return base64.b85encode(zlib.compress(steps.tobytes(), 1)).decode()


def unpacked(text: str, rows: int) -> npt.NDArray[np.int64]:
    """So many rows that a text has."""
    steps = np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype=np.int64)
    return np.cumsum(steps.reshape(rows, -1), axis=1)
