"""Section 4.1 of the STREAM paper: clustered arrival within k, and what a join keeps.

If F tuples arrive clustered by orderID, then we need only save O tuples for a given orderID until
the next orderID is seen. With a tolerance k no more than k tuples with a different orderID appear
between two with the same one; the smaller k, the smaller the necessary synopses.

The paper shows no figure. Chosen: orders and fulfilments joined by their number over unbounded
windows, 40,000 rows each in pages of 2,000, two tuples of each number with k others between them,
numbers in no order; both streams are clustered, so that both sides of the join are freed. Millpond
looks for closed numbers once 4,096 more of them are closed, on both sides together.
"""

from collections.abc import Iterator, Sequence

from millpond.lab.experiment import Claim, Instead, Tables, experiment
from millpond.lab.stream.adherence import CLUSTERED, measured
from millpond.lab.stream.arrivals import PAGE_ROWS
from millpond.lab.stream.sentences import common, most_of, plot
from millpond.storage.state import COMPACT_ROWS

SIDES = 2
A_NUMBER = 2
"""So many tuples of each number come."""


def run(seeds: Sequence[int]) -> Tables:
    """What a join keeps over k, with the constraint and without."""
    return measured(CLUSTERED, seeds)


def check(tables: Tables) -> Sequence[Claim]:
    """What section 4.1 says."""
    return [*common(tables), *_until_the_next(tables)]


def _until_the_next(tables: Tables) -> Iterator[Claim]:
    most, page = most_of(tables["kept"], 0), SIDES * PAGE_ROWS
    stated = SIDES * (2 * (A_NUMBER * (1 + COMPACT_ROWS) + PAGE_ROWS) + COMPACT_ROWS)
    yield Claim(
        "we need only save O tuples for a given orderID until the next orderID is seen",
        f"k = 0: at most the {page:,} rows of a page of each side",
        f"{most:,}",
        most <= page,
        Instead(
            f"at most the {stated:,} rows that EXPLAIN states",
            "closed numbers are looked for once 4,096 more are closed, so that a step costs what "
            "it reads",
            most <= stated,
        ),
    )


EXPERIMENT = experiment(
    __name__, "Rows a join keeps over k, clustered arrival", plot=plot, seeds=10, long=True
)
