"""The error of a value that is counted or summed over an input that is not exact."""

from millpond.approximation.checks import require
from millpond.approximation.precision.rates import Precision


def relative_width(given: Precision, own_width: float) -> float:
    """How wide the bounds of a count are, beside what was counted.

    Of what was counted at least a part 1 - FP ought to be, and at most 1 + FN times as much; the
    operator's own bounds are ``own_width`` wide, half of it to each side. It holds of sums too, if
    wrong and missed tuples have the amounts of others in the mean.

    >>> from millpond.approximation.precision.rates import precision
    >>> round(relative_width(precision(fp=0.1, fn=0.05), 0), 10)
    0.15
    """
    require(own_width >= 0, f"a width of {own_width}: it cannot be negative")
    low = (1 - given.fp) * max(1 - own_width / 2, 0)
    return (1 + given.fn) * (1 + own_width / 2) - low
