"""What the precision of inputs and of an operator itself make of its output.

`docs/precision.md` derives the formulas and says what they assume. An operator's own precision is
that of its output when its inputs are exact. Formulas take arrays, so that many choices are
composed at once. ``keeps`` says what has to be better of an input for the output to be better: see
`Better`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

from millpond.approximation.checks import require
from millpond.approximation.precision.partners import ONE, Partners
from millpond.approximation.precision.rates import Numbers, Precision


class Better(Enum):
    """When one precision is at least as good as another, for all that is made of it.

    ``ODDS``: no less right, and no more wrong for each right one. ``RATES``: no less right, and no
    more wrong. ``EQUAL``: only an equal one. Each implies the one before it.
    """

    ODDS = 0
    RATES = 1
    EQUAL = 2


class Composition(Protocol):
    """How the precision of an operator's output follows from those of its inputs and its own."""

    def compose(self, inputs: Sequence[Precision], own: Precision) -> Precision:
        """The precision of the output."""

    def keeps(self, output: Better, can_be_wrong: bool) -> tuple[Better, ...]:
        """For each input, how much better it has to be for the output to be so much better.

        ``can_be_wrong``: the operator itself may deliver wrong tuples.
        """


@dataclass(frozen=True)
class Selection:
    """Keeps a part ``selectivity`` of its input."""

    selectivity: float

    def __post_init__(self) -> None:
        _check_part(self.selectivity)

    def compose(self, inputs: Sequence[Precision], own: Precision) -> Precision:
        return _decided(inputs[0], own, self.selectivity, 1.0, 0.0)

    def keeps(self, output: Better, can_be_wrong: bool) -> tuple[Better, ...]:
        return (_unless_wrong(output, can_be_wrong),)


@dataclass(frozen=True)
class Projection:
    """Makes one tuple of each, without taking equal ones together."""

    def compose(self, inputs: Sequence[Precision], own: Precision) -> Precision:
        return _disturbed(inputs[0].right, inputs[0].wrong, own)

    def keeps(self, output: Better, can_be_wrong: bool) -> tuple[Better, ...]:
        return (_unless_wrong(output, can_be_wrong),)


@dataclass(frozen=True)
class Join:
    """Pairs tuples of two inputs."""

    def compose(self, inputs: Sequence[Precision], own: Precision) -> Precision:
        left, right = inputs
        both = left.right * right.right
        pairs = (left.right + left.wrong) * (right.right + right.wrong)
        return _disturbed(both, pairs - both, own)

    def keeps(self, output: Better, can_be_wrong: bool) -> tuple[Better, ...]:
        needed = Better.ODDS if output is Better.ODDS else Better.EQUAL
        return needed, needed


@dataclass(frozen=True)
class Semijoin:
    """Keeps the part ``selectivity`` of the left tuples that have partners on the right."""

    selectivity: float
    partners: Partners = ONE

    def __post_init__(self) -> None:
        _check_part(self.selectivity)

    def compose(self, inputs: Sequence[Precision], own: Precision) -> Precision:
        left, right = inputs
        no_wrong = np.exp(-self.selectivity * self.partners.mean * right.wrong)
        seen = 1 - self.partners.none_of(1 - right.right) * no_wrong
        return _decided(left, own, self.selectivity, seen, 1 - no_wrong)

    def keeps(self, output: Better, can_be_wrong: bool) -> tuple[Better, ...]:
        return _of_left(output), Better.EQUAL


@dataclass(frozen=True)
class Intersection:
    """Keeps the part ``selectivity`` of a set of which the tuples are in another set too."""

    selectivity: float

    def compose(self, inputs: Sequence[Precision], own: Precision) -> Precision:
        return Semijoin(self.selectivity).compose(inputs, own)

    def keeps(self, output: Better, can_be_wrong: bool) -> tuple[Better, ...]:
        return _of_left(output), Better.EQUAL


@dataclass(frozen=True)
class Difference:
    """Keeps the part ``selectivity`` of the left tuples that have no partners on the right."""

    selectivity: float
    partners: Partners = ONE

    def __post_init__(self) -> None:
        _check_part(self.selectivity)

    def compose(self, inputs: Sequence[Precision], own: Precision) -> Precision:
        left, right = inputs
        no_wrong = np.exp(-(1 - self.selectivity) * self.partners.mean * right.wrong)
        all_missed = self.partners.none_of(1 - right.right)
        return _decided(left, own, self.selectivity, no_wrong, all_missed * no_wrong)

    def keeps(self, output: Better, can_be_wrong: bool) -> tuple[Better, ...]:
        is_simple = output is Better.ODDS and not can_be_wrong
        return _of_left(output), Better.RATES if is_simple else Better.EQUAL


@dataclass(frozen=True)
class Union:
    """All tuples of its inputs, of which each has a share of the correct ones."""

    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        is_whole = all(share >= 0 for share in self.shares) and abs(sum(self.shares) - 1) < 1e-9
        require(is_whole, f"shares {self.shares}: they have to add up to one")

    def compose(self, inputs: Sequence[Precision], own: Precision) -> Precision:
        right: Numbers = 0.0
        wrong: Numbers = 0.0
        for share, each in zip(self.shares, inputs, strict=True):
            right, wrong = right + share * each.right, wrong + share * each.wrong
        return _disturbed(right, wrong, own)

    def keeps(self, output: Better, can_be_wrong: bool) -> tuple[Better, ...]:
        needed = Better.RATES if output is Better.ODDS else _unless_wrong(output, can_be_wrong)
        return (needed,) * len(self.shares)


@dataclass(frozen=True)
class Distinct:
    """One tuple of each value, of which there are ``copies``; of wrong ones ``wrong_copies``."""

    copies: Partners = ONE
    wrong_copies: float = 1.0

    def compose(self, inputs: Sequence[Precision], own: Precision) -> Precision:
        (given,) = inputs
        seen = 1 - self.copies.none_of(1 - given.right)
        wrong = given.wrong * self.copies.mean / self.wrong_copies
        return _disturbed(seen, wrong, own)

    def keeps(self, output: Better, can_be_wrong: bool) -> tuple[Better, ...]:
        needed = Better.RATES if output is Better.ODDS else _unless_wrong(output, can_be_wrong)
        return (needed,)


_TOO_WRONG = "an operator that by itself delivers more wrong tuples than there are to be left out"


def _disturbed(right: Numbers, wrong: Numbers, own: Precision) -> Precision:
    """An output as it seems to be, with the operator's own errors for each tuple of it."""
    return Precision(own.right * right, own.right * wrong + own.wrong * (right + wrong))


def _decided(
    given: Precision, own: Precision, part: float, seen: Numbers, seen_wrongly: Numbers
) -> Precision:
    """What is left of an input of which a part belongs to the output.

    ``seen``: the chance that a tuple that belongs to it seems to; ``seen_wrongly``: one that does
    not. The operator itself then takes ``own.right`` of what seems to belong to it, and of the
    others as many as make ``own.wrong`` with exact inputs.
    """
    others = 1 - part
    require(bool(np.all(own.wrong * part <= others + 1e-9)), _TOO_WRONG)
    taken_wrongly = own.wrong * part / others if others else 0.0
    taken = seen * own.right + (1 - seen) * taken_wrongly
    not_left_out = seen_wrongly * own.right + (1 - seen_wrongly) * taken_wrongly
    stray = others * given.right * not_left_out
    stray = stray + given.wrong * (part * taken + others * not_left_out)
    return Precision(given.right * taken, stray / part)


def _unless_wrong(output: Better, can_be_wrong: bool) -> Better:
    """What an input needs where right ones bring the operator's own wrong ones with them."""
    return Better.EQUAL if output is Better.RATES and can_be_wrong else output


def _of_left(output: Better) -> Better:
    return Better.ODDS if output is Better.ODDS else Better.EQUAL


def _check_part(part: float) -> None:
    require(0 < part <= 1, f"a selectivity of {part}: it has to be more than 0 and at most 1")
