"""What the Chain paper's text says of its figures, as ratios of peak queue sizes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from millpond.lab.experiment import Claim, Instead, Tables
from millpond.lab.tables import picked
from millpond.lab.words import CLEARLY

STRATEGIES = ("chain", "greedy", "round-robin", "fifo")
WORKLOADS = ("bursts", "trace")


class Ratio(NamedTuple):
    """One strategy's peak over another's lies between these."""

    strategy: str
    other: str
    least: float = 0.0
    most: float = float("inf")

    def of(self, tables: Tables, workload: str) -> float:
        """As measured, peaks averaged over the seeds."""
        mine, theirs = (
            mean_of(tables, "peak", workload, name) for name in (self.strategy, self.other)
        )
        return mine / theirs

    def holds(self, tables: Tables, workload: str) -> bool:
        """Whether it lies there."""
        return self.least <= self.of(tables, workload) <= self.most

    @property
    def bounds(self) -> str:
        """In words."""
        if self.most == float("inf"):
            return f"at least {self.least:.3g}"
        return f"at most {self.most:.3g}" if not self.least else f"{self.least:g} to {self.most:g}"


class Otherwise(NamedTuple):
    """What stands where the sentence does not: all of these ratios."""

    found: str
    why: str
    ratios: Sequence[Ratio]


class Sentence(NamedTuple):
    """A sentence of the paper, quoted, as a ratio."""

    words: str
    ratio: Ratio
    otherwise: Otherwise | None = None
    workloads: Sequence[str] = WORKLOADS


BETTER_THAN_GREEDY = (
    Ratio("round-robin", "greedy", most=1 / CLEARLY),
    Ratio("round-robin", "chain", least=1.0),
)
"""Where Round-robin stands when it is not as bad as Greedy."""


def check_sentences(sentences: Sequence[Sentence], tables: Tables) -> list[Claim]:
    """A claim for every sentence and every workload it speaks of."""
    return [claim for each in sentences for claim in _claims(each, tables)]


def _claims(sentence: Sentence, tables: Tables) -> Iterator[Claim]:
    ratio = sentence.ratio
    for workload in sentence.workloads:
        mine, theirs = (
            mean_of(tables, "peak", workload, name) for name in (ratio.strategy, ratio.other)
        )
        yield Claim(
            f"{workload}: {ratio.strategy}'s peak queue size over {ratio.other}'s",
            f'"{sentence.words}": {ratio.bounds}',
            f"{mine / theirs:.2f} ({mine:.0f} / {theirs:.0f})",
            ratio.holds(tables, workload),
            _instead(sentence.otherwise, tables, workload),
        )


def _instead(otherwise: Otherwise | None, tables: Tables, workload: str) -> Instead | None:
    if otherwise is None:
        return None
    found = ", ".join(
        f"{each.strategy} over {each.other} {each.of(tables, workload):.2f} ({each.bounds})"
        for each in otherwise.ratios
    )
    holds = all(each.holds(tables, workload) for each in otherwise.ratios)
    return Instead(f"{otherwise.found}: {found}", otherwise.why, holds)


def mean_of(tables: Tables, column: str, workload: str, strategy: str) -> float:
    """A summary column averaged over the seeds."""
    of = {"workload": workload, "strategy": strategy}
    return float(np.mean(picked(tables["summary"], column, of)))
