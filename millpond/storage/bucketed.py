"""The keyed state of one operator: its present version in the store, in hash buckets.

A step reads the version it was prepared with and writes the rows it changes; they count when the
step is committed and the next version names them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from millpond.kernels.groups import Bools
from millpond.kernels.hashing import buckets
from millpond.storage.forms import FREED, Form, Keyed
from millpond.storage.frees import Frees, sweeps
from millpond.storage.state import Delta, StateVersion
from millpond.storage.state_cache import BucketName, StateCache
from millpond.storage.store import Store
from millpond.storage.sums import Sum


class KeptState(Protocol):
    """What an operator keeps between steps; ``version`` is what a step makes of it."""

    def take(self, version: Any) -> None:
        """From now on this version is the state."""

    def give_up(self, version: Any) -> None:
        """A version that never came to count goes."""

    def reference(self, version: Any) -> Any:
        """What the log says of a version."""

    def present(self) -> Any:
        """What the log says of the present version."""

    def restore(self, reference: Any) -> None:
        """Takes the version that the log speaks of."""

    @property
    def names(self) -> set[str]:
        """The files of the present version."""

    @property
    def bytes(self) -> int:
        """How large these are."""

    def clear(self) -> None:
        """Forgets all of it: it is to be made anew."""

    def close(self) -> None:
        """Gives everything up."""


class BucketedState:
    """One row a key, in buckets by the hash of ``columns``; without columns there is one bucket."""

    def __init__(
        self,
        store: Store,
        cache: StateCache,
        operator: str,
        form: Form[Any],
        columns: list[str],
        count: int,
    ) -> None:
        self.form = form
        self.columns = columns
        self.version = StateVersion.empty(count if columns else 1)
        self._store = store
        self._cache = cache
        self._operator = operator

    # -- a step ----------------------------------------------------------------------------

    def known(self, rows: pa.Table) -> pa.Table:
        """The state of the keys that occur in some rows; all there is, without columns."""
        if not self.columns:
            return self.everything()
        parts = [self.known_in(bucket, part) for bucket, part in self.split(rows).items()]
        return pa.concat_tables(parts) if parts else self.form.everything(self.form.empty())

    def known_in(self, bucket: int, rows: pa.Table) -> pa.Table:
        """The state of the keys that occur in some rows of a bucket; all of it, without columns."""
        if isinstance(self.form, Keyed):
            return self._cache.rows_of(self._name(bucket), self.form, self.version, rows)
        found: pa.Table = self.at(bucket).query(rows)
        return found

    def everything(self) -> pa.Table:
        """The whole state."""
        return pa.concat_tables(
            [self.at(bucket).all() for bucket in range(len(self.version.buckets))]
        )

    def changed(self, changes: pa.Table, until: int) -> StateVersion:
        """Writes the rows that a step changes; the version in which they count."""
        return self.changed_in(self.split(changes), until)

    def changed_in(self, changes: Mapping[int, pa.Table], until: int) -> StateVersion:
        """The same where it is known which bucket the rows are of."""
        some = {bucket: rows for bucket, rows in changes.items() if rows.num_rows}
        if isinstance(self.form, FREED) and sweeps(self.form.frees):
            nothing = self.form.schema.empty_table()
            filled = (bucket for bucket, deltas in enumerate(self.version.buckets) if deltas)
            some |= {bucket: nothing for bucket in filled if bucket not in some}
        written = self._all(some, lambda bucket, rows: self._write(bucket, rows, until))
        return self.following(written, until)

    @property
    def frees(self) -> Frees:
        """Which rows are not written again when some are."""
        return self.form.frees if isinstance(self.form, FREED) else ()

    def free(self, frees: Frees) -> None:
        """Rows below these values are not written again when some are."""
        if isinstance(self.form, FREED) and self.form.frees != frees:
            self.form = replace(self.form, frees=frees)

    def _all(
        self, parts: Mapping[int, pa.Table], write: Callable[[int, pa.Table], Delta]
    ) -> dict[int, Delta]:
        """Writes the parts of several buckets, all or none."""
        written: dict[int, Delta] = {}
        try:
            for bucket, rows in parts.items():
                written[bucket] = write(bucket, rows)
        except BaseException:
            self._store.remove(tuple(delta.path for delta in written.values()))
            raise
        return written

    def following(self, written: dict[int, Delta], until: int) -> StateVersion:
        """The version with these deltas; those that say nothing after its time go at once."""
        self.note(written)
        version = self.version.after(written, until)
        unneeded = {delta.path for delta in written.values()} - version.paths
        self._store.remove(tuple(unneeded))
        return version

    def note(self, written: Mapping[int, Delta]) -> None:
        """Has the store know the checksums of deltas that were just written."""
        for delta in written.values():
            if delta.crc is not None:
                self._store.note_file(delta.path, Sum(delta.bytes, delta.crc))

    def _write(self, bucket: int, rows: pa.Table, until: int) -> Delta:
        to, is_summed = (self._name(bucket), self.form, self.version), self._store.is_durable
        write = partial(self._cache.write, *to, rows, until=until, is_summed=is_summed)
        return self._store.placed(self._store.new_state_name(), write)

    def without(self, is_gone: Callable[[int, pa.Table], Bools], until: int) -> StateVersion:
        """The version at a time without some of each bucket's rows; the present one if there are
        none."""
        left: dict[int, pa.Table] = {}
        for bucket in (b for b, deltas in enumerate(self.version.buckets) if deltas):
            rows = self.form.everything(self.at(bucket))
            gone = is_gone(bucket, rows)
            if gone.any():
                left[bucket] = self.form.merged([rows.filter(pa.array(~gone))], True, until)
        written = self._all(left, self._write_base)
        return self.following(written, until) if written else self.version

    def _write_base(self, bucket: int, rows: pa.Table) -> Delta:
        to, is_summed = (self._name(bucket), self.form, self.version), self._store.is_durable
        write = partial(self._cache.write_base, *to, rows, is_summed=is_summed)
        return self._store.placed(self._store.new_state_name(), write)

    def at(self, bucket: int) -> Any:
        """One bucket's state, in the form the operator works with."""
        return self._cache.state_at(self._name(bucket), self.form, self.version)

    def _name(self, bucket: int) -> BucketName:
        return BucketName(str(self._store.directory), self._operator, bucket)

    def split(self, rows: pa.Table) -> dict[int, pa.Table]:
        """The rows of each bucket; of those that have any."""
        count = len(self.version.buckets)
        if rows.num_rows == 0:
            return {}
        if count == 1:
            return {0: rows}
        numbers = buckets([rows[name] for name in self.columns], count)
        parts = ((bucket, rows.filter(pa.array(numbers == bucket))) for bucket in range(count))
        return {bucket: part for bucket, part in parts if part.num_rows}

    # -- versions --------------------------------------------------------------------------

    def take(self, version: StateVersion) -> None:
        """From now on this version is the state; what only the one before needed goes."""
        gone = self.version.paths - version.paths
        self.version = version
        self._store.remove(tuple(gone))

    def give_up(self, version: StateVersion) -> None:
        """A version that never came to count goes."""
        self._store.remove(tuple(version.paths - self.version.paths))

    def reference(self, version: StateVersion) -> Any:
        """What the log says of a version."""
        return version.to_json()

    def present(self) -> Any:
        """What the log says of the present version."""
        return self.reference(self.version)

    def restore(self, reference: Any) -> None:
        """Takes the version that the log speaks of."""
        self.take(StateVersion.from_json(reference))

    @property
    def names(self) -> set[str]:
        """The files of the present version."""
        return set(self.version.paths)

    @property
    def bytes(self) -> int:
        """How large these are."""
        return sum(delta.bytes for deltas in self.version.buckets for delta in deltas)

    def clear(self) -> None:
        """Forgets all of it: it is to be made anew."""
        self.take(StateVersion(self.version.number, ((),) * len(self.version.buckets)))

    def close(self) -> None:
        """Gives everything up."""
        self._store.remove(tuple(self.version.paths))
        self._cache.forget(str(self._store.directory), self._operator)


class PairedState:
    """Two states in one: the sides of a join, or groups and their members."""

    def __init__(self, left: BucketedState, right: BucketedState) -> None:
        self.left, self.right = left, right

    @property
    def versions(self) -> tuple[StateVersion, StateVersion]:
        """The present versions."""
        return self.left.version, self.right.version

    @property
    def frees(self) -> tuple[Frees, Frees]:
        """Which rows of either are not written again when some are."""
        return self.left.frees, self.right.frees

    def changed(
        self, left: pa.Table, right: pa.Table, until: int
    ) -> tuple[StateVersion, StateVersion]:
        """Writes what is new on either side."""
        return self.both(
            lambda: self.left.changed(left, until), lambda: self.right.changed(right, until)
        )

    def both(
        self, left: Callable[[], StateVersion], right: Callable[[], StateVersion]
    ) -> tuple[StateVersion, StateVersion]:
        """Writes a version of either side, both or none."""
        first = left()
        try:
            return first, right()
        except BaseException:
            self.left.give_up(first)
            raise

    def changed_in(
        self, changes: Mapping[int, Sequence[pa.Table]], until: int
    ) -> tuple[StateVersion, StateVersion]:
        """Writes what changes in each bucket: of the left state, then of the right one."""
        left, right = ({b: both[n] for b, both in changes.items()} for n in range(2))
        return self.both(
            lambda: self.left.changed_in(left, until), lambda: self.right.changed_in(right, until)
        )

    def take(self, version: tuple[StateVersion, StateVersion]) -> None:
        """From now on these versions are the state."""
        self.left.take(version[0])
        self.right.take(version[1])

    def give_up(self, version: tuple[StateVersion, StateVersion]) -> None:
        """Versions that never came to count go."""
        self.left.give_up(version[0])
        self.right.give_up(version[1])

    def reference(self, version: tuple[StateVersion, StateVersion]) -> Any:
        """What the log says of them."""
        return [each.to_json() for each in version]

    def present(self) -> Any:
        """What the log says of the present versions."""
        return self.reference(self.versions)

    def restore(self, reference: Any) -> None:
        """Takes the versions that the log speaks of."""
        self.left.restore(reference[0])
        self.right.restore(reference[1])

    @property
    def names(self) -> set[str]:
        """The files of the present versions."""
        return self.left.names | self.right.names

    @property
    def bytes(self) -> int:
        """How large these are."""
        return self.left.bytes + self.right.bytes

    def clear(self) -> None:
        """Forgets both."""
        self.left.clear()
        self.right.clear()

    def close(self) -> None:
        """Gives everything up."""
        self.left.close()
        self.right.close()
