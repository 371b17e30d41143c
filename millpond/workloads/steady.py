"""Processes with one rate: evenly spaced and memoryless arrivals."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from millpond.workloads.process import CHUNK_ARRIVALS, ArrivalProcess, FloatArray, require_positive


@dataclass(frozen=True)
class Steady(ArrivalProcess):
    """A process with one rate."""

    arrivals_per_second: float

    def __post_init__(self) -> None:
        require_positive(self, "arrivals_per_second")

    @property
    def mean_arrivals_per_second(self) -> float:
        """The one rate there is."""
        return self.arrivals_per_second


@dataclass(frozen=True)
class Constant(Steady):
    """One arrival every 1 / ``arrivals_per_second``, the first at once."""

    def arrivals(self, seed: int = 0) -> Iterator[FloatArray]:
        """The arrival times; ``seed`` changes nothing."""
        for first in itertools.count(0, CHUNK_ARRIVALS):
            yield np.arange(first, first + CHUNK_ARRIVALS) / self.arrivals_per_second


@dataclass(frozen=True)
class Poisson(Steady):
    """Independent arrivals: exponential gaps with mean 1 / ``arrivals_per_second``."""

    def arrivals(self, seed: int = 0) -> Iterator[FloatArray]:
        """The arrival times."""
        generator = np.random.default_rng(seed)
        now = 0.0
        while True:
            gaps = generator.exponential(1 / self.arrivals_per_second, CHUNK_ARRIVALS)
            chunk = now + np.cumsum(gaps)
            now = chunk[-1]
            yield chunk
