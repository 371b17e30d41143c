"""What all keyed kernels look like, and how one runs on one bucket of an operator's state."""

from typing import Protocol, runtime_checkable

import pyarrow as pa

from millpond.kernels.ordered import MemberIndex


class Kernel(Protocol):
    """A keyed operator as a function of tables."""

    @property
    def keys(self) -> list[str]:
        """The names of its key columns."""

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of its state."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns it puts out."""

    def run(
        self, events: pa.Table, state: pa.Table, after: int, until: int
    ) -> tuple[pa.Table, pa.Table]:
        """The output of a step and the new state of the keys it touched."""


@runtime_checkable
class MemberKernel(Protocol):
    """A keyed operator that keeps members of its groups, of which a step reads and writes some."""

    @property
    def keys(self) -> list[str]:
        """The names of its key columns."""

    @property
    def state_schema(self) -> pa.Schema:
        """The columns of its groups."""

    @property
    def member_schema(self) -> pa.Schema:
        """The columns of their members."""

    @property
    def output_schema(self) -> pa.Schema:
        """The columns it puts out."""

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
