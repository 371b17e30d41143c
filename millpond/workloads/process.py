"""What all arrival processes can do."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from millpond.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]

CHUNK_ARRIVALS = 4096
"""About how many arrivals a process yields at once."""


class ArrivalProcess(ABC):
    """What all arrival processes can do."""

    @property
    @abstractmethod
    def mean_arrivals_per_second(self) -> float:
        """The arrivals per second in the long run."""

    @abstractmethod
    def arrivals(self, seed: int = 0) -> Iterator[FloatArray]:
        """The arrival times, array after array, none of them empty."""

    def times(self, count: int, seed: int = 0) -> FloatArray:
        """The first ``count`` arrival times (fewer if the process ends before).

        >>> from millpond.workloads import Constant
        >>> Constant(2.0).times(3).tolist()
        [0.0, 0.5, 1.0]
        """
        chunks, missing = [], count
        for chunk in self.arrivals(seed):
            chunks.append(chunk[:missing])
            missing -= len(chunks[-1])
            if missing <= 0:
                break
        return np.concatenate(chunks) if chunks else np.empty(0)

    def until(self, seconds: float, seed: int = 0) -> FloatArray:
        """All arrival times before ``seconds``.

        >>> from millpond.workloads import Constant
        >>> Constant(2.0).until(1.5).tolist()
        [0.0, 0.5, 1.0]
        """
        chunks = []
        for chunk in self.arrivals(seed):
            chunks.append(chunk[: np.searchsorted(chunk, seconds)])
            if chunk[-1] >= seconds:
                break
        return np.concatenate(chunks) if chunks else np.empty(0)


def require_positive(process: Any, *names: str) -> None:
    """Refuses parameters that are not finite numbers above zero."""
    for name in names:
        value = getattr(process, name)
        if not isinstance(value, int | float) or not 0 < value < math.inf:
            raise InputError(f"{type(process).__name__}: {name} must be above zero, not {value!r}")
