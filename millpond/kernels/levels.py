"""Levels: parts of similar size are merged, so that there are few parts and each row moves seldom.

What grows by appending (a state's deltas, a synopsis's chunks, a join's runs) is kept in parts. A
part of n rows lies on level log₄ n; three on a level become one part. So n rows make at most
2·log₄ n parts, and each row is written some log₃ n times. Four parts a level move rows less, but a
join that probes them all takes longer.
"""

from collections.abc import Sequence

PARTS_A_LEVEL = 3

SMALL_ROWS = 1_024
"""All parts up to this size lie on the lowest level."""


def level_of(rows: int) -> int:
    """The level of a part with so many rows."""
    return (max(rows // SMALL_ROWS, 1).bit_length() - 1) // 2


def parts_to_merge(sizes: Sequence[int], rows: int) -> int:
    """How many of the latest parts a new one of so many rows should be merged with.

    >>> parts_to_merge([5000, 10], 1), parts_to_merge([5000, 10, 10], 1)
    (0, 2)
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
