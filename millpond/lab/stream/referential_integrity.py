"""Section 4.1 of the STREAM paper: referential integrity within k, and what a join keeps.

If all tuples for a given orderID and itemID arrive on O before the corresponding tuples arrive on
F, then we need not maintain a join synopsis for the F operand at all. Due to network delays a tuple
may arrive on F before the corresponding one on O, but the delay may be bounded with a constant k;
the smaller k, the smaller the necessary synopses.

The paper shows no figure. Chosen: each order comes once, its fulfilments (none, one or several)
come with one page, and the orders of a page k rows of fulfilments after the first of these. 40,000
rows each in pages of 2,000, unbounded windows. What is kept is that of the fulfilments; the orders
stay, as more of their fulfilments may come.
"""

from collections.abc import Iterator, Sequence

from millpond.lab.experiment import Claim, Tables, experiment
from millpond.lab.stream.adherence import REFERRING, measured
from millpond.lab.stream.sentences import common, most_of, plot
from millpond.lab.tables import picked
from millpond.lab.words import SAME


def run(seeds: Sequence[int]) -> Tables:
    """What a join keeps over k, with the constraint and without."""
    return measured(REFERRING, seeds)


def check(tables: Tables) -> Sequence[Claim]:
    """What section 4.1 says."""
    return [*common(tables), *_not_at_all(tables)]


def _not_at_all(tables: Tables) -> Iterator[Claim]:
    kept = tables["kept"]
    most, least = most_of(kept, 0), min(picked(kept, "rows", {"declared": False}))
    yield Claim(
        "we need not maintain a join synopsis for the F operand at all",
        f"k = 0: of F at most {SAME:.0%} of the rows without a constraint",
        f"{most:,} of {least:,}",
        most <= SAME * least,
    )


EXPERIMENT = experiment(
    __name__,
    "Fulfilments a join keeps over k, referential integrity",
    plot=plot,
    seeds=10,
    long=True,
)
