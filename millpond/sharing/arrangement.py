"""How queries run: what was decided when they began, as the log keeps it and the engine does it.

A query that begins adds operators to the graph, reads what others put out, or is one row more in
the table of a group. Nobody decides that again: after a restart it runs as it is said here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, Self

from millpond.cql.node import Node
from millpond.errors import StateError
from millpond.failures import Failure
from millpond.functions.user_function import UserFunction
from millpond.identities import GroupId, OperatorId, QueryId, QueueId
from millpond.planning.graph import Addition
from millpond.planning.nodes import Constant
from millpond.planning.plan_data import Functions
from millpond.sharing.planned import QueryPlans
from millpond.storage.pages import Page
from millpond.storage.store import Store
from millpond.storage.transitions import UNLOGGED, Transition

NOTHING_MORE = Addition()
"""What a query adds to a graph in which all it needs runs already."""


class Arranged(Protocol):
    """The queries that run."""

    def begin(self, begun: Begun) -> None:
        """A query runs from now on."""

    def found(self, founded: GroupFounded) -> None:
        """A group is there from now on."""

    def stop(self, key: QueryId) -> None:
        """A query stands still."""

    def has_failed(self, failures: list[Failure], error: Exception) -> None:
        """Queries stand still, for one reason."""

    def restore(self, kept: GraphKept) -> None:
        """All operators are there again."""

    def functions(self) -> dict[str, UserFunction]:
        """The functions of the user that are registered."""


class Membership(NamedTuple):
    """Which of a group's queries one is."""

    group: GroupId
    number: int
    constants: tuple[Constant, ...]
    since: dict[QueueId, int]
    """After which times it sees the streams, by their queues, if the group is a late one."""


@dataclass(frozen=True)
class Begun(Transition, kind="begin", to="queries"):
    """How a query runs from now on, whether or not it did before."""

    query: QueryId
    """Its name, in lower case."""
    epoch: int
    """Since when."""
    output: OperatorId
    """The operator that puts it out."""
    adds: Addition = NOTHING_MORE
    """What comes to the graph for it."""
    aside: OperatorId | None = None
    """The operator that puts out what it leaves out."""
    begins: int | None = None
    """When its changes begin, if it had others before."""
    taken_back: Page | None = None
    """The changes that take out what its answer held."""
    taken_at: int = 0
    """When that is."""
    member: Membership | None = None
    chosen: dict[str, Any] = field(default_factory=dict)
    """What passes have chosen, if it stands alone."""
    is_late: bool | None = None
    """Whether it may belong to a late group some day, standing alone; None: it stays alone."""
    plans: QueryPlans | None = field(default=None, compare=False, metadata=UNLOGGED)

    @classmethod
    def read(cls, facts: Mapping[str, Any], store: Store, functions: Functions) -> Self:
        """The transition that a record says."""
        begun = super().read(facts, store, functions)
        member = begun.member
        return (
            begun
            if member is None
            else replace(begun, member=Membership(GroupId(member[0]), *member[1:]))
        )

    def apply(self, part: Arranged) -> None:
        """Has it run."""
        part.begin(self)


@dataclass(frozen=True)
class GroupFounded(Transition, kind="group", to="queries"):
    """A group of queries of one shape is there from now on."""

    name: GroupId
    epoch: int
    output: OperatorId
    plan: Node
    """Its plan without constants."""
    like: tuple[Constant, ...]
    """Constants like those of its queries."""
    streams: tuple[str, ...]
    """The streams of a late group: after which times is for each query to say."""
    outline: int
    adds: Addition = NOTHING_MORE
    next_number: int = 0

    def apply(self, part: Arranged) -> None:
        """Founds it."""
        part.found(self)


@dataclass(frozen=True)
class Stopped(Transition, kind="stop", to="queries"):
    """A query stands still."""

    query: QueryId

    def apply(self, part: Arranged) -> None:
        """Takes its operators out."""
        part.stop(self.query)


@dataclass(frozen=True)
class Failed(Transition, kind="failed", to="queries"):
    """Queries have failed, and stand still."""

    failures: tuple[dict[str, Any], ...]
    error: Exception | None = field(default=None, compare=False, metadata=UNLOGGED)

    def apply(self, part: Arranged) -> None:
        """Has them stand still."""
        found = [Failure(**failure) for failure in self.failures]
        part.has_failed(found, self.error or StateError(found[0].error))


@dataclass(frozen=True)
class FunctionsNeeded(Transition, kind="needs", to="queries"):
    """What follows calls these functions of the user."""

    needed: tuple[dict[str, str], ...]

    def apply(self, part: Arranged) -> None:
        """Refuses to go on if they are not registered as they were."""
        for facts in self.needed:
            function = part.functions().get(facts["name"])
            if function is None:
                raise StateError(
                    f"the store has queries that call {facts['signature']}, which is not "
                    "registered: give it to Engine(functions=…), or register it before SET store"
                )
            if function.digest != facts["digest"] or str(function) != facts["signature"]:
                raise StateError(
                    f"the store has queries that call {facts['signature']}, and {function} is "
                    "registered with other code or types: register the function that it was, or "
                    "begin anew with another store"
                )


def needs(functions: list[UserFunction]) -> list[FunctionsNeeded]:
    """What says which functions of the user must be there before what follows."""
    facts = [{"name": f.name, "signature": str(f), "digest": f.digest} for f in functions]
    return [FunctionsNeeded(tuple(facts))] if facts else []


@dataclass(frozen=True)
class GraphKept(Transition, kind="graph", to="queries"):
    """All operators, in a checkpoint, and what is known of those that began late."""

    whole: Addition
    next_number: int
    settled: dict[OperatorId, int]
    counting: dict[OperatorId, int]
    copied: dict[QueueId, int]

    def apply(self, part: Arranged) -> None:
        """Has them back."""
        part.restore(self)
