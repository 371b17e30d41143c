"""Looking at tuples as they come, by the constraints of their stream and of those that reference
it: which of them break one, and what is to be remembered of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from millpond.catalog import VIOLATES, Constraint
from millpond.intake.widening import Widened
from millpond.kernels.groups import Bools, Ints


class Column(Protocol):
    """What a constraint looks at of tuples."""

    def at(self, row: int) -> Any:
        """The value of a tuple; None: nothing is asked of it."""


class Watch(Protocol):
    """Looks at tuples one after the other."""

    is_of_rows: bool
    measured: int

    @property
    def risen(self) -> Any:
        """What is to be remembered."""

    @property
    def grown(self) -> Widened | None:
        """How large k has become, if it has grown and that is not among what is remembered."""

    def is_broken(self, place: int, value: Any) -> bool:
        """Whether a tuple at a place breaks the constraint."""

    def rise(self, place: int, value: Any) -> None:
        """A tuple has come."""


class Watched(Protocol):
    """A constraint, with what is remembered for it and what was seen of it."""

    @property
    def constraint(self) -> Constraint:
        """What is promised."""

    @property
    def name(self) -> str:
        """By which it is known to those who look at tuples."""

    @property
    def violations(self) -> int:
        """How many tuples have broken it."""

    def values(self, table: pa.Table) -> Any:
        """What it looks at of tuples."""

    def watch(self) -> Watch:
        """Looks at tuples one after the other."""

    def if_none_breaks(self, values: Any, places: Ints) -> tuple[Any, int] | None:
        """What is to be remembered of tuples and was measured, if all adhere; None if some may
        not."""


@dataclass(frozen=True)
class Looked:
    """Which constraint each tuple breaks (-1: none), and for each constraint what is to be
    remembered, how far a tuple came behind at most, and how large k has become if it has grown."""

    broken: Ints
    risen: tuple[Any, ...]
    measured: tuple[int, ...]
    grown: tuple[Widened | None, ...]


def looked_at(
    watched: Sequence[Watched], values: Sequence[Column], times: Ints, arrived: int
) -> Looked:
    """Looks at tuples in order of arrival; those that break a constraint get no sequence number."""
    seqs = np.arange(arrived, arrived + len(times), dtype=np.int64)
    known = []
    for each, column in zip(watched, values, strict=True):
        found = each.if_none_breaks(column, seqs if each.constraint.is_of_rows else times)
        if found is None:
            return _one_by_one(watched, values, times, arrived)
        known.append(found)
    risen, measured = zip(*known, strict=True) if known else ((), ())
    nothing = np.full(len(times), -1, dtype=np.int64)
    return Looked(nothing, tuple(risen), tuple(measured), (None,) * len(watched))


def _one_by_one(
    watched: Sequence[Watched], values: Sequence[Column], times: Ints, arrived: int
) -> Looked:
    """The same for tuples of which some break a constraint, or that come in no order of time."""
    watches = [each.watch() for each in watched]
    broken = np.full(len(times), -1, dtype=np.int64)
    for row, time in enumerate(times.tolist()):
        met = [
            (watch, arrived if watch.is_of_rows else time, value)
            for watch, column in zip(watches, values, strict=True)
            if (value := column.at(row)) is not None
        ]
        breaks = next((watch for watch, *at in met if watch.is_broken(*at)), None)
        if breaks is not None:
            broken[row] = watches.index(breaks)
            continue
        for watch, *at in met:
            watch.rise(*at)
        arrived += 1
    risen = tuple(watch.risen for watch in watches)
    measured = tuple(watch.measured for watch in watches)
    return Looked(broken, risen, measured, tuple(watch.grown for watch in watches))


@dataclass(frozen=True)
class Violations:
    """What was seen when tuples were looked at: for each constraint what is to be remembered, how
    many violations there are by then, how far a tuple came behind, and if k has grown by that how
    far; and the tuples that broke one."""

    seen: dict[str, tuple[Any, ...]]
    rows: pa.Table | None
    broken: tuple[str, ...]
    """The constraints that were broken."""


class Looking:
    """Looks at tuples by the constraints of their stream, while they are admitted."""

    def __init__(self, watched: Sequence[Watched], arrived: int) -> None:
        self._watched, self._arrived = watched, arrived
        self.found: Violations | None = None
        """What was seen, once tuples were looked at."""

    def broken(self, table: pa.Table, times: Ints) -> Bools:
        """Which tuples break a constraint."""
        values = [each.values(table) for each in self._watched]
        looked = looked_at(self._watched, values, times, self._arrived)
        counts = np.bincount(looked.broken[looked.broken >= 0], minlength=len(self._watched))
        names = [each.name for each in self._watched]
        self.found = Violations(
            {
                each.name: (risen, each.violations + int(count), measured, *_grown(grown))
                for each, risen, count, measured, grown in zip(
                    self._watched, looked.risen, counts, looked.measured, looked.grown, strict=True
                )
            },
            _violating(table, looked.broken, names),
            tuple(name for name, count in zip(names, counts, strict=True) if count),
        )
        return np.asarray(looked.broken >= 0)


def _grown(widened: Widened | None) -> tuple[Any, ...]:
    """What stands behind the other facts of a constraint whose k has grown."""
    return () if widened is None else (None, widened)


def _violating(table: pa.Table, broken: Ints, names: list[str]) -> pa.Table | None:
    at = np.flatnonzero(broken >= 0)
    if not len(at):
        return None
    told = pa.array([names[number] for number in broken[at].tolist()], pa.string())
    columns = [*table.take(pa.array(at)).columns, told]
    schema = table.schema.append(pa.field(VIOLATES, pa.string()))
    return pa.Table.from_arrays(columns, schema=schema)
