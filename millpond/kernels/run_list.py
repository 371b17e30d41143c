"""Rows of a state in runs, each of those that came with some versions of it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

import pyarrow as pa


@dataclass(frozen=True)
class VersionedRun:
    """Rows in an order, and the versions whose rows they are."""

    table: pa.Table
    first: int
    last: int
    bytes: int


Run = TypeVar("Run", bound=VersionedRun)


@dataclass(frozen=True)
class RunList(Generic[Run]):
    """The runs of a bucket; never changed, only succeeded by another."""

    schema: pa.Schema
    runs: tuple[Run, ...] = ()

    def __len__(self) -> int:
        return sum(run.table.num_rows for run in self.runs)

    @property
    def bytes(self) -> int:
        """The memory of the runs, with what finds their rows."""
        return sum(run.bytes for run in self.runs)

    def succeeded(self, table: pa.Table, first: int, last: int) -> Self:
        """The list with a run in place of all those from a version on."""
        kept = tuple(run for run in self.runs if run.last < first)
        new = (self.run_of(table, first, last),) if table.num_rows else ()
        return type(self)(self.schema, kept + new)

    def run_of(self, table: pa.Table, first: int, last: int) -> Run:
        """The run of rows that are in its order."""
        raise NotImplementedError

    def only(self, versions: Collection[int]) -> Self:
        """The list without the runs that end with other versions."""
        return type(self)(self.schema, tuple(run for run in self.runs if run.last in versions))

    def all(self) -> pa.Table:
        """The rows of all runs."""
        return pa.concat_tables([self.schema.empty_table(), *(run.table for run in self.runs)])
