"""Groups: queries of one shape that run as one plan over a table of their constants.

The first query of a shape runs by itself. When another one comes a group is founded, and from then
on a query of that shape is one row more; the first becomes one too if it began at the same time and
has put out nothing yet. Queries that begin before there is data are a group; those that begin while
data flows are another one, in which the times after which a query sees the streams are constants
like others.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypedDict

from millpond.catalog import QueryEntry
from millpond.cql.algebra import RangeWindow, RelationScan, RowsWindow, StreamScan
from millpond.cql.node import Node
from millpond.delivery.group_results import GroupLog, GroupSlice
from millpond.errors import StateError
from millpond.identities import stream_queue
from millpond.intake.inputs import Inputs
from millpond.kernels.expressions import can_lower
from millpond.kernels.living import Living
from millpond.planning.shapes import Lifted, lift, outline
from millpond.schema import BEGINNING
from millpond.sharing.planned import QueryPlans
from millpond.storage.members import Members

MOST_TOLD = 3
"""So many queries of a group are named."""

LEAST_SHARE = 4
"""One query for so many of a group may be gone before what it kept is freed: looking for that takes
time for all that the group keeps."""

AddOperators = Callable[[], str]
"""Adds the operators of a group to the graph; the one that puts it out."""

LATE = "late"
"""What a group is called whose queries began at different times."""


@dataclass(eq=False)
class Group:
    """The queries of one shape."""

    name: str
    outline: int
    epoch: int
    """When its operators began."""
    is_late: bool
    members: Members
    log: GroupLog
    output: str
    queries: dict[int, str] = field(default_factory=dict)
    """The names of the queries, by their numbers."""
    since: dict[int, dict[str, int]] = field(default_factory=dict)
    """After which times those of a late group see their streams."""
    weights: dict[int, float] = field(default_factory=dict)
    weight: float = 0.0
    """How much its queries matter together."""
    next_number: int = 0
    left: int = 0
    """How many have gone for whom its operators may still keep something."""

    @property
    def is_to_purge(self) -> bool:
        """Whether what is kept for those that are gone is worth to be looked for."""
        return self.left * LEAST_SHARE >= len(self.queries)

    @property
    def living(self) -> Living:
        """The queries that are there."""
        return Living(frozenset(self.queries), self.next_number)

    def number_of(self, query: str) -> int:
        """The number of a query in the group."""
        return next(n for n, name in self.queries.items() if name.lower() == query.lower())


class Membership(TypedDict):
    """Which of a group's queries one is, as plain data."""

    group: str
    number: int
    next: int
    since: dict[str, int]


@dataclass(eq=False)
class Shapes:
    """The shapes of a query that begins at a time, if it has any; found when they are asked for."""

    plans: QueryPlans | None
    """What may be shared of it: nothing if there is none."""
    epoch: int
    is_late: bool = False
    """Whether it may belong to a group whose queries began at different times."""

    @cached_property
    def outline(self) -> int:
        """The outline of the query's plan, which few other plans have."""
        if self.plans is None:
            return 0
        known = self.plans.shaped
        return outline(self.plans.optimised) if known is None else known.outline

    @cached_property
    def usual(self) -> Lifted | None:
        """The query's shape among queries that begin when it does."""
        if self.plans is None:
            return None
        known = self.plans.shaped
        return lift(self.plans.optimised, can_lower) if known is None else known.usual

    @cached_property
    def late(self) -> Lifted | None:
        """The query's shape among late-comers, which begin at any time."""
        if self.plans is None or not self.is_late:
            return None
        known = self.plans.shaped
        if known is None:
            return lift(self.plans.optimised, can_lower, is_late=True)
        return known.late

    @property
    def whole(self) -> tuple[Node | None, int]:
        """What runs once however many queries have it, where queries stand alone.

        Those that begin later have operators of their own until they hold the same.
        """
        plan = None if self.plans is None else self.plans.optimised
        return plan, 0 if plan is None or _passes(plan) else self.epoch

    @property
    def is_of_windows(self) -> bool:
        """Whether the query differs from others of its shape in windows and samples only."""
        return self.usual is not None and self.usual.is_of_windows

    @property
    def usual_name(self) -> str | None:
        """The name of the query's group among queries that begin when it does."""
        return None if self.usual is None else f"~{self.usual.shape[:12]}@{self.epoch}"

    @property
    def late_name(self) -> str | None:
        """The name of the query's group among late-comers."""
        return None if self.late is None else f"~{self.late.shape[:12]}@{LATE}"

    @property
    def names(self) -> list[str]:
        """The groups the query may belong to, that of late-comers first."""
        return [name for name in (self.late_name, self.usual_name) if name is not None]

    def lifted(self, name: str) -> Lifted:
        """The shape by which the query belongs to a group."""
        found = self.late if name == self.late_name else self.usual
        if found is None or name not in self.names:
            raise StateError(f"internal: a query does not belong to {name}")
        return found


def _passes(plan: Node) -> bool:
    """Whether what was in a plan's windows leaves them sometime, whatever comes."""
    for node in plan.walk():
        if isinstance(node, RowsWindow) and (node.partition or node.slide_rows is not None):
            return False
        if isinstance(node, RangeWindow) and node.length_ticks is None:
            return False
    return True


class Groups:
    """All groups, and the queries of shapes that stand alone."""

    def __init__(self) -> None:
        self.members: dict[str, Members] = {}
        """The constants of each group's queries, by its name, for its operators."""
        self._groups: dict[str, Group] = {}
        self._of: dict[str, tuple[Group, int]] = {}
        self._alone: dict[str, Shapes] = {}
        self._plans: Counter[tuple[Node | None, int]] = Counter()
        """How many queries standing alone have a plan that began at a time."""
        self._outlines: Counter[int] = Counter()
        """How many groups, and queries standing alone, have plans of an outline."""
        self._unlifted: dict[int, dict[str, Shapes]] = {}
        """By outline the queries standing alone that nobody was compared with yet."""
        self._waiting: dict[str, dict[str, Shapes]] = {}
        """The others, by the groups they would belong to."""

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    # -- where a query belongs -------------------------------------------------------------

    def shapes(self, plans: QueryPlans, epoch: int, inputs: Inputs) -> Shapes:
        """The shapes of a plan for a query that begins now."""
        plan = plans.optimised if plans.shaped is None else plans.shaped.plan
        is_late = epoch > 0 and _has_relations_behind(plan, inputs.since_of(epoch), inputs)
        return Shapes(plans, epoch, is_late)

    def choose(self, shapes: Shapes, sharing: str) -> str | None:
        """The group for a query, there already or to be founded; None: it stands alone.

        Where nobody has a plan like it nothing is lifted: a program of different queries pays for
        an outline of each.
        """
        is_like = sharing == "on" or self._outlines[shapes.outline]
        if sharing == "off" or not is_like:
            return None
        for query, each in self._unlifted.pop(shapes.outline, {}).items():
            for name in each.names:
                self._waiting.setdefault(name, {})[query] = each
        if sharing != "on" and shapes.is_of_windows and self._plans[shapes.whole]:
            return None  # all its operators run already
        there = [name for name in shapes.names if name in self._groups]
        if there:
            return there[0]
        wanted = [name for name in shapes.names if sharing == "on" or name in self._waiting]
        return wanted[0] if wanted else None

    def stands_alone(self, query: str, shapes: Shapes) -> None:
        """A query runs by itself; another one of its shape founds a group."""
        if shapes.plans is not None:
            self._alone[query.lower()] = shapes
            self._plans[shapes.whole] += 1
            self._outlines[shapes.outline] += 1
            self._unlifted.setdefault(shapes.outline, {})[query.lower()] = shapes

    def how_alone(self, query: str) -> Shapes | None:
        """The shapes of a query that runs by itself, if others of its shape may join it."""
        return self._alone.get(query.lower())

    def alone(self, name: str, epoch: int) -> dict[str, Shapes]:
        """The queries standing alone, begun then, that would belong to a group.

        In the order of their names: which came first is not known after a restart.
        """
        waiting = sorted(self._waiting.get(name, {}).items())
        return {query: each for query, each in waiting if each.epoch == epoch}

    # -- joining and leaving ---------------------------------------------------------------

    def get(self, name: str) -> Group | None:
        """The group of a name, if it was founded."""
        return self._groups.get(name)

    def of(self, query: str) -> Group | None:
        """The group that a query belongs to."""
        found = self._of.get(query.lower())
        return None if found is None else found[0]

    def found(
        self, name: str, plan: Node, lifted: Lifted, epoch: int, log: GroupLog, add: AddOperators
    ) -> Group:
        """A new group of queries like one with this plan; its operators are told of its members."""
        is_late = is_of_late(name)
        self.members[name] = Members(lifted.constants, lifted.streams if is_late else ())
        group = Group(name, outline(plan), epoch, is_late, self.members[name], log, add())
        self._groups[name] = group
        self._outlines[group.outline] += 1
        return group

    def join(
        self,
        group: Group,
        entry: QueryEntry,
        lifted: Lifted,
        since: dict[str, int],
        number: int | None = None,
    ) -> GroupSlice:
        """A query belongs to a group from now on; what it has of the group's results."""
        if number is None:
            number, group.next_number = group.next_number, group.next_number + 1
        if group.is_late:
            queues = {stream: stream_queue(stream) for stream in lifted.streams}
            group.since[number] = {q: since.get(q, BEGINNING - 1) for q in queues.values()}
            since = {stream: group.since[number][queue] for stream, queue in queues.items()}
        group.members.add(number, lifted.constants, since)
        group.queries[number], group.weights[number] = entry.name, entry.weight
        group.weight += entry.weight
        group.log.living.add(number)
        self._of[entry.name.lower()] = group, number
        return GroupSlice(group.log, number)

    def leave(self, query: str) -> Group | None:
        """A query stands still or is dropped; the group that nobody is left in, if it was that."""
        key = query.lower()
        alone = self._alone.pop(key, None)
        if alone is not None:
            self._plans[alone.whole] -= 1
            if not self._plans[alone.whole]:
                del self._plans[alone.whole]
            self._outlines[alone.outline] -= 1
            if self._unlifted.get(alone.outline, {}).pop(key, None) is None:
                self._no_longer_waits(key, alone)
        found = self._of.pop(key, None)
        if found is None:
            return None
        group, number = found
        group.members.remove(number)
        group.since.pop(number, None)
        group.weight -= group.weights.pop(number)
        del group.queries[number]
        group.log.leave_it(number)
        group.left += 1
        if group.queries:
            return None
        del self._groups[group.name], self.members[group.name]
        self._outlines[group.outline] -= 1
        return group

    def _no_longer_waits(self, query: str, shapes: Shapes) -> None:
        for name in shapes.names:
            self._waiting[name].pop(query)
            if not self._waiting[name]:
                del self._waiting[name]

    def weigh(self, query: str, weight: float) -> Group | None:
        """A query's weight has changed: the group whose own has, therefore."""
        found = self._of.get(query.lower())
        if found is None:
            return None
        group, number = found
        group.weight += weight - group.weights[number]
        group.weights[number] = weight
        return group

    def expanded(self, names: list[str]) -> list[str]:
        """The names of queries, with the queries of each group instead of its own name."""
        found: dict[str, None] = {}
        for name in names:
            group = self._groups.get(name)
            found |= dict.fromkeys([name] if group is None else group.queries.values())
        return list(found)

    def told(self, names: list[str]) -> str:
        """Names of queries as people read them: of a group the number and some of its queries."""
        return ", ".join(self._told(name) for name in names)

    def _told(self, name: str) -> str:
        group = self._groups.get(name)
        return name if group is None else some_of(group.queries.values())

    # -- after a restart -------------------------------------------------------------------

    def is_late_alone(self, query: str) -> bool | None:
        """Whether a query that stands alone may belong to a group whose queries began at different
        times; None if it may belong to no group."""
        alone = self._alone.get(query.lower())
        return None if alone is None else alone.is_late

    def lifted_for(self, name: str, plans: QueryPlans) -> Lifted:
        """The shape of a plan by which a query belongs to a group, with its own words."""
        lifted = lift(plans.optimised, can_lower, is_late=is_of_late(name))
        if lifted is None:
            raise StateError(f"internal: a query does not belong to {name}")
        return lifted

    def membership(self, query: str) -> Membership | None:
        """Which of a group's queries one is, as plain data."""
        found = self._of.get(query.lower())
        if found is None:
            return None
        group, number = found
        return {
            "group": group.name,
            "number": number,
            "next": group.next_number,
            "since": group.since.get(number, {}),
        }


def is_of_late(group: str) -> bool:
    """Whether the queries of a group began at different times, by its name."""
    return group.endswith(LATE)


def some_of(queries: Collection[str]) -> str:
    """The names of the first of some queries, and how many there are beside them."""
    some = list(itertools.islice(queries, MOST_TOLD))
    rest = len(queries) - len(some)
    return f"{', '.join(some)}{f' and {rest:,} more' if rest else ''}"


def _has_relations_behind(plan: Node, since: dict[str, int], inputs: Inputs) -> bool:
    """Whether a plan begins to read its streams behind all that has happened to its relations.

    Then rows that were there before are the same to it as rows that were there from the beginning.
    """
    nodes = list(plan.walk())
    streams = [
        since.get(stream_queue(node.name), BEGINNING - 1)
        for node in nodes
        if isinstance(node, StreamScan)
    ]
    relations = [
        inputs.relations[node.name.lower()].queue.heartbeat
        for node in nodes
        if isinstance(node, RelationScan)
    ]
    return bool(streams) and max(relations, default=BEGINNING - 1) <= min(streams)
