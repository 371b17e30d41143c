"""What every lab file declares: an `EXPERIMENT` with its claim, its run, its plot, its checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from millpond.errors import StateError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Paper: TypeAlias = Literal["Chain", "Path Capacity", "Unified", "HMTS", "beyond the papers"]
Table: TypeAlias = Mapping[str, Sequence[Any] | Any]
"""Columns by name, all of one length; lists or numpy arrays."""
Tables: TypeAlias = Mapping[str, Table]
"""What a run found: tables by name. Each becomes a CSV file."""


@dataclass(frozen=True)
class Claim:
    """One checked statement: what was expected, what was measured, whether it holds."""

    text: str
    expected: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Experiment:
    """One table, figure or theorem.

    `run` gets the seeds to average or check over and returns tables; `plot` draws them on an empty
    figure; `check` returns the claims with their measured numbers.
    """

    name: str
    paper: Paper
    title: str
    claim: str
    run: Callable[[Sequence[int]], Tables]
    plot: Callable[[Tables, Figure], None]
    check: Callable[[Tables], Sequence[Claim]]
    seeds: int = 3
    note: str = ""

    def __post_init__(self) -> None:
        if not self.name.replace("-", "").isalnum() or self.name != self.name.lower():
            raise StateError(f'experiment name "{self.name}" must be lower-case words-with-dashes')


def about(measured: float, expected: float, tolerance: float) -> bool:
    """Whether a number lies within a relative tolerance of the expected one."""
    return abs(measured - expected) <= tolerance * abs(expected)
