"""A kernel with its state: how it runs in the driver, and what the executors are told to run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from millpond.execution.answers import Answer, deltas_of
from millpond.execution.steps import Step
from millpond.execution.surroundings import Surroundings
from millpond.execution.work import Destination, RunKernel, RunMemberKernel, Work
from millpond.identities import OperatorId
from millpond.kernels.columns import integers
from millpond.kernels.groups import Bools, Ints
from millpond.kernels.kernel import Kernel, MemberKernel, fresh_number
from millpond.kernels.living import Living
from millpond.storage.bucketed import BucketedState, KeptState, PairedState
from millpond.storage.forms import Keyed, Ordered

NONE = np.zeros(0, np.int64)
"""No groups."""


class KernelWork(Protocol):
    """What a keyed operator does in a step."""

    @property
    def state(self) -> KeptState:
        """What it keeps between steps."""

    @property
    def buckets(self) -> int:
        """In how many buckets its state lies."""

    def in_driver(self, rows: pa.Table, step: Step) -> tuple[pa.Table, Any]:
        """The output, and the version with what changes."""

    def on_executors(self, destination: Destination, schema: pa.Schema, step: Step) -> Work:
        """The work on one bucket, for rows of this schema."""

    def following(self, answers: list[Answer], until: int) -> Any:
        """The version with what the executors have written."""

    def with_kernel(self, kernel: Any) -> KernelWork:
        """The same by another kernel, on the same state."""

    def purged(self, living: Living, until: int) -> Any:
        """The version at a time without what was kept for queries that are gone.

        The last key says whose it is.
        """


def work_of(
    kernel: Kernel | MemberKernel, identity: OperatorId, around: Surroundings
) -> KernelWork:
    """A kernel with a state of its own."""
    state = partial(
        BucketedState,
        around.store,
        around.states,
        columns=kernel.keys,
        count=around.limits.buckets,
    )
    groups = state(operator=identity, form=Keyed(kernel.state_schema, tuple(kernel.keys)))
    if not isinstance(kernel, MemberKernel):
        return _GroupWork(kernel, identity, groups)
    members = state(operator=f"{identity}.members", form=Ordered(kernel.member_schema))
    return _MemberWork(kernel, identity, PairedState(groups, members))


@dataclass(frozen=True)
class _GroupWork:
    """One row a group."""

    kernel: Kernel
    identity: OperatorId
    state: BucketedState

    @property
    def buckets(self) -> int:
        return len(self.state.version.buckets)

    def in_driver(self, rows: pa.Table, step: Step) -> tuple[pa.Table, Any]:
        known = self.state.known(rows)
        output, changes = self.kernel.run(rows, known, step.after, step.until)
        return output, self.state.changed(changes, step.until)

    def on_executors(self, destination: Destination, schema: pa.Schema, step: Step) -> Work:
        version, times = self.state.version, (step.after, step.until)
        about = destination, schema, self.kernel, self.identity
        return RunKernel(*about, version, *times, self.state.frees)

    def following(self, answers: list[Answer], until: int) -> Any:
        return self.state.following(deltas_of(answers), until)

    def with_kernel(self, kernel: Kernel) -> _GroupWork:
        return replace(self, kernel=kernel)

    def purged(self, living: Living, until: int) -> Any:
        tag = self.kernel.keys[-1]
        return self.state.without(lambda _, rows: living.gone(rows[tag]), until)


@dataclass(frozen=True)
class _MemberWork:
    """One row a group, and its members beside it."""

    kernel: MemberKernel
    identity: OperatorId
    state: PairedState

    @property
    def buckets(self) -> int:
        return len(self.state.left.version.buckets)

    def in_driver(self, rows: pa.Table, step: Step) -> tuple[pa.Table, Any]:
        """Bucket by bucket, for the members of a group lie with it."""
        kernel, groups, members = self.kernel, self.state.left, self.state.right
        outputs, changes = [kernel.output_schema.empty_table()], {}
        fresh = fresh_number(groups.version.number)
        for bucket, part in groups.split(rows).items() if kernel.keys else [(0, rows)]:
            known = groups.known_in(bucket, part)
            output, *changed = kernel.run_with_members(
                part, known, members.at(bucket), step.after, step.until, fresh
            )
            outputs.append(output)
            changes[bucket] = changed
        return pa.concat_tables(outputs), self.state.changed_in(changes, step.until)

    def on_executors(self, destination: Destination, schema: pa.Schema, step: Step) -> Work:
        versions, times = self.state.versions, (step.after, step.until)
        about = destination, schema, self.kernel, self.identity
        return RunMemberKernel(*about, versions, *times, self.state.frees)

    def following(self, answers: list[Answer], until: int) -> Any:
        groups, members = deltas_of(answers), deltas_of(answers, "members")
        return (
            self.state.left.following(groups, until),
            self.state.right.following(members, until),
        )

    def with_kernel(self, kernel: MemberKernel) -> _MemberWork:
        return replace(self, kernel=kernel)

    def purged(self, living: Living, until: int) -> Any:
        tag, groups = self.kernel.keys[-1], dict[int, Ints]()

        def is_gone(bucket: int, rows: pa.Table) -> Bools:
            gone = living.gone(rows[tag])
            groups[bucket] = integers(rows["_g"])[gone]
            return gone

        def is_of_gone(bucket: int, rows: pa.Table) -> Bools:
            return np.isin(integers(rows["_g"]), groups.get(bucket, NONE))

        return self.state.both(
            lambda: self.state.left.without(is_gone, until),
            lambda: self.state.right.without(is_of_gone, until),
        )
