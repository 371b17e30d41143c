"""Sentences of a paper as measures with limits, judged seed by seed and looked for by searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

from millpond.lab.experiment import Claim, Instead, Table
from millpond.lab.tables import table_of
from millpond.lab.words import on_most_seeds, told_by_seed

Found = TypeVar("Found")
NOTHING = 1e-12
"""In the place of zero where it would divide."""
ABOVE_ONE = 1 + 1e-9


class Otherwise(NamedTuple):
    """What stands where a sentence does not: other limits of the same measure, and why."""

    why: str
    least: float = 0.0
    most: float = float("inf")


class Sentence(NamedTuple, Generic[Found]):
    """A quotation, what is measured of a run, and between which limits that must lie."""

    words: str
    text: str
    measure: Callable[[Found], float]
    least: float = 0.0
    most: float = float("inf")
    otherwise: Otherwise | None = None

    def margin(self, found: Found) -> float:
        """How far from failing it is: it stands from 1 on."""
        value = max(self.measure(found), NOTHING)
        return min(value / self.least if self.least else float("inf"), self.most / value)

    def judged(self, values: Sequence[float], of: str = "") -> Claim:
        """The claim that it is so on nine seeds of ten."""
        so = [self.least <= value <= self.most for value in values]
        return Claim(
            of + self.text,
            f'"{self.words}": {limits(self.least, self.most)}',
            told_by_seed(values, so),
            on_most_seeds(so),
            self._instead(values),
        )

    def _instead(self, values: Sequence[float]) -> Instead | None:
        if self.otherwise is None:
            return None
        why, least, most = self.otherwise
        so = [least <= value <= most for value in values]
        return Instead(f"{limits(least, most)}, {told_by_seed(values, so)}", why, on_most_seeds(so))


def limits(least: float, most: float) -> str:
    """Two limits in words."""
    if most == float("inf"):
        return f"at least {least:.3g}"
    return f"{least:.3g} to {most:.3g}" if least else f"at most {most:.3g}"


def margins(sentences: Iterable[Sentence[Found]], found: Found) -> dict[str, float]:
    """How far each is from failing on the one seed that was run."""
    return {sentence.text: sentence.margin(found) for sentence in sentences}


def measured(sentences: Sequence[Sentence[Found]], by_seed: Iterable[Found]) -> Table:
    """A row for each seed, a column for each sentence."""
    rows = [[sentence.measure(found) for sentence in sentences] for found in by_seed]
    return table_of([sentence.text for sentence in sentences], rows)


def judged(sentences: Iterable[Sentence[Found]], table: Table, of: str = "") -> list[Claim]:
    """A claim for each sentence; `of` comes before its text."""
    return [sentence.judged(table[sentence.text], of) for sentence in sentences]
