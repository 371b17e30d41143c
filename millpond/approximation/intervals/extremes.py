"""Minimum and maximum: exact where they were taken before dropping, else bounded on one side."""

import math

from millpond.approximation.checks import Floats, finite, require
from millpond.approximation.intervals.approximate import Approximate
from millpond.approximation.intervals.interval import Interval, point
from millpond.approximation.intervals.rest import Rest


def maximum(drawn: Floats, rest: Rest, is_attained: bool = False) -> Approximate:
    """The largest value of all rows.

    ``is_attained``: the bounds of the rest are values of dropped rows that count, as they are when
    they were taken before dropping and there is no filter; then it is exact.

    >>> import numpy as np
    >>> maximum(np.array([1.0, 4.0]), Rest(3, 0, 9)).certain
    Interval(low=4.0, high=9)
    """
    values = finite(drawn)
    require(len(values) + rest.rows > 0, "the maximum of no rows")
    seen = float(values.max()) if len(values) else -math.inf
    if not rest.rows:
        return Approximate(seen, point(seen), point(seen), 0)
    if is_attained:
        most = max(seen, rest.high)
        return Approximate(most, point(most), point(most), 0)
    least = seen if len(values) else rest.low
    certain = Interval(least, max(seen, rest.high))
    return Approximate(certain.low if len(values) else certain.nearest(0), certain, certain, 0)


def minimum(drawn: Floats, rest: Rest, is_attained: bool = False) -> Approximate:
    """The smallest value of all rows; see `maximum`."""
    mirrored = maximum(-finite(drawn), Rest(rest.rows, -rest.high, -rest.low), is_attained)
    certain = -mirrored.certain
    return Approximate(-mirrored.estimate, certain, certain, 0)
