"""Compares two outputs as signed multisets of rows, doubles up to rounding."""

from __future__ import annotations

import math
from collections import Counter

RELATIVE_TOLERANCE = 1e-9


def difference(expected, actual):
    """What ``actual`` has too much (weight > 0) or too little, as (ts, weight, row)."""
    balance = Counter()
    for ts, weight, row in actual:
        balance[ts, tuple(row)] += weight
    for ts, weight, row in expected:
        balance[ts, tuple(row)] -= weight
    open_rows = [[ts, weight, row] for (ts, row), weight in balance.items() if weight]
    for index, one in enumerate(open_rows):
        for other in open_rows[index + 1 :]:
            if one[1] * other[1] < 0 and one[0] == other[0] and close_rows(one[2], other[2]):
                settled = min(abs(one[1]), abs(other[1])) * (1 if one[1] > 0 else -1)
                one[1] -= settled
                other[1] += settled
    rest = [(ts, weight, row) for ts, weight, row in open_rows if weight]
    return sorted(rest, key=lambda r: (r[0] is not None, r[0] or 0, str(r[2])))


def close_rows(left, right):
    """Whether two rows are equal, NULLs being equal and doubles nearly so."""
    return len(left) == len(right) and all(map(close, left, right))


def close(left, right):
    """Whether two values are equal; only a double may differ a little."""
    if isinstance(left, float) or isinstance(right, float):
        numbers = all(isinstance(v, (int, float)) for v in (left, right))
        return numbers and math.isclose(
            left, right, rel_tol=RELATIVE_TOLERANCE, abs_tol=RELATIVE_TOLERANCE
        )
    return left == right
