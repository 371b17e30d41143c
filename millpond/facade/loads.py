"""What is known of streams that may be sampled, one by one and together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millpond.approximation.allocation.rates import Demand, percents
from millpond.catalog import QueryEntry
from millpond.identities import InputId


@dataclass(frozen=True)
class Seen:
    """What is known of a stream at a moment."""

    stream: InputId
    queries: tuple[QueryEntry, ...]
    """Those that are active and tolerate a sample of it."""
    present: float
    """How many percent of it are kept."""
    least: float
    """How many have to be."""
    behind: float
    """How many seconds answers are behind for want of time."""
    coming: float | None
    """How many tuples come in a second, if that was seen."""
    tuple_seconds: float
    """How much work one is."""
    work: float
    """How many seconds of work wait."""
    free: float
    """How many of them no step has taken."""

    @property
    def load(self) -> float | None:
        """How much work comes in a second if all is kept."""
        return None if self.coming is None else self.coming * self.tuple_seconds

    @property
    def demand(self) -> Demand:
        """What it asks for."""
        weights = {True: 0.0, False: 0.0}
        for each in self.queries:
            if each.tolerates is not None:
                weights[each.tolerates.is_of_sets] += each.weight
        return Demand(
            self.stream,
            self.load or 0.0,
            self.least,
            self.coming or 1.0,
            number_weight=weights[False],
            row_weight=weights[True],
        )

    def part_told(self, percent: float, load: float | None, done: float) -> str:
        """Whose work is how much of all that is done, if so many percent are kept of it."""
        if not load or self.load is None:
            return ""
        own, all_ = self.load * percent / 100, load * done / 100
        return f"; of {all_:.2g} s of work in a second it gets {own:.2g}, by weights"


@dataclass(frozen=True)
class Whole:
    """All streams as if they were one."""

    present: float
    least: float
    load: float | None


def whole_of(seen: Sequence[Seen]) -> Whole:
    """The streams together, each by its part of the work; where that is unknown they are alike."""
    known = [each.load for each in seen if each.load is not None]
    load = sum(known) if len(known) == len(seen) else None
    if len(seen) == 1:
        return Whole(seen[0].present, seen[0].least, load)
    parts = [_part(each, load) for each in seen]
    present = sum(part * each.present for part, each in zip(parts, seen, strict=True))
    least = sum(part * each.least for part, each in zip(parts, seen, strict=True))
    return Whole(min(100.0, present / sum(parts)), min(100.0, least / sum(parts)), load)


def _part(seen: Seen, load: float | None) -> float:
    return seen.load if load and seen.load is not None else 1.0


def kept_of(seen: Sequence[Seen], percent: float) -> dict[InputId, float]:
    """How many percent are kept of each stream if so much of all work is done: what makes answers
    the most precise, by the weights of their queries."""
    if len(seen) == 1 or percent >= 100:
        return {each.stream: percent for each in seen}
    whole = whole_of(seen)
    if not whole.load:  # nobody knows whose work it is
        times = percent / whole.present
        return {e.stream: max(e.least, min(100.0, e.present * times)) for e in seen}
    chosen = percents([each.demand for each in seen], whole.load * percent / 100)
    return {each.stream: round(chosen[each.stream], 4) for each in seen}
