"""How a bucket's deltas become the state an operator works with, and how deltas are merged."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from millpond.kernels.columns import integers
from millpond.kernels.groups import distinct, encode
from millpond.kernels.hash_index import hashes_of
from millpond.kernels.ordered import MemberIndex, merged_members
from millpond.kernels.runs import RunIndex, merged_runs
from millpond.schema import BEGINNING, FOREVER
from millpond.storage.frees import Frees
from millpond.storage.partitions import piece_numbers
from millpond.storage.state import Delta
from millpond.storage.synopses import GroupSynopsis

State = TypeVar("State")
Runs = TypeVar("Runs", RunIndex, MemberIndex)

INDEX_BYTES = 36
"""What a synopsis's index takes for each group, about."""

DeltaRows = Callable[[], Iterable[pa.Table]]
"""Reads the rows of a delta, from the first to the last, as often as it is called."""


class Form(Protocol[State]):
    """A kind of state: what is kept of deltas in memory."""

    def empty(self) -> State:
        """A bucket without rows."""

    def applied(
        self, state: State, delta: Delta, rows: pa.Table, changes: pa.Table | None
    ) -> State:
        """The state with a delta's rows.

        ``changes`` are the rows of the delta's last version alone, where these are known and the
        state is the one before that version; the others may be None then.
        """

    def everything(self, state: State) -> pa.Table:
        """All rows, as a base holds them."""

    def merged(self, parts: Sequence[pa.Table], is_base: bool, until: int) -> pa.Table:
        """One delta's rows instead of several's, true from a time on."""

    def held(self, state: State, delta: Delta) -> pa.Table | None:
        """The rows of a delta that the state includes, if it has them as they are."""

    def only(self, state: State, deltas: Sequence[Delta]) -> State:
        """The state without what deltas brought that are no longer named, where that matters."""

    def last_end(self, rows: pa.Table) -> int:
        """When a delta of these rows may be forgotten, as none of them says anything any more."""

    def live_rows(self, state: State) -> int:
        """How many rows a base would hold."""

    def bytes(self, state: State) -> int:
        """The memory it takes."""


@dataclass(frozen=True)
class Keyed:
    """One row a group, the latest counts; ``_n`` = 0 says that the group is gone.

    Groups of ``frees`` are final: nothing reads or changes them any more.
    """

    schema: pa.Schema
    keys: tuple[str, ...]
    frees: Frees = ()

    def empty(self) -> GroupSynopsis:
        return GroupSynopsis(self.schema, list(self.keys))

    def applied(
        self, state: GroupSynopsis, delta: Delta, rows: pa.Table, changes: pa.Table | None
    ) -> GroupSynopsis:
        state.insert(rows if changes is None else changes)
        return state

    def everything(self, state: GroupSynopsis) -> pa.Table:
        return state.all()

    def merged(self, parts: Sequence[pa.Table], is_base: bool, until: int) -> pa.Table:
        rows = pa.concat_tables(parts)
        codes = encode([rows[name] for name in self.keys], rows.num_rows)
        last = np.full(int(codes.max(initial=-1)) + 1, -1, dtype=np.int64)
        last[codes] = np.arange(len(codes))
        if is_base and self.keys:
            last = last[integers(rows["_n"])[last] != 0]
        return rows.take(pa.array(np.sort(last)))

    def merged_in_pieces(
        self, deltas: Sequence[DeltaRows], is_base: bool, count: int
    ) -> Iterator[pa.Table]:
        """What ``merged`` gives, for one of so many pieces of the keys after another.

        All deltas are read again for each, so that no more than its rows are in memory.
        """
        names, numbers = list(self.keys), list[npt.NDArray[np.uint16]]()
        for delta in deltas:
            for rows in delta():
                numbers.append(piece_numbers(rows, names, count))
        for piece in range(count):
            read = (rows for delta in deltas for rows in delta())
            some = [
                rows.take(pa.array(np.flatnonzero(number == piece)))
                for rows, number in zip(read, numbers, strict=True)
            ]
            yield self.merged([self.schema.empty_table(), *some], is_base, FOREVER)

    def held(self, state: GroupSynopsis, delta: Delta) -> pa.Table | None:
        return None

    def only(self, state: GroupSynopsis, deltas: Sequence[Delta]) -> GroupSynopsis:
        return state

    def looked_up(self, parts: Iterable[pa.Table], keys: pa.Table) -> pa.Table:
        """The rows of some keys among those of deltas, the earliest first."""
        state, names = self.empty(), list(self.keys)
        wanted = distinct(hashes_of(keys.select(names).columns))
        for rows in parts:
            hashes = hashes_of(rows.select(names).columns)
            place = np.searchsorted(wanted, hashes)
            place[place == len(wanted)] = 0
            found = np.flatnonzero(wanted[place] == hashes)
            state.insert(rows.take(pa.array(found)).combine_chunks())
        return state.query(keys)

    def last_end(self, rows: pa.Table) -> int:
        return FOREVER

    def live_rows(self, state: GroupSynopsis) -> int:
        return len(state)

    def bytes(self, state: GroupSynopsis) -> int:
        return state.bytes


@dataclass(frozen=True)
class _OfRuns(Generic[Runs]):
    """Each delta is a run."""

    schema: pa.Schema

    def applied(self, state: Runs, delta: Delta, rows: pa.Table, changes: pa.Table | None) -> Runs:
        return state.succeeded(rows, delta.first, delta.last)

    def everything(self, state: Runs) -> pa.Table:
        return state.all()

    def held(self, state: Runs, delta: Delta) -> pa.Table | None:
        return next((run.table for run in state.runs if run.last == delta.last), None)

    def only(self, state: Runs, deltas: Sequence[Delta]) -> Runs:
        return state.only({delta.last for delta in deltas})

    def live_rows(self, state: Runs) -> int:
        return len(state)

    def bytes(self, state: Runs) -> int:
        return state.bytes


@dataclass(frozen=True)
class Indexed(_OfRuns[RunIndex]):
    """One side of a join: runs of elements; those of ``frees`` are needed no more."""

    frees: Frees = ()

    def empty(self) -> RunIndex:
        return RunIndex(self.schema)

    def merged(self, parts: Sequence[pa.Table], is_base: bool, until: int) -> pa.Table:
        return merged_runs(parts, until)

    def last_end(self, rows: pa.Table) -> int:
        return int(integers(rows["_te"]).max(initial=BEGINNING))


@dataclass(frozen=True)
class Ordered(_OfRuns[MemberIndex]):
    """The members of groups: runs of those that come and go; those of ``frees`` are
    needed no more."""

    frees: Frees = ()

    def empty(self) -> MemberIndex:
        return MemberIndex(self.schema)

    def merged(self, parts: Sequence[pa.Table], is_base: bool, until: int) -> pa.Table:
        return merged_members(parts)

    def last_end(self, rows: pa.Table) -> int:
        return FOREVER if rows.num_rows else BEGINNING


FREED = Indexed | Keyed | Ordered
"""The kinds of state of which rows can be freed."""
