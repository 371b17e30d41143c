"""Which rows leave a window that is too small: by age, by frequency, by chance.

`prob` and `life` are those of Das, Gehrke and Riedewald (*Approximate Join Processing over Data
Streams*, 2003): a row is worth how often its key probes, or that times how long it may still stay;
of rows worth as much the oldest goes. `age curve` is that of Srivastava and Widom (*Memory-Limited
Execution of Windowed Stream Joins*, 2004): a row stays until the age at which most matches have
been made for each instant that it was kept, and rows that come while all are younger are let go.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from millpond.lab.joins.streams import Floats, Ints, Side

Worth: TypeAlias = Callable[[Side, Ints, Ints, np.random.Generator], Floats]
"""Of rows with these keys and ages; the one that is worth least is let go."""
_LESS_THAN_ANY_CHANCE = 1e-9


def random(side: Side, keys: Ints, ages: Ints, draws: np.random.Generator) -> Floats:
    """Any row, the new one too."""
    return draws.random(len(keys))


def oldest(side: Side, keys: Ints, ages: Ints, draws: np.random.Generator) -> Floats:
    """The row that has been there longest: the window is shorter."""
    return -ages.astype(np.float64)


def prob(side: Side, keys: Ints, ages: Ints, draws: np.random.Generator) -> Floats:
    """The row whose key probes least often."""
    return side.chances[keys] - _LESS_THAN_ANY_CHANCE * ages


def life(side: Side, keys: Ints, ages: Ints, draws: np.random.Generator) -> Floats:
    """The row that is to be met least often while it may stay."""
    return side.chances[keys] * (side.window - 1 - ages) - _LESS_THAN_ANY_CHANCE * ages


def age_curve(side: Side, keys: Ints, ages: Ints, draws: np.random.Generator) -> Floats:
    """The oldest row past its best age; the new one if there is none."""
    return np.where(ages >= best_age(side), -ages, ages).astype(np.float64)


def best_age(side: Side) -> int:
    """Until when a row is to be kept for the most matches in each instant of being kept.

    >>> best_age(Side(np.zeros(1), np.zeros(1), np.ones(1), np.array([0, 0, 1, 1, 0]), window=5))
    3
    """
    made = np.cumsum(side.by_age)[1:]
    return int(np.argmax(made / np.arange(1, len(made) + 1))) + 1


POLICIES: Mapping[str, Worth] = {
    "random": random,
    "oldest": oldest,
    "age curve": age_curve,
    "prob": prob,
    "life": life,
}


class Instant(NamedTuple):
    """What happened at an instant: rows that were met, and the one that was let go."""

    met: int
    evicted: int | None
    """When it had come."""


def joined(side: Side, worth: Worth, rows: int, seed: int) -> Iterator[Instant]:
    """Keeps at most so many rows of a side, instant by instant."""
    draws, came = np.random.default_rng(seed), np.empty(0, dtype=np.int64)
    for now, probe in enumerate(side.probes.tolist()):
        came = came[came > now - side.window]
        met = int((side.keys[came] == probe).sum())
        came, evicted = np.append(came, now), None
        if len(came) > rows:
            at = int(np.argmin(worth(side, side.keys[came], now - came, draws)))
            evicted = int(came[at])
            came = np.delete(came, at)
        yield Instant(met, evicted)
