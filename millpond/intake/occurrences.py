"""Where the values of a stream have come, and which tuples come too far from their like.

Of CLUSTERED BY a stream remembers where each value came last, of UNIQUE where it came first, of
REFERENCES also where those of the other stream came: as places (sequence numbers, or times). So
many values are remembered; a tuple that comes too far from one that is forgotten goes unnoticed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa

from millpond.catalog import Constraint
from millpond.intake.widening import Widened
from millpond.kernels.groups import Ints
from millpond.schema import FOREVER

REMEMBERED = 8_192
"""So many values are remembered beyond those that a tuple may still repeat (ROWS)."""

MOST_REMEMBERED = 100_000
"""So many values are remembered where a tuple may repeat those of a length of time."""

Value: TypeAlias = Hashable
"""A number or text, or a tuple of them."""

Stretch: TypeAlias = tuple[Value, int, int]
"""A value, the least and the largest place where it came."""


@dataclass(frozen=True)
class Keys:
    """The values of some columns in order of arrival; None where one is NULL."""

    listed: list[Value | None]

    def at(self, row: int) -> Value | None:
        """The value of a tuple, if it is there."""
        return self.listed[row]


def keys_of(table: pa.Table, positions: Sequence[int]) -> Keys:
    """The values of some columns of tuples."""
    columns = [_plain(table.column(position)).to_pylist() for position in positions]
    if len(columns) == 1:
        return Keys(columns[0])
    return Keys([None if None in row else row for row in zip(*columns, strict=True)])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Dates and times as numbers."""
    if column.type == pa.date32():
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


@dataclass
class Stretches:
    """Where values came, those first that came first; so many at most."""

    limit: int
    known: dict[Value, tuple[int, int]] = field(default_factory=dict)

    @staticmethod
    def of(constraint: Constraint) -> Stretches:
        """As many as a constraint needs."""
        within = constraint.within
        return Stretches(REMEMBERED + within if constraint.is_of_rows else MOST_REMEMBERED)

    def note(self, come: Iterable[Stretch]) -> None:
        """Values have come; the oldest are forgotten."""
        new = {value: (least, largest) for value, least, largest in come}
        for value in self.known.keys() & new.keys():
            (least, largest), before = new[value], self.known[value]
            new[value] = min(before[0], least), max(before[1], largest)
        self.known |= new
        for value in list(islice(self.known, max(0, len(self.known) - self.limit))):
            del self.known[value]

    @property
    def listed(self) -> tuple[Stretch, ...]:
        """All that is remembered."""
        return tuple((value, *places) for value, places in self.known.items())

    def last(self, come: Sequence[Any]) -> tuple[Any, ...]:
        """Those of the values that came which are not forgotten at once."""
        return tuple(come[-self.limit :])


class Occurring:
    """A constraint of values that come again, with what is remembered and was seen of it."""

    def __init__(self, constraint: Constraint, since: int | None = None) -> None:
        self.constraint = constraint
        self.widened = Widened(constraint.within)
        self.since = since
        """The largest time before it was asked of tuples; None: it always was."""
        self.violations = self.measured = 0
        self.came = Stretches.of(constraint)
        """Where the values of its tuples came."""

    @property
    def name(self) -> str:
        """By which it is known."""
        return self.constraint.name

    @property
    def facts(self) -> tuple[Any, ...]:
        """All that is known."""
        return self.noted, self.violations, self.measured, self.since, self.widened

    @property
    def noted(self) -> tuple[Any, ...]:
        """What is remembered of tuples."""
        return self.came.listed

    @property
    def limited(self) -> list[Stretches]:
        """Of which so many values are remembered as k asks for."""
        return [self.came]

    def values(self, table: pa.Table) -> Keys:
        """What it looks at of tuples."""
        return keys_of(table, self.constraint.columns)

    def in_reach(self, risen: Sequence[Any], least_place: int) -> tuple[Any, ...]:
        """What is to be noted of what has come."""
        return self.came.last(risen)

    def took(
        self,
        risen: Sequence[Any],
        violations: int,
        measured: int,
        since: int | None = None,
        widened: Widened | Sequence[Any] | None = None,
    ) -> None:
        """Tuples have come that were looked at, and k may be another one by then."""
        if widened is not None:
            self.use(Widened.read(widened))
        self._note(risen)
        self.violations, self.measured = violations, measured
        self.since = self.since if since is None else since

    def _note(self, risen: Sequence[Any]) -> None:
        self.came.note(risen)

    def use(self, widened: Widened) -> None:
        """From now on k is this large, and in rows so many more values are remembered."""
        more = widened.within - self.widened.within if self.constraint.is_of_rows else 0
        self.widened = widened
        for each in self.limited:
            each.limit += more

    def declared_as(self, constraint: Constraint, least_place: int, after: int | None) -> Occurring:
        """The same with another k, from a place on, when tuples up to a time have come."""
        self.constraint = constraint
        changed = self.widened.changed(constraint.within, least_place, after)
        self.use(changed.caught_up(least_place))
        return self

    def catch_up(self, least_place: int) -> None:
        """Forgets where k has grown, once no tuple comes before a place."""
        self.widened = self.widened.caught_up(least_place)

    def forbidden(self, least_place: int) -> tuple[Value, ...]:
        """The values that no tuple may have any more, but for a larger k."""
        reach = self.widened.reach(least_place)
        return tuple(value for value, (least, _) in self.came.known.items() if least < reach)

    def watch(self) -> _Apart:
        """Looks at tuples one after the other."""
        raise NotImplementedError

    def if_none_breaks(self, values: Keys, places: Ints) -> tuple[tuple[Any, ...], int] | None:
        """What is to be remembered of tuples and was measured, if all adhere."""
        return none_broken(self.watch(), values, places)


def none_broken(watch: _Apart, values: Keys, places: Ints) -> tuple[tuple[Any, ...], int] | None:
    """What a watch has seen of tuples, if none breaks the constraint."""
    for value, place in zip(values.listed, places.tolist(), strict=True):
        if value is None:
            continue
        if watch.is_broken(place, value):
            return None
        watch.rise(place, value)
    return tuple(watch.risen), watch.measured


class _Apart:
    """Looks how far tuples come from their like, one after the other."""

    between = 0
    """So much of a distance is no distance."""

    def __init__(self, occurring: Occurring) -> None:
        self._before = self.widened = occurring.widened
        self._widens = occurring.constraint.on_violation == "widen"
        self.is_of_rows = occurring.constraint.is_of_rows
        self.measured = occurring.measured
        self._new: dict[Value, tuple[int, int]] = {}

    @property
    def risen(self) -> list[Any]:
        """Where the values of tuples that have come were."""
        return [(value, *places) for value, places in self._new.items()]

    @property
    def grown(self) -> Widened | None:
        """How large k has become, if it has grown."""
        return None if self.widened is self._before else self.widened

    def is_broken(self, place: int, value: Value) -> bool:
        """Whether a tuple comes too far from its like; how far it comes is measured."""
        pairs, between = self._like(place, value), self.between
        far, at = max(((later - earlier, later) for later, earlier in pairs), default=(between, 0))
        self.measured = max(self.measured, far - between)
        reach = self.widened.reach
        is_broken = any(earlier + between < reach(later) for later, earlier in pairs)
        if is_broken and self._widens:
            self.widened = self.widened.after_violation(at, far - between, self.is_of_rows)
        return is_broken

    def _like(self, place: int, value: Value) -> list[tuple[int, int]]:
        """A tuple and those of its like that matter, two by two: the later place, the earlier."""
        raise NotImplementedError

    def rise(self, place: int, value: Value) -> None:
        """A tuple has come."""
        least, largest = self._new.get(value, (place, place))
        self._new[value] = min(least, place), max(largest, place)


class Uniqueness(Occurring):
    """UNIQUE: a tuple comes at most k behind the first one with its values."""

    def watch(self) -> _Alike:
        return _Alike(self)

    def if_none_breaks(self, values: Keys, places: Ints) -> tuple[tuple[Any, ...], int] | None:
        there = [value for value in values.listed if value is not None]
        is_new = len(there) == len(values.listed) and self.came.known.keys().isdisjoint(there)
        if is_new and len(set(there)) == len(there):
            listed = places.tolist()
            return tuple(zip(there, listed, listed, strict=True)), self.measured
        return super().if_none_breaks(values, places)


class _Alike(_Apart):
    """Looks how far tuples come from the first one, or if their time is earlier from the last."""

    def __init__(self, uniqueness: Uniqueness) -> None:
        super().__init__(uniqueness)
        self._known = uniqueness.came.known

    def _like(self, place: int, value: Value) -> list[tuple[int, int]]:
        both = [each[value] for each in (self._known, self._new) if value in each]
        places = [((place, least), (largest, place)) for least, largest in both]
        return [pair for pairs in places for pair in pairs]


class Clusters(Occurring):
    """CLUSTERED BY: between a tuple and the last one with its value at most k others came, or at
    most so much time. A value that can come no more is *closed*."""

    def __init__(self, constraint: Constraint, since: int | None = None) -> None:
        super().__init__(constraint, since)
        self.came = Stretches(FOREVER)
        self.closed = Stretches.of(constraint)
        """Where those came last that are closed; ``came`` has the others, the longest ago first."""

    @property
    def noted(self) -> tuple[Any, ...]:
        return *self.closed.listed, *self.came.listed

    @property
    def limited(self) -> list[Stretches]:
        return [self.closed]

    def forbidden(self, least_place: int) -> tuple[Value, ...]:
        return tuple(self.closed.known)

    def _note(self, risen: Sequence[Any]) -> None:
        before, come = self.came.known, list[Stretch]()
        for value, least, largest in risen:
            last = max(largest, before.pop(value, (least, least))[1])
            come.append((value, last, last))
        self.came.note(come)

    def close(self, least_place: int) -> list[Value]:
        """The values that no tuple at this place or later may have, and might have had before."""
        limit = self.widened.reach(least_place) - self.constraint.is_of_rows
        shut = []
        for value, (_, last) in self.came.known.items():
            if last >= limit:
                break
            shut.append(value)
        self.closed.note((value, *self.came.known.pop(value)) for value in shut)
        return shut

    def watch(self) -> _Behind:
        return _Behind(self)

    def if_none_breaks(self, values: Keys, places: Ints) -> tuple[tuple[Any, ...], int] | None:
        listed, count = values.listed, len(values.listed)
        if not self.constraint.is_of_rows or not count:
            return super().if_none_breaks(values, places)
        begins = [0, *(n for n in range(1, count) if listed[n] != listed[n - 1])]
        runs = {listed[begin]: begin for begin in begins}
        if len(runs) < len(begins):
            return super().if_none_breaks(values, places)
        first, watch = int(places[0]), self.watch()
        for known in (self.came.known, self.closed.known):
            if any(watch.is_broken(first + runs[v], v) for v in known.keys() & runs.keys()):
                return None
        ends = (first + begin - 1 for begin in (*begins[1:], count))
        risen = tuple((v, end, end) for v, end in zip(runs, ends, strict=True) if v is not None)
        return risen, watch.measured


class References(Occurring):
    """REFERENCES: tuples of another stream with a tuple's values come at most k behind it.

    In time that may be noticed when either comes, in rows when those of the other stream do.
    """

    def __init__(self, constraint: Constraint, since: int | None = None) -> None:
        super().__init__(constraint, since)
        self.partners = Stretches.of(constraint)
        """Where the values of the other stream's tuples came, in time."""

    @property
    def noted(self) -> tuple[Any, ...]:
        return self.came.listed, self.partners.listed

    @property
    def limited(self) -> list[Stretches]:
        return [self.came, self.partners]

    def in_reach(self, risen: Sequence[Any], least_place: int) -> tuple[Any, ...]:
        return self.came.last(risen), ()

    def _note(self, risen: Sequence[Any]) -> None:
        come, partners = risen
        self.came.note(come)
        self.partners.note(partners)

    def watch(self) -> _Apart:
        return _Referring(self)

    def if_none_breaks(self, values: Keys, places: Ints) -> tuple[tuple[Any, ...], int] | None:
        if not self.constraint.is_of_rows:
            return super().if_none_breaks(values, places)
        backwards = zip(reversed(values.listed), reversed(places.tolist()), strict=True)
        known, first = self.came.known, dict(backwards)
        first.pop(None, None)
        new = [(v, place, place) for v, place in reversed(first.items()) if v not in known]
        return tuple(new), self.measured


class _Behind(_Apart):
    """Looks how many others, or how much time, came since the last one with a tuple's value."""

    def __init__(self, clusters: Clusters) -> None:
        super().__init__(clusters)
        self.between = int(self.is_of_rows)
        self._known = clusters.came.known, clusters.closed.known

    def _like(self, place: int, value: Value) -> list[tuple[int, int]]:
        lasts = (each[value][1] for each in (self._new, *self._known) if value in each)
        return [(place, last) for last in islice(lasts, 1)]

    def rise(self, place: int, value: Value) -> None:
        known = [each[value][1] for each in (self._new, *self._known) if value in each]
        self._new.pop(value, None)
        self._new[value] = (last := max([place, *known])), last


class _Referring(_Apart):
    """Looks how far the other stream's tuples came behind those of its own."""

    def __init__(self, references: References) -> None:
        super().__init__(references)
        self._partners = references.partners.known

    def _like(self, place: int, value: Value) -> list[tuple[int, int]]:
        if self.is_of_rows or value not in self._partners:
            return []
        return [(self._partners[value][1], place)]


class Referenced:
    """A constraint of another stream that references this one.

    The place of a tuple here is, in rows, the number that the next tuple there gets.
    """

    def __init__(self, name: str, references: References, place: int) -> None:
        self.name, self.references, self.place = name, references, place

    @property
    def constraint(self) -> Constraint:
        """What is promised."""
        return self.references.constraint

    @property
    def violations(self) -> int:
        """How many tuples have broken it."""
        return self.references.violations

    def values(self, table: pa.Table) -> Keys:
        """What it looks at of tuples."""
        return keys_of(table, self.constraint.target_columns)

    def watch(self) -> _Referred:
        """Looks at tuples one after the other."""
        return _Referred(self)

    def if_none_breaks(self, values: Keys, places: Ints) -> tuple[tuple[Any, ...], int] | None:
        """What is to be remembered of tuples and was measured, if all adhere."""
        is_of_rows, known = self.constraint.is_of_rows, self.references.came.known
        if is_of_rows and known.keys().isdisjoint(values.listed):
            return (), self.references.measured
        return none_broken(self.watch(), values, places)

    def in_reach(self, risen: Sequence[Any]) -> tuple[Any, ...]:
        """What is to be noted of what has come: in rows it is of no use."""
        return (), () if self.constraint.is_of_rows else self.references.partners.last(risen)


class _Referred(_Apart):
    """Looks how far tuples come behind those that reference them."""

    def __init__(self, referenced: Referenced) -> None:
        super().__init__(referenced.references)
        self._place = referenced.place
        self._came = referenced.references.came.known

    def _like(self, place: int, value: Value) -> list[tuple[int, int]]:
        if value not in self._came:
            return []
        return [(self._place if self.is_of_rows else place, self._came[value][0])]
