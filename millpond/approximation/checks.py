"""What all parts ask of their arguments: what is wrong is refused, never bounded wrongly."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]


def require(condition: bool, message: str) -> None:
    """Refuses an argument with a message that says what is allowed."""
    if not condition:
        raise ValueError(message)


def check_risk(risk: float) -> None:
    """Refuses a risk that is no probability strictly between 0 and 1."""
    require(0 < risk < 1, f"a risk of {risk}: it has to be more than 0 and less than 1")


def finite(values: npt.ArrayLike) -> Floats:
    """Numbers as doubles; refuses NaN and infinite ones, which no interval can bound.

    >>> finite([1, 2])
    array([1., 2.])
    """
    numbers = np.asarray(values, dtype=np.float64)
    require(
        bool(np.isfinite(numbers).all()),
        "a value that is NaN or infinite: leave such rows out of the sample and count them apart",
    )
    return numbers
