"""Remnants: what constraints that were dropped forbid still, as they have freed what it would meet.

A tuple that a dropped constraint had forbidden by then stays forbidden until all that was freed has
ended, or until another constraint forbids as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.catalog import Constraint
from millpond.identities import OperatorId
from millpond.intake.occurrences import Keys, Value, keys_of
from millpond.intake.orderings import Values, values_of
from millpond.kernels.groups import Bools, Ints
from millpond.schema import FOREVER
from millpond.storage.transitions import Noted


@dataclass(frozen=True)
class Remnant(Noted):
    """What no tuple may have of a time before ``until``, as a constraint was dropped."""

    name: str
    stream: str
    """The stream that had the constraint."""
    dropped: Constraint
    columns: tuple[int, ...]
    """Of the tuples that are asked: of the stream, or of the one that it referenced."""
    least: int | None = None
    """Nothing smaller, of a constraint of the order."""
    values: tuple[Value, ...] = ()
    """None of these, of others."""
    until: int = FOREVER
    by: str = ""
    reach: int = 0
    """Or until another constraint has this reach."""
    operators: tuple[OperatorId, ...] = ()
    """Whose rows were freed."""
    violations: int = 0

    def to_data(self) -> tuple[Any, ...]:
        """As the log has it."""
        facts = self.columns, self.least, self.values, self.until, self.by, self.reach
        told = self.name, self.stream, astuple(self.dropped), *facts
        return *told, tuple(map(str, self.operators)), self.violations

    @staticmethod
    def read(told: Remnant | Sequence[Any]) -> Remnant:
        """What a log says."""
        if isinstance(told, Remnant):
            return told
        name, stream, dropped, columns, least, values, until, by, reach, operators, count = told
        known = tuple(map(OperatorId, operators))
        about = name, stream, Constraint(*dropped), columns
        return Remnant(*about, least, values, until, by, reach, known, count)

    @property
    def constraint(self) -> Constraint:
        """What is asked of tuples, by their times."""
        return replace(self.dropped, name=self.name, is_of_rows=False)

    @cached_property
    def forbidden(self) -> frozenset[Value]:
        """The values that no tuple may have."""
        return frozenset(self.values)

    def values_of(self, table: pa.Table) -> Values | Keys:
        """What it looks at of tuples."""
        if self.dropped.kind == "ordered":
            return values_of(table.column(self.columns[0]))
        return keys_of(table, self.columns)


@dataclass
class Forbidding:
    """Looks at tuples by a remnant."""

    remnant: Remnant
    is_of_rows: bool = False
    measured: int = 0

    @property
    def risen(self) -> tuple[Any, ...]:
        """Nothing is to be remembered."""
        return ()

    @property
    def grown(self) -> None:
        """What is forbidden does not change."""
        return None

    @property
    def constraint(self) -> Constraint:
        """What is asked."""
        return self.remnant.constraint

    @property
    def name(self) -> str:
        """By which it is known."""
        return self.remnant.name

    @property
    def violations(self) -> int:
        """How many tuples were put aside by it."""
        return self.remnant.violations

    def values(self, table: pa.Table) -> Values | Keys:
        """What it looks at of tuples."""
        return self.remnant.values_of(table)

    def watch(self) -> Forbidding:
        """Looks at tuples one after the other."""
        return self

    def is_broken(self, place: int, value: Any) -> bool:
        """Whether a tuple of a time has what is forbidden."""
        if place >= self.remnant.until:
            return False
        least = self.remnant.least
        return bool(value in self.remnant.forbidden if least is None else value < least)

    def rise(self, place: int, value: Any) -> None:
        """A tuple has come: what is forbidden stays the same."""

    def if_none_breaks(self, values: Values | Keys, places: Ints) -> tuple[Any, int] | None:
        """Nothing is to be remembered, if no tuple has what is forbidden."""
        return None if (self._are_broken(values) & (places < self.remnant.until)).any() else ((), 0)

    def _are_broken(self, values: Values | Keys) -> Bools:
        if isinstance(values, Keys):
            found = [value in self.remnant.forbidden for value in values.listed]
            return np.array(found, dtype=np.bool_)
        below = values.numbers < (self.remnant.least or 0)
        return below if values.is_there is None else below & values.is_there
