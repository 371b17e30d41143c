"""Levels: parts of similar size are merged, so that there are few parts and each row moves seldom.

What grows by appending (a state's deltas, a synopsis's chunks, a join's runs) is kept in parts. A
part of n rows lies on level log₄ n; with four on a level they become one part of the next. So n
rows make some 3·log₄ n parts, and each row is written log₄ n times.
"""

from __future__ import annotations

from collections.abc import Sequence

PARTS_A_LEVEL = 4

SMALL_ROWS = 64
"""All parts up to this size lie on the lowest level."""


def level_of(rows: int) -> int:
    """The level of a part with so many rows."""
    return (max(rows // SMALL_ROWS, 1).bit_length() - 1) // 2


def parts_to_merge(sizes: Sequence[int], rows: int) -> int:
    """How many of the latest parts a new one of so many rows should be merged with.

    >>> parts_to_merge([5000, 10, 10], 1), parts_to_merge([5000, 10, 10, 10], 1)
    (0, 3)
    """
    merged = 0
    while True:
        level, following = level_of(rows), merged
        while following < len(sizes) and level_of(sizes[-1 - following]) <= level:
            following += 1
        if following - merged < PARTS_A_LEVEL - 1:
            return merged
        rows += sum(sizes[len(sizes) - following : len(sizes) - merged])
        merged = following
