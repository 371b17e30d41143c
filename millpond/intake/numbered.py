"""Constraints in rows about numbers that come again: what is remembered is in arrays, and tuples
that adhere are looked at page by page.

Numbers are the values of one column, or of two that are of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from millpond.catalog import Constraint
from millpond.intake.occurrences import (
    Clusters,
    Occurring,
    Referenced,
    References,
    Stretches,
    Uniqueness,
    Value,
)
from millpond.intake.orderings import Values, values_of
from millpond.intake.places import NOWHERE, Line, Places, Sightings
from millpond.kernels.groups import Ints
from millpond.schema import Type

_OF_32_BITS = (Type.INT, Type.DATE)


def are_numbers(types: Sequence[Type]) -> bool:
    """Whether values of columns of these types make one number of 64 bits."""
    if len(types) == 1:
        return types[0] is not Type.STRING
    return len(types) == 2 and all(each in _OF_32_BITS for each in types)


def numbers_of(table: pa.Table, positions: Sequence[int]) -> Values:
    """The numbers that columns make; none where one is NULL."""
    columns = [values_of(table.column(position)) for position in positions]
    if len(columns) == 1:
        return columns[0]
    high, low = columns
    numbers = (high.numbers << np.int64(32)) | (low.numbers & np.int64(0xFFFFFFFF))
    masks = [each.is_there for each in columns if each.is_there is not None]
    return Values(numbers, np.logical_and.reduce(masks) if masks else None)


def keys_of_numbers(numbers: Ints, columns: int) -> tuple[Value, ...]:
    """The values of so many columns that have made numbers."""
    if columns == 1:
        return tuple(numbers.tolist())
    return tuple(zip((numbers >> 32).tolist(), numbers.astype(np.int32).tolist(), strict=True))


class Alikes:
    """The tuples of a page with one number each, in order of the numbers."""

    def __init__(self, values: Values, places: Ints) -> None:
        at, numbers = values.there(places)
        order = np.argsort(numbers, kind="stable")
        self.ranked, self.at = numbers[order], at[order]
        changes = self.ranked[1:] != self.ranked[:-1]
        self.begins = np.flatnonzero(np.append(np.ones(min(1, len(at)), dtype=np.bool_), changes))
        """Where each number begins."""
        self.ends = np.append(self.begins[1:], len(at))[: len(self.begins)] - 1

    def __len__(self) -> int:
        return len(self.at)

    @property
    def numbers(self) -> Ints:
        """Each number once."""
        return self.ranked[self.begins]


class _Remembered(Stretches):
    """Where numbers came, as the others say it who look at one tuple after the other."""

    known: Places  # type: ignore[assignment]

    def __init__(self, limit: int, keeps_first: bool) -> None:
        super().__init__(limit, Places(keeps_first))  # type: ignore[arg-type]

    def last(self, come: Any) -> Any:
        """All that came: it is noted as a whole."""
        return come


class FirstPlaces(_Remembered):
    """Where numbers came first, those first that came first; so many at most."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit, keeps_first=True)
        self._come = Line()

    def note(self, come: Any) -> None:
        """Numbers have come; the oldest are forgotten."""
        seen = Sightings.read(come, of_first=True)
        new = seen.chosen(self.known.of(seen.values) == NOWHERE)
        if len(new):
            self._come.add(new)
            self.known.since = self._come.keep(self.limit)
            self.known.note(new)

    @property
    def listed(self) -> Any:
        """All that is remembered."""
        return self._come.listed

    def before(self, place: int) -> Ints:
        """The numbers that came first before a place."""
        listed = self._come.listed
        return listed.values[listed.places < place]


class _FirstNumbers(Occurring):
    """Remembers where numbers came first."""

    came: FirstPlaces

    def __init__(self, constraint: Constraint, since: int | None = None) -> None:
        super().__init__(constraint, since)
        self.came = FirstPlaces(self.came.limit)

    def values(self, table: pa.Table) -> Values:  # type: ignore[override]
        """What it looks at of tuples."""
        return numbers_of(table, self.constraint.columns)

    def forbidden(self, least_place: int) -> tuple[Value, ...]:
        known = self.came.before(self.widened.reach(least_place))
        return keys_of_numbers(known, len(self.constraint.columns))


class NumberedUniqueness(_FirstNumbers, Uniqueness):
    """UNIQUE numbers."""

    def if_none_breaks(  # type: ignore[override]
        self, values: Values, places: Ints
    ) -> tuple[Sightings, int] | None:
        alikes = Alikes(values, places)
        if not len(alikes):
            return Sightings.none(), self.measured
        first = self.came.known.of(alikes.numbers)
        is_new = first == NOWHERE
        first[is_new] = alikes.at[alikes.begins[is_new]]
        last = alikes.at[alikes.ends]
        if np.any(first < self.widened.reaches(last)):
            return None
        farthest = max(self.measured, int((last - first).max()))
        return Sightings(alikes.numbers[is_new], first[is_new]), farthest


class NumberedReferences(_FirstNumbers, References):
    """REFERENCES by numbers."""

    def if_none_breaks(  # type: ignore[override]
        self, values: Values, places: Ints
    ) -> tuple[Sightings, int] | None:
        alikes = Alikes(values, places)
        is_new = self.came.known.of(alikes.numbers) == NOWHERE
        come = Sightings(alikes.numbers[is_new], alikes.at[alikes.begins[is_new]])
        return come, self.measured


class NumberedReferenced(Referenced):
    """A constraint of another stream that references this one by numbers."""

    references: NumberedReferences

    def values(self, table: pa.Table) -> Values:  # type: ignore[override]
        """What it looks at of tuples."""
        return numbers_of(table, self.constraint.target_columns)

    def if_none_breaks(  # type: ignore[override]
        self, values: Values, places: Ints
    ) -> tuple[tuple[Any, ...], int] | None:
        _, numbers = values.there(places)
        first = self.references.came.known.of(numbers)
        oldest = int(first[first != NOWHERE].min(initial=self.place))
        if oldest < self.references.widened.reach(self.place):
            return None
        return (), max(self.references.measured, self.place - oldest)


class NumberedClusters(Clusters):
    """CLUSTERED BY numbers; of those that are closed ``closed`` only says how many are
    remembered."""

    came: _Remembered

    def __init__(self, constraint: Constraint, since: int | None = None) -> None:
        super().__init__(constraint, since)
        self.came = _Remembered(self.came.limit, keeps_first=False)
        """Where all came last, also those that are closed."""
        self._open, self._shut = Line(), Line()
        """Where numbers came that may be open, of which some came again later; and where those came
        last that are closed and not forgotten."""

    @property
    def noted(self) -> Any:
        both = Sightings.joined([self._shut.listed, self._open.listed])
        return _last_of(both, self.came.known)

    def forbidden(self, least_place: int) -> tuple[Value, ...]:
        return keys_of_numbers(self._shut.listed.values, len(self.constraint.columns))

    def values(self, table: pa.Table) -> Values:  # type: ignore[override]
        """What it looks at of tuples."""
        return numbers_of(table, self.constraint.columns)

    def _note(self, risen: Any) -> None:
        come = Sightings.read(risen)
        self.came.known.note(come)
        self._open.add(come)

    def close(self, least_place: int) -> Any:
        limit = self.widened.reach(least_place) - 1
        shut = _last_of(self._open.take_before(limit), self.came.known)
        if len(shut):
            self._shut.add(shut)
            self.came.known.since = self._shut.keep(self.closed.limit)
        return shut.values

    def if_none_breaks(  # type: ignore[override]
        self, values: Values, places: Ints
    ) -> tuple[Sightings, int] | None:
        alikes = Alikes(values, places)
        if not len(alikes):
            return Sightings.none(), self.measured
        before = np.append(NOWHERE, alikes.at[:-1])
        before[alikes.begins] = self.came.known.of(alikes.numbers)
        at, before = alikes.at[before != NOWHERE], before[before != NOWHERE]
        if np.any(before + 1 < self.widened.reaches(at)):
            return None
        farthest = int((at - before - 1).max(initial=self.measured))
        return Sightings(alikes.numbers, alikes.at[alikes.ends]), farthest


def _last_of(seen: Sightings, known: Places) -> Sightings:
    """Those that did not come again."""
    return seen.chosen(known.of(seen.values) == seen.places)
