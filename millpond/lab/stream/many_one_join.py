"""Section 4.1 of the STREAM paper: many-one joins within k, and what a join keeps.

Among the constraints that reduce synopsis sizes without compromising precision are many-one join
constraints between two streams; the smaller the value of k, the smaller the necessary synopses.

The paper shows no figure, and says no more of this constraint. Chosen: the number of an order is
unique, or comes again k rows later (so k is how far doubles of an order come apart); fulfilments
come with their order, after it or up to a page before it. 40,000 rows each in pages of 2,000,
unbounded windows. What is kept is that of the fulfilments: they go once they have met their order
and no double of it can come. The orders stay, as more of their fulfilments may come.
"""

from collections.abc import Sequence

from millpond.lab.experiment import Claim, Tables, experiment
from millpond.lab.stream.adherence import UNIQUE, measured
from millpond.lab.stream.sentences import common, plot


def run(seeds: Sequence[int]) -> Tables:
    """What a join keeps over k, with the constraint and without."""
    return measured(UNIQUE, seeds)


def check(tables: Tables) -> Sequence[Claim]:
    """What section 4.1 says."""
    return list(common(tables))


EXPERIMENT = experiment(
    __name__, "Fulfilments a join keeps over k, many-one join", plot=plot, seeds=10, long=True
)
