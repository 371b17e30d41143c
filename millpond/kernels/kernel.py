"""What all keyed kernels look like, and how one runs on one bucket of an operator's state."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from millpond.kernels.ordered import MemberIndex


@dataclass(frozen=True)
class Keyed:
    """What works by keys ``k0…``."""

    key_types: tuple[pa.DataType, ...]

    @property
    def keys(self) -> list[str]:
        """The names of the key columns."""
        return [f"k{i}" for i in range(len(self.key_types))]

    @property
    def key_fields(self) -> list[pa.Field]:
        """The key columns."""
        return [pa.field(n, t) for n, t in zip(self.keys, self.key_types, strict=True)]


class KeyedKernel(Protocol):
    """A keyed operator as a function of tables."""

    @property
    def keys(self) -> list[str]:
        """The names of its key columns."""

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of its state, a row for each group."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns it puts out."""


class Kernel(KeyedKernel, Protocol):
    """One whose groups are all that it keeps."""

    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The output of a step and the new state of the keys it touched."""


@runtime_checkable
class MemberKernel(KeyedKernel, Protocol):
    """One that keeps members of its groups, of which a step reads and writes some."""

    @property
    def member_schema(self) -> pa.Schema:
        """The columns of the members."""

    def run_with_members(
        self,
        events: pa.Table,
        state: pa.Table,
        members: MemberIndex,
        after: int,
        until: int,
        fresh: int,
    ) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The output of a step, the new state of the keys it touched, and the members that come
        and go. New groups have numbers from ``fresh`` on."""


GROUP_BITS = 28
"""A step may meet so many new groups, as a power of two."""


def fresh_number(version: int) -> int:
    """The first of the numbers for groups that are new after a version of the state."""
    return (version + 1) << GROUP_BITS
