"""Groups: queries of one shape that run as one plan over a table of their constants.

The first query of a shape runs by itself. When another one comes a group is founded, and from then
on a query of that shape is one row more; the first becomes one too if it began at the same time and
has put out nothing yet. Queries that begin before there is data are a group; those that begin while
data flows are another one, in which the times after which a query sees the streams are constants
like others.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace

from millpond.catalog import QueryEntry
from millpond.cql.node import Node
from millpond.delivery.group_results import GroupLog, GroupSlice
from millpond.identities import GroupId, OperatorId, QueryId, QueueId, StreamId
from millpond.kernels.living import Living
from millpond.sharing.arrangement import GroupFounded, Membership
from millpond.sharing.shapes import Shapes
from millpond.sharing.sketch import Sketch
from millpond.storage.members import Members

MOST_TOLD = 3
"""So many queries of a group are named."""

LEAST_SHARE = 4
"""One query for so many of a group may be gone before what it kept is freed: looking for that takes
time for all that the group keeps."""


@dataclass(eq=False)
class Group:
    """The queries of one shape."""

    name: GroupId
    outline: int
    epoch: int
    """When its operators began."""
    members: Members
    log: GroupLog
    output: OperatorId
    streams: tuple[str, ...]
    """The streams that the queries of a late group see after times of their own."""
    queries: dict[int, str] = field(default_factory=dict)
    """The names of the queries, by their numbers."""
    since: dict[int, dict[QueueId, int]] = field(default_factory=dict)
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
        return next(n for n, name in self.queries.items() if QueryId(name) == QueryId(query))


class Groups:
    """All groups, and the queries of shapes that stand alone."""

    def __init__(self) -> None:
        self.members: dict[str, Members] = {}
        """The constants of each group's queries, by its name, for its operators."""
        self._groups: dict[str, Group] = {}
        self._of: dict[QueryId, tuple[Group, int]] = {}
        self._alone: dict[QueryId, Shapes] = {}
        self._plans: Counter[tuple[Node | None, int]] = Counter()
        """How many queries standing alone have a plan that began at a time."""
        self._outlines: Counter[int] = Counter()
        """How many groups, and queries standing alone, have plans of an outline."""
        self._unlifted: dict[int, dict[QueryId, Shapes]] = {}
        """By outline the queries standing alone that nobody was compared with yet."""
        self._waiting: dict[GroupId, dict[QueryId, Shapes]] = {}
        """The others, by the groups they would belong to."""

    def __iter__(self) -> Iterator[Group]:
        return iter(self._groups.values())

    # -- where a query belongs -------------------------------------------------------------

    def arrange(self, sketch: Sketch) -> Sketch:
        """Decides which group a query belongs to, if any."""
        if sketch.is_anew:
            return sketch
        return replace(sketch, group=self.choose(sketch.shapes, sketch.sharing))

    def choose(self, shapes: Shapes, sharing: str) -> GroupId | None:
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

    def stands_alone(self, query: QueryId, shapes: Shapes) -> None:
        """A query runs by itself; another one of its shape founds a group."""
        if shapes.plans is not None:
            self._alone[query] = shapes
            self._plans[shapes.whole] += 1
            self._outlines[shapes.outline] += 1
            self._unlifted.setdefault(shapes.outline, {})[query] = shapes

    def how_alone(self, query: str) -> Shapes | None:
        """The shapes of a query that runs by itself, if others of its shape may join it."""
        return self._alone.get(QueryId(query))

    def alone(self, name: GroupId, epoch: int) -> dict[QueryId, Shapes]:
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
        found = self._of.get(QueryId(query))
        return None if found is None else found[0]

    def found(self, founded: GroupFounded, log: GroupLog) -> None:
        """A new group; its operators are told of its members."""
        name, streams = founded.name, founded.streams
        members = self.members[name] = Members(founded.like, streams)
        facts = founded.outline, founded.epoch, members, log, founded.output
        group = Group(name, *facts, streams, next_number=founded.next_number)
        self._groups[name] = group
        self._outlines[group.outline] += 1

    def join(self, entry: QueryEntry, member: Membership) -> GroupSlice:
        """A query belongs to a group from now on; what it has of the group's results."""
        group, number = self._groups[member.group], member.number
        group.next_number = max(group.next_number, number + 1)
        if group.name.is_late:
            group.since[number] = dict(member.since)
        seen = {each: member.since[StreamId(each).queue] for each in group.streams}
        group.members.add(number, member.constants, seen)
        group.queries[number], group.weights[number] = entry.name, entry.weight
        group.weight += entry.weight
        group.log.living.add(number)
        self._of[entry.identity] = group, number
        return GroupSlice(group.log, number)

    def leave(self, query: str, comes_to: str | None = None) -> Group | None:
        """A query stands still or is dropped; the group that nobody is left in, if it was that.

        One that the query ``comes_to`` again is there for it.
        """
        key = QueryId(query)
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
        if group.queries or group.name == comes_to:
            return None
        del self._groups[group.name], self.members[group.name]
        self._outlines[group.outline] -= 1
        return group

    def _no_longer_waits(self, query: QueryId, shapes: Shapes) -> None:
        for name in shapes.names:
            self._waiting[name].pop(query)
            if not self._waiting[name]:
                del self._waiting[name]

    def weigh(self, query: str, weight: float) -> Group | None:
        """A query's weight has changed: the group whose own has, therefore."""
        found = self._of.get(QueryId(query))
        if found is None:
            return None
        group, number = found
        group.weight += weight - group.weights[number]
        group.weights[number] = weight
        return group

    def expanded(self, names: Iterable[str]) -> list[str]:
        """The names of queries, with the queries of each group instead of its own name."""
        found: dict[str, None] = {}
        for name in names:
            group = self._groups.get(name)
            found |= dict.fromkeys([name] if group is None else group.queries.values())
        return list(found)

    def told(self, names: Iterable[str]) -> str:
        """Names of queries as people read them: of a group the number and some of its queries."""
        return ", ".join(self._told(name) for name in names)

    def _told(self, name: str) -> str:
        group = self._groups.get(name)
        return name if group is None else some_of(group.queries.values())

    def since_of(self, query: str) -> dict[QueueId, int]:
        """After which times a query of a late group sees its streams, by their queues."""
        found = self._of.get(QueryId(query))
        return {} if found is None else found[0].since.get(found[1], {})

    def is_late_alone(self, query: str) -> bool | None:
        """Whether a query that stands alone may belong to a group whose queries began at different
        times; None if it may belong to no group."""
        alone = self._alone.get(QueryId(query))
        return None if alone is None else alone.is_late


def some_of(queries: Collection[str]) -> str:
    """The names of the first of some queries, and how many there are beside them."""
    some = list(itertools.islice(queries, MOST_TOLD))
    rest = len(queries) - len(some)
    return f"{', '.join(some)}{f' and {rest:,} more' if rest else ''}"
