"""How much has to be kept of a stream for bounds to be as narrow as a query tolerates them.

At a rate p bounds are about as wide as √((1 − p) / p), by the variance of a sum of kept tuples each
of which counts 1/p times. So the bounds of answers at one rate say what they would be at another.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_PERCENT = 50.0
"""So much is kept at least before it is known how wide bounds are."""
ROOM, SPARE = 1.2, 1.4
"""So much is kept that errors may become that many times as large; and no less is kept again before
they could become that many times as large."""
STEEPEST = 0.5
"""A measurement brings what is kept at least down to this part of it at most."""


def needed_percent(percent: float, error: float, allowed: float) -> float:
    """How many percent have to be kept for errors that are allowed, by those measured at another
    rate.

    >>> needed_percent(20.0, error=0.04, allowed=0.02)
    50.0
    """
    if error == float("inf"):
        return 100.0
    return 100 / (1 + (100 / percent - 1) * (allowed / error) ** 2)


@dataclass(frozen=True)
class Least:
    """How many percent a query needs at least, by the errors measured so far."""

    percent: float = FIRST_PERCENT

    def measured(self, present_percent: float, error: float, allowed: float) -> Least:
        """What is known after the error of an answer was measured that is of one rate.

        >>> round(Least(50.0).measured(50.0, error=0.01, allowed=0.02).percent, 1)
        26.5
        >>> round(Least(20.0).measured(20.0, error=0.03, allowed=0.02).percent, 1)
        44.8
        """
        if present_percent >= 100 or error == 0:
            return self
        wanted = needed_percent(present_percent, ROOM * error, allowed)
        if error > allowed:
            return Least(max(self.percent, wanted))
        is_spare = self.percent > needed_percent(present_percent, SPARE * error, allowed)
        return Least(max(STEEPEST * self.percent, wanted)) if is_spare else self
