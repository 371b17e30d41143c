"""Section 4.1 of the STREAM paper: ordered arrival within k, and what a join keeps.

The closer the streams adhere to the specified constraints at run-time, the smaller the required
synopses, while the output streams stay precise; without constraints synopses of unbounded size are
needed.

The paper shows no figure. Chosen: orders and fulfilments joined by their number over unbounded
windows, 40,000 rows each in pages of 2,000; blocks of k + 1 numbers come in any order, the largest
first and the smallest last. What is kept is the most after any page of the second half; rows that
have become free go when a state is written whole, so it goes up and down.
"""

from collections.abc import Sequence

from millpond.lab.experiment import Claim, Tables, experiment
from millpond.lab.stream.adherence import ORDERED, measured
from millpond.lab.stream.sentences import common, plot


def run(seeds: Sequence[int]) -> Tables:
    """What a join keeps over k, with the constraint and without."""
    return measured(ORDERED, seeds)


def check(tables: Tables) -> Sequence[Claim]:
    """What section 4.1 says."""
    return list(common(tables))


EXPERIMENT = experiment(
    __name__, "Rows a join keeps over k, ordered arrival", plot=plot, seeds=10, long=True
)
