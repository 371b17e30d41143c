"""What one process, the driver or one of Spark's Python workers, holds of operators' states.

Only what a committed version names is ever applied; the rows of a step that was executed here wait
aside until then, so that a step may fail, be repeated or be thrown away.

Most steps touch every bucket of their operator, in turns. If the least recently used one went when
memory is short, it would be just the one that is needed next, and a state a little larger than the
memory would be read whole in every step. So a bucket takes the place of another one only if it is
needed more often: the others stay, and of what has no place a step reads the rows that it asks for.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from millpond.interruption import WholeLock
from millpond.schema import FOREVER
from millpond.storage.deltas import (
    mapped_delta,
    read_batches,
    read_delta,
    write_parts,
    write_summed_parts,
)
from millpond.storage.forms import FREED, INDEX_BYTES, DeltaRows, Form, Indexed, Keyed
from millpond.storage.frees import needed, sweeps
from millpond.storage.state import Delta, StateVersion

State = TypeVar("State")

WAITING_SHARE = 0.25
"""The part of the memory that rows of steps not yet committed may take."""

MERGE_SHARES = 16
"""Rows of more than such a part of the memory are merged in pieces."""

LEAST_MERGE_BYTES = 2**20
"""But so much at once, however little memory there is."""

MOST_PIECES = 1_000
"""Into so many pieces at most."""

MOST_USES = 100_000
"""So many buckets are remembered that were used."""

NOT_BEFORE = -1
"""No version: what waits is not applied to a state, which is made anew of it."""

NEVER = 2**62
"""The pause of a bucket that was not used before."""


@dataclass(frozen=True)
class BucketName:
    """Which bucket of which operator in which store; a store is named by its directory."""

    store: str
    operator: str
    bucket: int


@dataclass
class _Held:
    """A bucket's state with the changes up to the version ``number``."""

    number: int
    deltas: tuple[Delta, ...]
    state: Any
    bytes: int


@dataclass(frozen=True)
class _Use:
    """When a bucket was used last, how long after the time before, and for which version."""

    at: int
    pause: int
    version: int


@dataclass(frozen=True)
class _Waiting:
    """The rows of a delta written here: all of them, and those of its last version."""

    name: BucketName
    before: int
    rows: pa.Table | None
    """None where they were merged in pieces."""
    changes: pa.Table
    bytes: int
    """Counted once: Arrow walks through every buffer for it."""


class StateCache:
    """States by bucket; those that are needed least often go when they take too much memory."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.rows_read = 0
        self.rows_looked_through = 0
        """Rows among which those of some keys were looked for, without a place for the others."""
        self._held: OrderedDict[BucketName, _Held] = OrderedDict()
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._held_bytes = self._waiting_bytes = 0
        self._uses: OrderedDict[BucketName, _Use] = OrderedDict()
        """Of those that are held, and of others that were; the latest last."""
        self._clock = 0
        self._lock = WholeLock()

    @property
    def bytes(self) -> int:
        """The memory of the states held, and of rows that wait."""
        return self._held_bytes + self._waiting_bytes

    def state_at(self, name: BucketName, form: Form[State], version: StateVersion) -> State:
        """The bucket's state in a version, of which only what is not yet held is read.

        It is valid, and to be read only, until a later version of the same bucket is asked for.
        """
        with self._lock:
            self._use(name, version.number)
        return self._state_at(name, form, version)

    def rows_of(
        self, name: BucketName, form: Keyed, version: StateVersion, keys: pa.Table
    ) -> pa.Table:
        """The rows of some keys in a version of a state that has one row a key; all without keys.

        Where the bucket has no place, only these are kept of what is read.
        """
        deltas = version.buckets[name.bucket]
        with self._lock:
            self._use(name, version.number)
            has_place = not form.keys or self._has_place(name, _expected_bytes(deltas))
        if has_place:
            state = self._state_at(name, form, version)
            return state.query(keys) if form.keys else state.all()
        with self._lock:
            self.rows_looked_through += sum(delta.rows for delta in deltas)
        paths = (Path(name.store) / delta.path for delta in deltas)
        return form.looked_up((rows for path in paths for rows in mapped_delta(path)), keys)

    def _use(self, name: BucketName, version: int) -> None:
        """A bucket is used; again for the same version, that is the same use. The lock is held."""
        before = self._uses.pop(name, None)
        if before is None or before.version != version:
            self._clock += 1
            pause = NEVER if before is None else self._clock - before.at
            before = _Use(self._clock, pause, version)
        self._uses[name] = before
        while len(self._uses) > MOST_USES:
            self._uses.popitem(last=False)

    def _has_place(self, name: BucketName, size: int) -> bool:
        """Whether a bucket is held, or would be once it was read; the lock is held."""
        return name in self._held or self._giving_way(name, size) is not None

    def _giving_way(self, name: BucketName, size: int = 0) -> list[BucketName] | None:
        """Which buckets go for another one with so many more bytes; None if it is to go itself."""
        excess, gone = self._held_bytes + size - self.limit_bytes, list[BucketName]()
        for other, held in self._held.items():
            if excess <= 0 or other == name:
                break  # the latest is the last: one alone stays, however large it is
            if not self._is_needed_more(name, other):
                return None
            excess -= held.bytes
            gone.append(other)
        return gone

    def _is_needed_more(self, name: BucketName, other: BucketName) -> bool:
        """Whether a bucket comes back sooner than another one has been waiting by now."""
        use, others = self._uses.get(name), self._uses.get(other)
        if use is None or others is None or name == other:
            return True
        return self._clock - others.at > use.pause

    def _state_at(self, name: BucketName, form: Form[State], version: StateVersion) -> State:
        with self._lock:
            held = self._held.pop(name, None)
            self._held_bytes -= held.bytes if held else 0
        deltas = version.buckets[name.bucket]
        if held is None or not _leads_to(held, version.number, deltas):
            held = _Held(0, (), form.empty(), 0)
            self._make_place(name, _expected_bytes(deltas))
        for delta in deltas:
            if delta.last > held.number:
                self._apply(name, form, held, delta)
        held.state = form.only(held.state, deltas)
        held.number, held.deltas = version.number, deltas
        held.bytes = form.bytes(held.state)
        with self._lock:
            self._hold(name, held)
        state: State = held.state
        return state

    def write(
        self,
        name: BucketName,
        form: Form[State],
        version: StateVersion,
        changes: pa.Table,
        path: str,
        until: int,
        is_summed: bool = False,
    ) -> Delta:
        """Writes what a step changes in a version as the bucket's next delta, merged when due."""
        state = self._state_at(name, form, version) if name in self._held else None
        if isinstance(form, FREED) and form.frees:
            live = version.rows_written_whole(name.bucket)
        elif state is None:
            live = version.rows_of_base(name.bucket)
        else:
            live = form.live_rows(state)
        first = version.first_of_next(name.bucket, changes.num_rows, live)
        if isinstance(form, FREED) and sweeps(form.frees):
            first = 0
        earlier = [d for d in version.buckets[name.bucket] if d.first >= first]
        if isinstance(form, Keyed) and form.keys and self._pieces(earlier) > 1:
            return self._write_in_pieces(name, form, version, changes, path, earlier, is_summed)
        if first == 0:
            state = self._state_at(name, form, version) if state is None else state
            rows = form.merged([form.everything(state), changes], True, until)
        elif first > version.number:
            rows = changes
        else:
            parts = [self._part(name, form, state, delta) for delta in earlier]
            rows = form.merged([*parts, changes], False, until)
        rows, freed, freed_bytes = _freed(form, rows, first == 0)
        size, crc = _written(Path(name.store) / path, rows.schema, (rows,), is_summed)
        count = int(rows.nbytes if rows is changes else rows.nbytes + changes.nbytes)
        before = NOT_BEFORE if freed and isinstance(form, Keyed) else version.number
        if rows.num_rows:  # no version may ever name it otherwise
            self._wait(path, _Waiting(name, before, rows, changes, count))
        end = form.last_end(rows)
        written = path, rows.num_rows, size, first, version.number + 1, end, crc
        return Delta(*written, freed, freed_bytes)

    def _pieces(self, deltas: Sequence[Delta]) -> int:
        """In how many pieces deltas are merged."""
        piece = max(LEAST_MERGE_BYTES, self.limit_bytes // MERGE_SHARES)
        return min(sum(delta.bytes for delta in deltas) // piece + 1, MOST_PIECES)

    def _write_in_pieces(
        self,
        name: BucketName,
        form: Keyed,
        version: StateVersion,
        changes: pa.Table,
        path: str,
        earlier: Sequence[Delta],
        is_summed: bool,
    ) -> Delta:
        """Writes what a step changes with earlier deltas, never having all of it in memory."""
        paths = (Path(name.store) / delta.path for delta in earlier)
        deltas: list[DeltaRows] = [partial(read_batches, each) for each in paths]
        is_base = len(earlier) == len(version.buckets[name.bucket])
        rows, freed, freed_bytes = 0, 0, 0

        def pieces() -> Iterator[pa.Table]:
            nonlocal rows, freed, freed_bytes
            all_deltas = [*deltas, lambda: (changes,)]
            for merged in form.merged_in_pieces(all_deltas, is_base, self._pieces(earlier)):
                piece, gone, gone_bytes = _freed(form, merged, is_base)
                rows, freed = rows + piece.num_rows, freed + gone
                freed_bytes += gone_bytes
                yield piece

        size, crc = _written(Path(name.store) / path, changes.schema, pieces(), is_summed)
        before = NOT_BEFORE if freed else version.number
        self._wait(path, _Waiting(name, before, None, changes, changes.nbytes))
        first = 0 if is_base else earlier[0].first
        written = path, rows, size, first, version.number + 1, FOREVER, crc
        return Delta(*written, freed, freed_bytes)

    def _wait(self, path: str, waiting: _Waiting) -> None:
        """Keeps rows that were written until a version names them, as far as there is room."""
        with self._lock:
            self._waiting[path] = waiting
            self._waiting_bytes += waiting.bytes
            while self._waiting and self._waiting_bytes > WAITING_SHARE * self.limit_bytes:
                self._waiting_bytes -= self._waiting.popitem(last=False)[1].bytes

    def write_base(
        self,
        name: BucketName,
        form: Form[State],
        version: StateVersion,
        rows: pa.Table,
        path: str,
        is_summed: bool = False,
    ) -> Delta:
        """Writes all that a bucket is to hold after a version."""
        size, crc = _written(Path(name.store) / path, rows.schema, (rows,), is_summed)
        return Delta(path, rows.num_rows, size, 0, version.number + 1, form.last_end(rows), crc)

    def forget(self, store: str, operator: str | None = None) -> None:
        """Drops what is held of an operator, or of a whole store."""

        def is_meant(name: BucketName) -> bool:
            return name.store == store and operator in (None, name.operator)

        with self._lock:
            self._drop(list(filter(is_meant, self._held)))
            for name in list(filter(is_meant, self._uses)):
                del self._uses[name]
            for path, waiting in list(self._waiting.items()):
                if is_meant(waiting.name):
                    self._waiting_bytes -= self._waiting.pop(path).bytes

    def _apply(self, name: BucketName, form: Form[State], held: _Held, delta: Delta) -> None:
        with self._lock:
            waiting = self._waiting.pop(delta.path, None)
            self._waiting_bytes -= waiting.bytes if waiting else 0
        rows, changes = (waiting.rows, waiting.changes) if waiting else (None, None)
        if waiting is not None and waiting.before == held.number:
            held.state = form.applied(held.state, delta, rows, changes)
        else:
            held.state = form.empty() if delta.is_base else held.state
            for part in self._parts(name, form, delta) if rows is None else (rows,):
                held.state = form.applied(held.state, delta, part, None)
        held.number = delta.last

    def _parts(self, name: BucketName, form: Form[State], delta: Delta) -> Iterable[pa.Table]:
        """A delta's rows; one batch after another where the state takes rows one by one."""
        if not isinstance(form, Keyed):
            return (self._rows(name, delta),)
        with self._lock:
            self.rows_read += delta.rows
        return read_batches(Path(name.store) / delta.path)

    def _part(
        self, name: BucketName, form: Form[State], state: State | None, delta: Delta
    ) -> pa.Table:
        """A delta's rows: as the state holds them or, if it has them in another form, read."""
        held = None if state is None else form.held(state, delta)
        return self._rows(name, delta) if held is None else held

    def _rows(self, name: BucketName, delta: Delta) -> pa.Table:
        with self._lock:
            self.rows_read += delta.rows
        return read_delta(Path(name.store) / delta.path)

    def _make_place(self, name: BucketName, size: int) -> None:
        """Drops what has to go for a bucket that is about to be read."""
        with self._lock:
            self._drop(self._giving_way(name, size) or ())

    def _drop(self, names: Iterable[BucketName]) -> None:
        for name in names:
            self._held_bytes -= self._held.pop(name).bytes

    def _hold(self, name: BucketName, held: _Held) -> None:
        """Another thread may have put the same bucket back meanwhile; the later one stays."""
        before = self._held.get(name)
        self._held_bytes += held.bytes - (before.bytes if before else 0)
        self._held[name] = held
        gone = self._giving_way(name)
        self._drop((name,) if gone is None else gone)


def _freed(form: Form[State], rows: pa.Table, is_base: bool) -> tuple[pa.Table, int, int]:
    """The rows of a delta that something still needs, how many others there were, and bytes.

    The row of a group takes the place of an earlier one, that of a member may count it out: they go
    where all are written.
    """
    if not isinstance(form, FREED) or not (is_base or isinstance(form, Indexed)):
        return rows, 0, 0
    kept = needed(rows, form.frees)
    gone = rows.num_rows - kept.num_rows
    return kept, gone, rows.nbytes * gone // max(1, rows.num_rows)


def _written(
    path: Path, schema: pa.Schema, parts: Iterable[pa.Table], is_summed: bool
) -> tuple[int, int | None]:
    """Writes rows; how long the file is, and its checksum if somebody is to note it."""
    if is_summed:
        return write_summed_parts(path, schema, parts)
    return write_parts(path, schema, parts), None


def _expected_bytes(deltas: Iterable[Delta]) -> int:
    """How much memory a bucket takes, about."""
    return sum(delta.bytes + INDEX_BYTES * delta.rows for delta in deltas)


def _leads_to(held: _Held, number: int, deltas: tuple[Delta, ...]) -> bool:
    """Whether a version is the one held or follows it.

    Each version of a bucket has at most one delta, so two that end with the same one are the same.
    """
    paths = {delta.last: delta.path for delta in held.deltas}
    same = all(paths.get(delta.last, delta.path) == delta.path for delta in deltas)
    return held.number <= number and same
