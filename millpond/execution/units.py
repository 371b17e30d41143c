"""Virtual operators: one or several operators whose steps are prepared, executed and committed as
one.

The queue between two members keeps what windows and later ends still need, and never has a backlog:
a step executes the members one after the other (`unit_steps.py`). So where queues stand can change
between any two steps, and no answer depends on it. A member that was decoupled before and is behind
catches up in the next step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from millpond.execution.batches import Experience
from millpond.execution.costs import Line
from millpond.execution.operators.running import OperatorStep, RunningOperator
from millpond.identities import OperatorId, QueueId
from millpond.planning.graph import operators_in
from millpond.planning.physical import OutputOperator
from millpond.schema import FOREVER
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader, Remains


class Unit:
    """A virtual operator; its members come upstream first, and it is called after the first."""

    def __init__(self, members: Sequence[RunningOperator], queues: Mapping[QueueId, Queue]) -> None:
        self.members = tuple(members)
        self.identity = self.members[0].identity
        self.identities = frozenset(member.identity for member in members)
        self.through = FOREVER
        """It is to go no further for now."""
        self._queues = queues
        self.entries = [
            queue
            for member in members
            for queue, _ in member.subscriptions
            if queue.name not in self.identities
        ]
        """What it reads of others."""

    @property
    def keeps_state(self) -> bool:
        """Whether a step depends on the one before it in more than its queues."""
        return len(self.members) > 1 or self.members[0].keeps_state

    @property
    def horizon(self) -> int:
        """The time up to which the unit's inputs are complete, and it is to go."""
        horizon = self.through
        for queue in self.entries:
            horizon = min(horizon, queue.heartbeat)
        return horizon

    @property
    def claimed(self) -> int:
        """The time up to which all members have prepared steps."""
        return min(member.claimed for member in self.members)

    @property
    def cursor(self) -> int:
        """The time up to which all members have committed steps."""
        return min(member.cursor for member in self.members)

    def waiting(self, until: int) -> int:
        """About how many rows wait for its members."""
        rows = 0
        for member in self.members:
            rows += member.waiting(member.claimed, until)
        return rows

    @property
    def oldest_arrival(self) -> float:
        """When the oldest page that waits has come; infinity if none does."""
        return min(
            queue.oldest_arrival(member.claimed)
            for member in self.members
            for queue, _ in member.subscriptions
        )

    def has_work(self, until: int) -> bool:
        """Whether a step up to ``until`` could put anything out."""
        return any(member.has_work(until) for member in self.members)

    def limited(self, most: int) -> int:
        """The latest time up to which no member reads more than about ``most`` rows."""
        horizon = self.horizon
        behind = (member for member in self.members if member.claimed < horizon)
        return min(member.limited(horizon, most) for member in behind)

    def experience(self, rows: int, read: Callable[[OperatorId], int]) -> Experience:
        """What is known of steps of so many rows, of which each member gets the part that it has
        had of all rows so far; ``read`` says how many it has read."""
        known = [(member, member.experience(rows)) for member in self.members]
        most = max(read(member.identity) for member in self.members if self._reads_others(member))
        step, row = 0.0, 0.0
        for member, each in known:
            share = read(member.identity) / most if most else 1.0
            step, row = step + each.line.step, row + share * each.line.row
        return Experience(Line(step, row), max(each.known_rows for _, each in known))

    def _reads_others(self, member: RunningOperator) -> bool:
        return any(queue.name not in self.identities for queue, _ in member.subscriptions)

    def prepare(self, until: int) -> list[OperatorStep]:
        """Claims the time up to ``until``, of all members that are not there yet."""
        is_one = len(self.members) == 1
        steps = []
        for member in self.members:
            if member.claimed < until:
                is_due = is_one or member.has_work(until)
                step = member.prepare(until)
                step.is_due, step.remains = is_due, self.remains(member)
                steps.append(step)
        return steps

    def remains(self, member: RunningOperator) -> Remains:
        """What of a member's output somebody needs once the other members have read it."""
        if isinstance(member.operator, OutputOperator):
            return Remains.ALL
        return self._queues[member.identity].remains(self._readers(member.identity))

    def _readers(self, identity: OperatorId) -> set[Reader]:
        return {
            reader
            for member in self.members
            for queue, reader in member.subscriptions
            if queue.name == identity
        }


class Units:
    """The units there are; operators change them when none of those concerned is at work."""

    def __init__(self, queues: Mapping[QueueId, Queue]) -> None:
        self.of: dict[OperatorId, Unit] = {}
        """The unit of each operator."""
        self._queues = queues
        self.to_change: set[OperatorId] = set()
        """The operators of which it is to be found out with which others they are a unit."""
        self._wanted: dict[OperatorId, tuple[RunningOperator, ...]] = {}
        self._awaited: set[OperatorId] = set()

    def __iter__(self) -> Iterator[Unit]:
        return iter(dict.fromkeys(self.of.values()))

    def add(self, running: RunningOperator) -> None:
        """A new operator stands alone at first."""
        self.to_change.add(running.identity)
        self._form((running,))

    def remove(self, identity: OperatorId) -> None:
        """An operator goes; the others of its unit stand alone until they are wanted together."""
        left = [each for each in self.of[identity].members if each.identity != identity]
        near = self.near(identity) - {identity}
        del self.of[identity]
        self._wanted.pop(identity, None)
        self.to_change |= near
        self._awaited.discard(identity)
        self.to_change.discard(identity)
        self._alone(left)

    def take_apart(self, identity: OperatorId) -> None:
        """The members of a unit stand alone until they are wanted together."""
        self._alone(self.of[identity].members)

    def _alone(self, members: Iterable[RunningOperator]) -> None:
        for each in members:
            self.to_change.add(each.identity)
            self._form((each,))

    def want(self, groups: Iterable[tuple[RunningOperator, ...]]) -> None:
        """From now on these are to be units, and the others as before."""
        for group in groups:
            identities = {each.identity for each in group}
            self._wanted |= dict.fromkeys(identities, group)
            self._awaited -= identities
            self._awaited |= {i for i in identities if self.of[i].members != group}
            self.to_change -= identities

    def change(self, is_busy: Callable[[Unit], bool]) -> bool:
        """Forms the units that are wanted, as far as nobody concerned is at work; whether any.

        Neither those of before nor those that are wanted read each other in a circle, but some of
        these and some of those may: they wait for the others.
        """
        concerned, found = list[set[OperatorId]](), set[OperatorId]()
        for identity in sorted(self._awaited):
            if identity not in found:
                concerned.append(self._concerned(identity))
                found |= concerned[-1]
        free = [
            identities
            for identities in concerned
            if not any(is_busy(self.of[each]) for each in identities)
        ]
        if free and self._formed(set().union(*free), in_any_case=len(free) == len(concerned)):
            return True
        return any(list(map(self._formed, free)))

    def _formed(self, identities: set[OperatorId], in_any_case: bool = False) -> bool:
        """Forms the units that operators are to be, unless one would read what is behind it."""
        before = dict.fromkeys(self.of[each] for each in sorted(identities))
        for group in {self._wanted[each] for each in identities}:
            self._form(group)
        formed = dict.fromkeys(self.of[each] for each in sorted(identities))
        if not in_any_case and any(map(self._is_in_circle, formed)):
            for unit in before:
                self.of |= dict.fromkeys(unit.identities, unit)
            return False
        self._awaited -= identities
        return True

    def _is_in_circle(self, unit: Unit) -> bool:
        """Whether a unit reads what it has put out, by way of others."""
        return unit in self._above(unit)

    def are_above(self, some: Iterable[RunningOperator], other: RunningOperator) -> bool:
        """Whether the unit of an operator depends on a unit of some others: these cannot read it
        without a circle, as long as units are what they are."""
        own = self.of[other.identity]
        units = {self.of[each.identity] for each in some} - {own}
        return not units.isdisjoint(self._above(own))

    def _above(self, unit: Unit) -> set[Unit]:
        """The units that a unit reads, by way of others too."""
        found, waiting = set[Unit](), [unit]
        while waiting:
            read = operators_in(queue.name for queue in waiting.pop().entries)
            new = {self.of[each] for each in read if each in self.of} - found
            found |= new
            waiting += new
        return found

    def near(self, identity: OperatorId) -> set[OperatorId]:
        """The operators that are a unit with one, or are to be, and are there."""
        wanted = {each.identity for each in self._wanted.get(identity, ())}
        return (wanted & self.of.keys()) | self.of[identity].identities

    def wants(self, members: tuple[OperatorId, ...]) -> bool:
        """Whether these operators are to be a unit, and no others with them."""
        wanted = self._wanted.get(members[0], ())
        return members == tuple(each.identity for each in wanted)

    def is_held(self, unit: Unit) -> bool:
        """Whether a unit is to change, and so begins nothing new."""
        return not self._awaited.isdisjoint(unit.identities)

    def _concerned(self, identity: OperatorId) -> set[OperatorId]:
        """The operators that share a unit with each other, now or as wanted."""
        found, waiting = {identity}, [identity]
        while waiting:
            each = waiting.pop()
            near = self.of[each].identities | {m.identity for m in self._wanted[each]}
            waiting += near - found
            found |= near
        return found

    def _form(self, members: tuple[RunningOperator, ...]) -> None:
        unit = Unit(members, self._queues)
        for member in members:
            self.of[member.identity] = unit
