"""What every lab file declares: an `EXPERIMENT` with its claim, its run, its plot, its checks.

The file has functions `run`, `plot` and `check`. Its docstring says in its first paragraph what it
is, in its second what the paper claims, and in the others, the experiment's note, what was chosen
and found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from millpond.errors import StateError

if TYPE_CHECKING:
    from matplotlib import axes, figure

Axes: TypeAlias = "axes.Axes"
Figure: TypeAlias = "figure.Figure"
"""Types alone: whoever runs experiments need not load what draws them."""
Paper: TypeAlias = Literal[
    "STREAM", "Chain", "Path Capacity", "Unified", "HMTS", "beyond the papers"
]
PAPERS: Mapping[str, Paper] = {
    "stream": "STREAM",
    "chain": "Chain",
    "path_capacity": "Path Capacity",
    "unified": "Unified",
    "hmts": "HMTS",
}
"""By the folder of their experiments."""
Table: TypeAlias = Mapping[str, Sequence[Any] | Any]
"""Columns by name, all of one length; lists or numpy arrays."""
Tables: TypeAlias = Mapping[str, Table]
"""What a run found: tables by name. Each becomes a CSV file."""


Verdict: TypeAlias = Literal["holds", "differs", "fails"]


@dataclass(frozen=True)
class Instead:
    """What stands where a paper's words do not: what was found, why, and whether it is so."""

    found: str
    why: str
    holds: bool


@dataclass(frozen=True)
class Claim:
    """One checked sentence: what the paper says, what was measured, whether that is so.

    The verdict is computed from the two checks: `holds` is that of the paper's words, and where
    they do not stand, `instead` may say and check what does.
    """

    text: str
    expected: str
    measured: str
    holds: bool
    instead: Instead | None = None

    @property
    def verdict(self) -> Verdict:
        """Holds as the paper says it, differs as we say it, or neither."""
        if self.holds:
            return "holds"
        return "differs" if self.instead is not None and self.instead.holds else "fails"


@dataclass(frozen=True)
class Experiment:
    """One table, figure or theorem.

    `run` gets the seeds to average or check over and returns tables; `plot` draws them on an empty
    figure; `check` returns the claims with their measured numbers. What takes `long` is begun
    first, so that the others run beside it; those of one name in `together` share what they ran,
    and so run in one process. Those of a `group` are run only if they, or it, are named.
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
    long: bool = False
    together: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        if not self.name.replace("-", "").isalnum() or self.name != self.name.lower():
            raise StateError(f'experiment name "{self.name}" must be lower-case words-with-dashes')


def experiment(
    module: str,
    title: str,
    *,
    name: str = "",
    paper: Paper | None = None,
    note: str = "",
    **parts: Any,
) -> Experiment:
    """The experiment of a file: its `run`, `plot` and `check`, the claim and note of its docstring.

    A `note` that several have in common comes first; a `paper` is named where the folder is none's.
    """
    file, (folder, last) = sys.modules[module], module.split(".")[-2:]
    claim, *notes = [" ".join(each.split()) for each in (file.__doc__ or "").split("\n\n")[1:]]
    found = {part: getattr(file, part) for part in ("run", "plot", "check") if part not in parts}
    return Experiment(
        name=name or f"{folder}-{last}".replace("_", "-"),
        paper=paper or PAPERS.get(folder, "beyond the papers"),
        title=title,
        claim=claim,
        note=" ".join(filter(None, (note, *notes))),
        **found,
        **parts,
    )
