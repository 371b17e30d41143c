"""Who of several streams gets the time there is, when more comes of them than can be done.

A drop point is an operator with options as any other, of which the units are work instead of
memory: a rate p takes p times the work of its stream, and its queries are then as precise as a
sample of that rate makes them. So the allocation that makes all answers together the most precise,
by the weights of their queries, is that of ``Allocator``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from millpond.approximation.allocation.allocator import Allocator
from millpond.approximation.allocation.plans import Operator, Option, Query, Stream
from millpond.approximation.checks import require
from millpond.approximation.precision import Precision, Projection

UNITS, RATES = 400, 160
"""Work is divided into so many parts, and a stream may be kept at so many rates."""
LEAST_PERCENT = 0.01


@dataclass(frozen=True)
class Demand:
    """What one stream asks for: ``load`` is the work of a second's tuples if all are kept, in
    seconds; ``tuples`` how many these are; and the weights of its queries, of which some put out
    numbers and some rows."""

    stream: str
    load: float
    least_percent: float = 0.0
    tuples: float = 1.0
    number_weight: float = 0.0
    row_weight: float = 0.0

    def __post_init__(self) -> None:
        require(self.load >= 0, f"a load of {self.load} of {self.stream}")

    @property
    def weight(self) -> float:
        """The weight of all its queries."""
        return self.number_weight + self.row_weight

    @property
    def least(self) -> float:
        """How many percent have to be kept."""
        return min(100.0, max(LEAST_PERCENT, self.least_percent))

    def score(self, percent: float) -> float:
        """How precise its queries are in the mean if so many percent are kept, from 0 to 1.

        Of rows the part that is kept is delivered. Bounds of numbers are about as wide as
        √((1 - p) / (p n)) of them with n tuples, and a width counts as a rate of false negatives.

        >>> Demand("S", 1.0, row_weight=2.0).score(25.0)
        0.25
        >>> Demand("S", 1.0, tuples=4.0, number_weight=1.0).score(50.0)
        0.6666666666666666
        """
        rate = percent / 100
        width = math.sqrt((1 - rate) / (rate * max(1.0, self.tuples)))
        gained = self.row_weight * rate + self.number_weight / (1 + width)
        return gained / self.weight if self.weight else 0.0


def percents(demands: Sequence[Demand], load: float) -> dict[str, float]:
    """How many percent are kept of each stream so that the work of a second takes ``load`` seconds
    at most, if that can be.

    >>> S, T = Demand("S", 1.0, row_weight=3.0), Demand("T", 1.0, 10.0, row_weight=1.0)
    >>> {name: round(percent, -1) for name, percent in percents([S, T], 0.5).items()}
    {'S': 40.0, 'T': 10.0}
    """
    chosen = {each.stream: each.least for each in demands}
    if sum(each.load * each.least / 100 for each in demands) < load:
        chosen = _best(demands, load)
    spent = sum(each.load * chosen[each.stream] / 100 for each in demands)
    for each in sorted(demands, key=_gain, reverse=True):  # what the grid has left over
        more = 100 * max(0.0, load - spent) / each.load if each.load else 100.0
        now = min(100.0, chosen[each.stream] + more)
        spent += each.load * (now - chosen[each.stream]) / 100
        chosen[each.stream] = now
    return chosen


def _gain(demand: Demand) -> float:
    return demand.weight / demand.load if demand.load else math.inf


def _best(demands: Sequence[Demand], load: float) -> dict[str, float]:
    """The best rates of a grid: each stream is one query, as its queries share what is kept."""
    queries, rates = [], dict[str, dict[int, float]]()
    for each in demands:
        rates[each.stream] = dict(_options(each, load))
        options = (
            Option(units, Precision(each.score(percent), 0.0))
            for units, percent in rates[each.stream].items()
        )
        point = Operator(each.stream, Projection(), (Stream(each.stream),), tuple(options))
        queries.append(Query(each.stream, point, each.weight))
    least = sum(min(found) for found in rates.values())
    if least > UNITS:  # by rounding alone
        return {each.stream: each.least for each in demands}
    found = Allocator(UNITS).allocate(queries).units
    return {
        each.stream: rates[each.stream][found[each.stream]] if each.stream in found else each.least
        for each in demands
    }


def _options(demand: Demand, load: float) -> Iterable[tuple[int, float]]:
    """Units of work, and the largest rate for them, from the least rate on."""
    for percent in np.geomspace(demand.least, 100.0, RATES).tolist():
        units = math.ceil(UNITS * demand.load * percent / 100 / load - 1e-9)
        yield units, min(100.0, percent)
