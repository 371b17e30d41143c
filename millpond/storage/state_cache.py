"""What one process, the driver or one of Spark's Python workers, holds of operators' states.

Only what a committed version names is ever applied; the rows of a step that was executed here wait
aside until then, so that a step may fail, be repeated or be thrown away.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from millpond.interruption import WholeLock
from millpond.storage.deltas import read_delta, write_delta, write_summed_delta
from millpond.storage.forms import Form
from millpond.storage.state import Delta, StateVersion

State = TypeVar("State")

WAITING_SHARE = 0.25
"""The part of the memory that rows of steps not yet committed may take."""


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
class _Waiting:
    """The rows of a delta written here: all of them, and those of its last version."""

    name: BucketName
    before: int
    rows: pa.Table
    changes: pa.Table
    bytes: int
    """Counted once: Arrow walks through every buffer for it."""


class StateCache:
    """States by bucket; the least recently used go when they take too much memory."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.rows_read = 0
        self._held: OrderedDict[BucketName, _Held] = OrderedDict()
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()
        self._held_bytes = self._waiting_bytes = 0
        self._lock = WholeLock()

    @property
    def bytes(self) -> int:
        """The memory of the states held."""
        return self._held_bytes

    def state_at(self, name: BucketName, form: Form[State], version: StateVersion) -> State:
        """The bucket's state in a version, of which only what is not yet held is read.

        It is valid, and to be read only, until a later version of the same bucket is asked for.
        """
        with self._lock:
            held = self._held.pop(name, None)
            self._held_bytes -= held.bytes if held else 0
        deltas = version.buckets[name.bucket]
        if held is None or not _leads_to(held, version.number, deltas):
            held = _Held(0, (), form.empty(), 0)
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
        state = self.state_at(name, form, version)
        first = version.first_of_next(name.bucket, changes.num_rows, form.live_rows(state))
        if first == 0:
            rows = form.merged([form.everything(state), changes], True, until)
        elif first > version.number:
            rows = changes
        else:
            earlier = [d for d in version.buckets[name.bucket] if d.first >= first]
            parts = [self._part(name, form, state, delta) for delta in earlier]
            rows = form.merged([*parts, changes], False, until)
        size, crc = _written(Path(name.store) / path, rows, is_summed)
        count = int(rows.nbytes if rows is changes else rows.nbytes + changes.nbytes)
        with self._lock:
            self._waiting[path] = _Waiting(name, version.number, rows, changes, count)
            self._waiting_bytes += count
            self._shrink()
        end = form.last_end(rows)
        return Delta(path, rows.num_rows, size, first, version.number + 1, end, crc)

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
        size, crc = _written(Path(name.store) / path, rows, is_summed)
        return Delta(path, rows.num_rows, size, 0, version.number + 1, form.last_end(rows), crc)

    def forget(self, store: str, operator: str | None = None) -> None:
        """Drops what is held of an operator, or of a whole store."""

        def is_meant(name: BucketName) -> bool:
            return name.store == store and operator in (None, name.operator)

        with self._lock:
            for name in list(filter(is_meant, self._held)):
                self._held_bytes -= self._held.pop(name).bytes
            for path, waiting in list(self._waiting.items()):
                if is_meant(waiting.name):
                    self._waiting_bytes -= self._waiting.pop(path).bytes

    def _apply(self, name: BucketName, form: Form[State], held: _Held, delta: Delta) -> None:
        with self._lock:
            waiting = self._waiting.pop(delta.path, None)
            self._waiting_bytes -= waiting.bytes if waiting else 0
        if waiting is not None and waiting.before == held.number:
            held.state = form.applied(held.state, delta, waiting.rows, waiting.changes)
        else:
            rows = self._rows(name, delta) if waiting is None else waiting.rows
            state = form.empty() if delta.is_base else held.state
            held.state = form.applied(state, delta, rows, None)
        held.number = delta.last

    def _part(self, name: BucketName, form: Form[State], state: State, delta: Delta) -> pa.Table:
        """A delta's rows: as the state holds them or, if it has them in another form, read."""
        held = form.held(state, delta)
        return self._rows(name, delta) if held is None else held

    def _rows(self, name: BucketName, delta: Delta) -> pa.Table:
        with self._lock:
            self.rows_read += delta.rows
        return read_delta(Path(name.store) / delta.path)

    def _hold(self, name: BucketName, held: _Held) -> None:
        """Another thread may have put the same bucket back meanwhile; the later one stays."""
        before = self._held.get(name)
        self._held_bytes += held.bytes - (before.bytes if before else 0)
        self._held[name] = held
        self._shrink()

    def _shrink(self) -> None:
        while self._waiting and self._waiting_bytes > WAITING_SHARE * self.limit_bytes:
            self._waiting_bytes -= self._waiting.popitem(last=False)[1].bytes
        while len(self._held) > 1 and self._held_bytes > self.limit_bytes:
            self._held_bytes -= self._held.popitem(last=False)[1].bytes


def _written(path: Path, rows: pa.Table, is_summed: bool) -> tuple[int, int | None]:
    """Writes rows; how long the file is, and its checksum if somebody is to note it."""
    return write_summed_delta(path, rows) if is_summed else (write_delta(path, rows), None)


def _leads_to(held: _Held, number: int, deltas: tuple[Delta, ...]) -> bool:
    """Whether a version is the one held or follows it.

    Each version of a bucket has at most one delta, so two that end with the same one are the same.
    """
    paths = {delta.last: delta.path for delta in held.deltas}
    same = all(paths.get(delta.last, delta.path) == delta.path for delta in deltas)
    return held.number <= number and same
