"""What Figures 2 to 4 of the Path Capacity paper share: a sentence is checked in every setting."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from millpond.lab.experiment import Axes, Claim, Instead, Table
from millpond.lab.path_capacity.workload import STRATEGIES


class Measured(NamedTuple):
    """What the three strategies need in one setting."""

    setting: str
    path_capacity: float
    simplified: float
    chain: float

    @property
    def told(self) -> str:
        """All three numbers."""
        return " ".join(f"{each:.2f}" if each < 100 else f"{each:.0f}" for each in self[1:])


def rows(table: Table) -> list[Measured]:
    """The rows of a table with a column of settings and one for each strategy."""
    columns = (table[name] for name in ("setting", *STRATEGIES))
    return [Measured(*row) for row in zip(*columns, strict=True)]


def in_every_setting(
    text: str,
    expected: str,
    found: Sequence[Measured],
    says: Callable[[Measured], bool],
    instead: Instead | None = None,
) -> Claim:
    """The claim that a sentence is so in every setting; the three numbers of each are told."""
    kept = sum(says(row) for row in found)
    told = "; ".join(f"{row.setting} {row.told}" for row in found)
    return Claim(
        f"{text} ({', '.join(STRATEGIES)})",
        f"{expected}, in every setting",
        f"so in {kept} of {len(found)}: {told}",
        kept == len(found),
        instead,
    )


def in_most(found: Sequence[Measured], says: Callable[[Measured], bool]) -> bool:
    """Whether it is so in more than half of the settings."""
    return 2 * sum(says(row) for row in found) > len(found)


def plot_by_setting(table: Table, axes: Axes, label: str) -> None:
    """Bars, a group for each setting."""
    found = rows(table)
    places = np.arange(len(found))
    for offset, name in enumerate(STRATEGIES):
        axes.barh(places + 0.25 * offset, table[name], height=0.25, label=name)
    axes.set_yticks(places + 0.25, [row.setting for row in found], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.legend(fontsize=7)
