"""Which rows are kept, by a hash of what they are; and what is known of the others."""

from millpond.approximation.sampling.draws import draws_of_keys, draws_of_rows, is_below
from millpond.approximation.sampling.drops import Drop, Dropped, Split
from millpond.approximation.sampling.panes import Pane, merged
from millpond.approximation.sampling.threshold_sample import ThresholdSample

__all__ = [
    "Drop",
    "Dropped",
    "Pane",
    "Split",
    "ThresholdSample",
    "draws_of_keys",
    "draws_of_rows",
    "is_below",
    "merged",
]
