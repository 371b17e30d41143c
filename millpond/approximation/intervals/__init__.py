"""Intervals around answers that were made of a sample: certain ones and confident ones."""

from millpond.approximation.intervals.approximate import Approximate, exactly
from millpond.approximation.intervals.counts import count_of_distinct, count_of_hits, most_missing
from millpond.approximation.intervals.extremes import maximum, minimum
from millpond.approximation.intervals.interval import Interval, point
from millpond.approximation.intervals.outliers import OutlierIndex
from millpond.approximation.intervals.percentiles import percentile
from millpond.approximation.intervals.rest import NOTHING, Rest, rest_of
from millpond.approximation.intervals.totals import (
    mean,
    mean_of_hits,
    total,
    total_of_hits,
)
from millpond.approximation.intervals.truth import Truth, rows_that_pass

__all__ = [
    "NOTHING",
    "Approximate",
    "Interval",
    "OutlierIndex",
    "Rest",
    "Truth",
    "count_of_distinct",
    "count_of_hits",
    "exactly",
    "maximum",
    "mean",
    "mean_of_hits",
    "minimum",
    "most_missing",
    "percentile",
    "point",
    "rest_of",
    "rows_that_pass",
    "total",
    "total_of_hits",
]
