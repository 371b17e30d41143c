"""What the Chain paper's text says of its figures, as ratios of peak queue sizes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from millpond.lab.experiment import Claim, Instead, Tables
from millpond.lab.tables import picked
from millpond.lab.words import on_most_seeds, told_by_seed

STRATEGIES = ("chain", "greedy", "round-robin", "fifo")
WORKLOADS = ("bursts", "trace")


class Ratio(NamedTuple):
    """One strategy's peak over another's lies between these."""

    strategy: str
    other: str
    least: float = 0.0
    most: float = float("inf")

    def of(self, tables: Tables, workload: str) -> list[float]:
        """As measured, seed by seed."""
        mine, theirs = (
            picked(tables["summary"], "peak", {"workload": workload, "strategy": name})
            for name in (self.strategy, self.other)
        )
        return [one / other for one, other in zip(mine, theirs, strict=True)]

    def margin(self, ratio: float) -> float:
        """How far from failing it is: it lies there from 1 on."""
        return min(ratio / self.least if self.least else float("inf"), self.most / ratio)

    def allows(self, ratio: float) -> bool:
        """Whether it lies there."""
        return self.least <= ratio <= self.most

    def so(self, tables: Tables, workload: str) -> list[bool]:
        """Whether it lies there, seed by seed."""
        return [self.allows(ratio) for ratio in self.of(tables, workload)]

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

    def text(self, workload: str) -> str:
        """What is measured."""
        return f"{workload}: {self.ratio.strategy}'s peak queue size over {self.ratio.other}'s"


BETTER_THAN_GREEDY = (
    Ratio("round-robin", "greedy", most=1.0),
    Ratio("round-robin", "chain", least=1.0),
)
"""Where Round-robin stands when it is not as bad as Greedy on all seeds."""


def check_sentences(sentences: Sequence[Sentence], tables: Tables) -> list[Claim]:
    """A claim for every sentence and every workload it speaks of."""
    return [claim for each in sentences for claim in _claims(each, tables)]


def _claims(sentence: Sentence, tables: Tables) -> Iterator[Claim]:
    ratio = sentence.ratio
    for workload in sentence.workloads:
        so = ratio.so(tables, workload)
        yield Claim(
            sentence.text(workload),
            f'"{sentence.words}": {ratio.bounds}',
            told_by_seed(ratio.of(tables, workload), so),
            on_most_seeds(so),
            _instead(sentence.otherwise, tables, workload),
        )


def _instead(otherwise: Otherwise | None, tables: Tables, workload: str) -> Instead | None:
    if otherwise is None:
        return None
    each_so = [each.so(tables, workload) for each in otherwise.ratios]
    found = ", ".join(
        f"{each.strategy} over {each.other} {each.bounds}, "
        + told_by_seed(each.of(tables, workload), so)
        for each, so in zip(otherwise.ratios, each_so, strict=True)
    )
    holds = all(on_most_seeds(so) for so in each_so)
    return Instead(f"{otherwise.found}: {found}", otherwise.why, holds)


def margins_of(sentences: Sequence[Sentence], tables: Tables) -> dict[str, float]:
    """How far each sentence is from failing on the one seed that was run."""
    return {
        sentence.text(workload): min(
            sentence.ratio.margin(each) for each in sentence.ratio.of(tables, workload)
        )
        for sentence in sentences
        for workload in sentence.workloads
        if workload in tables["summary"]["workload"]
    }
