"""Bursts by the clock: programmes of rates with nothing random in them."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from millpond.errors import InputError
from millpond.workloads.process import CHUNK_ARRIVALS, ArrivalProcess, FloatArray, require_positive


@dataclass(frozen=True)
class Phases(ArrivalProcess):
    """A fixed programme, each phase a number of arrivals and their rate (HMTS paper, 6.6).

    >>> Phases(((2, 10.0), (2, 1.0))).times(9).tolist()
    [0.0, 0.1, 0.2, 1.2]
    """

    phases: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        if not self.phases or any(count < 1 or rate <= 0 for count, rate in self.phases):
            raise InputError("Phases: each phase is a count and a rate, both above zero")

    @property
    def mean_arrivals_per_second(self) -> float:
        """All arrivals over the length of the programme."""
        seconds = sum(count / rate for count, rate in self.phases)
        return sum(count for count, _ in self.phases) / seconds

    def arrivals(self, seed: int = 0) -> Iterator[FloatArray]:
        """The arrival times; ``seed`` changes nothing."""
        start = 0.0
        for count, rate in self.phases:
            for first in range(0, count, CHUNK_ARRIVALS):
                yield start + np.arange(first, min(first + CHUNK_ARRIVALS, count)) / rate
            start += count / rate


@dataclass(frozen=True)
class OnOff(ArrivalProcess):
    """Bursts by the clock: evenly spaced arrivals at one rate, then at a lower one, for ever.

    >>> OnOff(3.0, 1.0, 2.0).times(5).round(2).tolist()
    [0.0, 0.33, 0.67, 3.0, 3.33]
    """

    on_arrivals_per_second: float
    on_seconds: float
    off_seconds: float
    off_arrivals_per_second: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self, "on_arrivals_per_second", "on_seconds", "off_seconds")
        if self.off_arrivals_per_second < 0:
            raise InputError("OnOff: off_arrivals_per_second must not be negative")
        if self.on_arrivals_per_second * self.on_seconds < 1:
            raise InputError("OnOff: a burst must hold at least one arrival")

    @property
    def mean_arrivals_per_second(self) -> float:
        """Arrivals of one period over its length."""
        counts = (_count(rate, seconds) for rate, seconds in self._halves)
        return sum(counts) / (self.on_seconds + self.off_seconds)

    @property
    def _halves(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The rate and the length of a burst, and of what is between bursts."""
        return (
            (self.on_arrivals_per_second, self.on_seconds),
            (self.off_arrivals_per_second, self.off_seconds),
        )

    def arrivals(self, seed: int = 0) -> Iterator[FloatArray]:
        """The arrival times, in pieces however long a period is; ``seed`` changes nothing."""
        seconds = self.on_seconds + self.off_seconds
        pieces = list(itertools.islice(self._pieces(), 2))
        if len(pieces) == 1:
            periods_at_once = max(1, CHUNK_ARRIVALS // len(pieces[0]))
            for first in itertools.count(0, periods_at_once):
                starts = np.arange(first, first + periods_at_once) * seconds
                yield (starts[:, None] + pieces[0]).ravel()
        for period in itertools.count():
            for piece in self._pieces():
                yield period * seconds + piece

    def _pieces(self) -> Iterator[FloatArray]:
        """The times within a period: at once if they are few, else piece by piece."""
        (on_rate, on_seconds), (off_rate, off_seconds) = self._halves
        on, off = _count(on_rate, on_seconds), _count(off_rate, off_seconds)
        if on + off <= CHUNK_ARRIVALS:
            burst, rest = _evenly(on_rate, 0, on), _evenly(off_rate, 0, off)
            yield np.concatenate([burst, on_seconds + rest])
            return
        for first in range(0, on, CHUNK_ARRIVALS):
            yield _evenly(on_rate, first, min(first + CHUNK_ARRIVALS, on))
        for first in range(0, off, CHUNK_ARRIVALS):
            yield on_seconds + _evenly(off_rate, first, min(first + CHUNK_ARRIVALS, off))


def _count(arrivals_per_second: float, seconds: float) -> int:
    # A burst of 0.3 s at 10 a second holds 3 arrivals, whatever 0.3 * 10 is in binary.
    return math.ceil(round(arrivals_per_second * seconds, 9))


def _evenly(arrivals_per_second: float, first: int, last: int) -> FloatArray:
    """The seconds of the arrivals from one number to another."""
    return np.arange(first, last) / (arrivals_per_second or 1.0)
