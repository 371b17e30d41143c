"""Punctuations that come to a stream, and tuples that contradict them.

A punctuation has a place among the tuples, in order of arrival: no tuple that comes behind it
matches its pattern. One that does contradicts it, and is no part of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from millpond.catalog import VIOLATES, StreamEntry
from millpond.connectors.bad_rows import BadRow
from millpond.connectors.times import EARLIEST, LATEST
from millpond.cql.check.punctuations import read_pattern
from millpond.cql.patterns import LEAST, MOST, Pattern
from millpond.errors import CqlError, InputError
from millpond.kernels.groups import Bools, Ints
from millpond.schema import Type
from millpond.storage.closed import matches
from millpond.storage.punctuations import Remembered

POLICIES = ("stop", "count")
"""What becomes of the queries that rely on a punctuation when a tuple contradicts it."""

By = tuple[str, tuple[int, ...]]
"""What a tuple contradicts: punctuations with a policy that name some columns."""


@dataclass(frozen=True)
class Carried:
    """The punctuations that a page of a stream carries, each with the number of tuples before."""

    patterns: tuple[Pattern, ...] = ()
    places: tuple[int, ...] = ()
    unread: tuple[BadRow, ...] = ()
    """Those that are no patterns, where such are put aside."""


def without_carried(
    entry: StreamEntry, table: pa.Table, taken: int | None = None
) -> tuple[pa.Table, Carried]:
    """The tuples of a page, and the punctuations that stand among them.

    What is no pattern is put aside where the stream has bad rows of its source skipped, of which so
    many rows were ``taken`` before; else it is an error.
    """
    if entry.punctuation_column is None or not table.num_rows:
        return table, Carried()
    column = table.column(entry.punctuation_column)
    is_carried = np.asarray(column.is_valid()).astype(np.bool_)
    if not is_carried.any():
        return table, Carried()
    rows = np.flatnonzero(is_carried)
    places = (rows - np.arange(len(rows))).tolist()
    skipped = taken if entry.skips_bad_rows else None
    read = [_read(entry, str(column[row].as_py()), row, skipped) for row in rows.tolist()]
    found = [(each, at) for each, at in zip(read, places, strict=True) if isinstance(each, Pattern)]
    patterns, known = zip(*found, strict=True) if found else ((), ())
    unread = tuple(each for each in read if isinstance(each, BadRow))
    return table.filter(pa.array(~is_carried)), Carried(tuple(patterns), tuple(known), unread)


def _read(entry: StreamEntry, text: str, row: int, taken: int | None) -> Pattern | BadRow:
    try:
        return read_pattern(text, entry)
    except CqlError as error:
        name = entry.schema[entry.punctuation_column or 0].name
        reason = f"column {name}: {text!r} is no punctuation: {error.message}"
        if taken is None:
            raise InputError(f"stream {entry.name}, row {row + 1}, {reason}") from None
        return BadRow(f"row {taken + row + 1}", reason, text.encode())


class Looks(Protocol):
    """Looks at tuples by the constraints of their stream."""

    def broken(self, table: pa.Table, times: Ints) -> Bools:
        """Which tuples break one."""


@dataclass
class Contradictions:
    """Looks at tuples by punctuations, and has the others looked at by constraints."""

    entry: StreamEntry
    remembered: Mapping[str, Remembered]
    carried: Carried
    others: Looks | None
    found: dict[int, By] = field(default_factory=dict)
    """What tuples contradict, by their numbers among those that were looked at."""
    rows: pa.Table | None = None
    """The tuples that contradict something, as they came, each with what that is."""
    broken_otherwise: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """The numbers of tuples that break a constraint."""

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to look for."""
        is_punctuated = any(each.patterns for each in self.remembered.values())
        return is_punctuated or bool(self.carried.patterns) or self.others is not None

    def broken(self, table: pa.Table, times: Ints, rows: Ints) -> Bools:
        """Which tuples contradict a punctuation, or break a constraint; ``rows`` are their numbers
        in the page that carries punctuations."""
        self.found = self._contradicting(table, rows)
        broken = np.zeros(table.num_rows, dtype=np.bool_)
        broken[list(self.found)] = True
        self.rows = _told(self.entry, table, self.found)
        if self.others is not None:
            left = np.flatnonzero(~broken)
            kept = table.take(pa.array(left)) if len(self.found) else table
            otherwise = left[self.others.broken(kept, times[left])]
            self.broken_otherwise = otherwise
            broken[otherwise] = True
        return broken

    def _contradicting(self, table: pa.Table, rows: Ints) -> dict[int, By]:
        found: dict[int, By] = {}
        for policy, remembered in self.remembered.items():
            _add(found, policy, 0, table, remembered.patterns)
        policy = self.entry.punctuations_violated
        together = Remembered().followed(self.carried.patterns).patterns
        if any(matches(table, each.parts).any() for each in together):
            for pattern, place in zip(self.carried.patterns, self.carried.places, strict=True):
                first = int(np.searchsorted(rows, place))
                _add(found, policy, first, table.slice(first), (pattern,))
        return dict(sorted(found.items()))

    @property
    def counts(self) -> dict[str, int]:
        """How many tuples contradict punctuations of each policy."""
        policies = [policy for policy, _ in self.found.values()]
        return {policy: policies.count(policy) for policy in POLICIES if policy in policies}

    @property
    def stopping(self) -> list[tuple[int, ...]]:
        """The columns named by punctuations that were contradicted and stop queries."""
        stopping = (columns for policy, columns in self.found.values() if policy == "stop")
        return list(dict.fromkeys(stopping))

    def promises(self, tick_microseconds: int) -> list[tuple[int, int]]:
        """The heartbeats among the tuples of a page: how many come before each, and its time."""
        carried = zip(self.carried.patterns, self.carried.places, strict=True)
        found = (
            (place, promised_by(self.entry, each, tick_microseconds)) for each, place in carried
        )
        return [(place, time) for place, time in found if time is not None]

    def with_violating(self, violating: pa.Table | None) -> pa.Table | None:
        """All tuples that are put aside, as they came, with those that break a constraint."""
        if self.rows is None or violating is None:
            return violating if self.rows is None else self.rows
        numbers = np.concatenate([np.array(list(self.found)), self.broken_otherwise])
        both = pa.concat_tables([self.rows, violating])
        return both.take(pa.array(np.argsort(numbers, kind="stable")))


def _add(
    found: dict[int, By], policy: str, first: int, table: pa.Table, patterns: Sequence[Pattern]
) -> None:
    """Adds the rows that match one of some patterns, unless they are there."""
    for pattern in patterns:
        for row in np.flatnonzero(matches(table, pattern.parts)).tolist():
            found.setdefault(first + row, (policy, pattern.columns))


def _told(entry: StreamEntry, table: pa.Table, found: Mapping[int, By]) -> pa.Table | None:
    if not found:
        return None
    told = [punctuation_name(entry, columns) for _, columns in found.values()]
    columns = [*table.take(pa.array(list(found))).columns, pa.array(told, pa.string())]
    schema = table.schema.append(pa.field(VIOLATES, pa.string()))
    return pa.Table.from_arrays(columns, schema=schema)


def punctuation_name(entry: StreamEntry, columns: Sequence[int]) -> str:
    """What punctuations are called that name some columns."""
    return f"punctuation ({', '.join(entry.schema[column].name for column in columns)})"


def promised_by(entry: StreamEntry, pattern: Pattern, tick_microseconds: int) -> int | None:
    """The heartbeat that a pattern of nothing but the time is: all up to it is over."""
    if entry.timestamp_column is None or pattern.columns != (entry.timestamp_column,):
        return None
    low, high = pattern.parts[0][1].ranges[0]
    if low > LEAST or high == MOST:
        return None
    is_moment = entry.schema[entry.timestamp_column].type is Type.TIMESTAMP
    ticks = (high + 1) // tick_microseconds - 1 if is_moment else high
    return max(EARLIEST, min(LATEST, ticks))


def all_patterns(remembered: Mapping[str, Remembered]) -> Iterator[Pattern]:
    """The patterns of all policies."""
    for each in remembered.values():
        yield from each.patterns
