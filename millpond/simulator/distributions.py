"""Per-tuple costs and output counts: a mean, or a distribution drawn tuple by tuple.

The i-th tuple an operator serves always gets the i-th draw, whatever the schedule, so that all
strategies face the same tuples and a clairvoyant one can be told what waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from millpond.errors import StrategyError
from millpond.scheduling.snapshot import FloatArray


class Distribution(Protocol):
    """Values with a known mean, drawn in order."""

    @property
    def mean(self) -> float:
        """The expected value."""

    def draw(self, generator: np.random.Generator, start: int, count: int) -> FloatArray:
        """The values number `start` to `start + count`, asked for in order."""


@dataclass(frozen=True)
class Normal:
    """A normal distribution cut off below at `low`."""

    mean: float
    deviation: float
    low: float = 1e-6

    def draw(self, generator: np.random.Generator, start: int, count: int) -> FloatArray:
        """Normal values, none under `low`."""
        return np.maximum(generator.normal(self.mean, self.deviation, count), self.low)


@dataclass(frozen=True)
class Outliers:
    """Mostly `usual`, and with probability `share` drawn from `outlier` instead."""

    usual: Distribution
    outlier: Distribution
    share: float

    @property
    def mean(self) -> float:
        """The mean of the mixture."""
        return (1 - self.share) * self.usual.mean + self.share * self.outlier.mean

    def draw(self, generator: np.random.Generator, start: int, count: int) -> FloatArray:
        """A mixture, tuple by tuple."""
        usual = self.usual.draw(generator, start, count)
        outlier = self.outlier.draw(generator, start, count)
        return np.where(generator.random(count) < self.share, outlier, usual)


@dataclass(frozen=True)
class Listed:
    """Exactly these values, one after the other; the mean beyond their end."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float] | FloatArray) -> Listed:
        """From any sequence of numbers."""
        return cls(tuple(float(value) for value in values))

    @property
    def mean(self) -> float:
        """The mean of the listed values."""
        return sum(self.values) / len(self.values)

    def draw(self, generator: np.random.Generator, start: int, count: int) -> FloatArray:
        """The next values of the list."""
        listed = np.asarray(self.values[start : start + count])
        return np.concatenate([listed, np.full(count - len(listed), self.mean)])


class Draws:
    """A growing window over the values of one distribution; the same key gives the same values."""

    BLOCK = 4096

    def __init__(self, distribution: Distribution, key: tuple[int, ...]) -> None:
        self._distribution = distribution
        self._key = key
        self._generator: np.random.Generator | None = None
        self._values: FloatArray = np.empty(0)
        self._view = memoryview(self._values)  # type: ignore[arg-type]
        self._first = 0

    def between(self, start: int, stop: int) -> FloatArray:
        """The values number `start` to `stop`; starts never go back."""
        end = self._first + len(self._values)
        if stop > end:
            if self._generator is None:
                self._generator = np.random.default_rng(self._key)
            count = max(self.BLOCK, stop - end)
            fresh = self._distribution.draw(self._generator, end, count)
            self._values = np.concatenate([self._values[start - self._first :], fresh])
            self._view = memoryview(self._values)  # type: ignore[arg-type]
            self._first = start
        return self._values[start - self._first : stop - self._first]

    def one(self, place: int) -> float:
        """The value number `place`."""
        index = place - self._first
        if index >= len(self._view):
            return float(self.between(place, place + 1)[0])
        return self._view[index]


@dataclass(frozen=True)
class Uniform:
    """Uniform values between zero and one, from which mean selectivities are rounded."""

    mean: float = 0.5

    def draw(self, generator: np.random.Generator, start: int, count: int) -> FloatArray:
        """Uniform values."""
        return generator.random(count)


def mean_of(value: float | Distribution) -> float:
    """The mean of a number or a distribution."""
    return float(value) if isinstance(value, int | float) else value.mean


def check_mean(what: str, value: float | Distribution) -> None:
    """Refuse a negative mean."""
    if not mean_of(value) >= 0:
        raise StrategyError(f"{what} is {mean_of(value)}; give a number not below 0")
