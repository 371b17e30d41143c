"""Rates of false positives and false negatives, and how they go through a plan (STREAM, 5.3)."""

from millpond.approximation.precision.aggregates import relative_width
from millpond.approximation.precision.compositions import (
    Composition,
    Difference,
    Distinct,
    Intersection,
    Join,
    Projection,
    Selection,
    Semijoin,
    Union,
)
from millpond.approximation.precision.partners import Partners
from millpond.approximation.precision.rates import EXACT, Precision, precision

__all__ = [
    "EXACT",
    "Composition",
    "Difference",
    "Distinct",
    "Intersection",
    "Join",
    "Partners",
    "Precision",
    "Projection",
    "Selection",
    "Semijoin",
    "Union",
    "precision",
    "relative_width",
]
