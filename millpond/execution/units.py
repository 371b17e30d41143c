"""Virtual operators: one or several operators whose steps are prepared, executed and committed as
one.

The queue between two members keeps what windows and later ends still need, and never has a backlog:
a step executes the members upstream first in one thread, each reading what those before it have
just written, which nobody else has seen, beside the pages of its queues. So where queues stand can
change between any two steps, and no answer depends on it. A member that was decoupled before and
is behind catches up in the next step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from millpond.errors import StateError
from millpond.execution.batches import Experience
from millpond.execution.costs import Line
from millpond.execution.executor import Executors, Together
from millpond.execution.fragments import STARTED
from millpond.execution.operators.running import OperatorStep, RunningOperator
from millpond.execution.statistics import Statistics
from millpond.execution.steps import EXECUTORS, Outcome, is_due
from millpond.planning.physical import OutputOperator
from millpond.schema import FOREVER
from millpond.storage.origins import Origins, mixed
from millpond.storage.pages import Page
from millpond.storage.queues import Queue
from millpond.storage.readers import Reader, Remains


class Unit:
    """A virtual operator; its members come upstream first, and it is called after the first."""

    def __init__(self, members: Sequence[RunningOperator], queues: Mapping[str, Queue]) -> None:
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
        return min(*(queue.heartbeat for queue in self.entries), self.through)

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
        return sum(member.waiting(member.claimed, until) for member in self.members)

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

    def experience(self, rows: int) -> Experience:
        """What is known of steps of so many rows, as if each member read them all."""
        known = [member.experience(rows) for member in self.members]
        step, row = (sum(getattr(each.line, part) for each in known) for part in ("step", "row"))
        return Experience(Line(step, row), max(each.known_rows for each in known))

    def prepare(self, until: int) -> UnitStep:
        """Claims the time up to ``until``, of all members that are not there yet."""
        is_one = len(self.members) == 1
        steps = []
        for member in self.members:
            if member.claimed < until:
                is_due = is_one or member.has_work(until)
                step = member.prepare(until)
                step.is_due, step.remains = is_due, self.remains(member)
                steps.append(step)
        return UnitStep(self, steps)

    def remains(self, member: RunningOperator) -> Remains:
        """What of a member's output somebody needs once the other members have read it."""
        if isinstance(member.operator, OutputOperator):
            return Remains.ALL
        return self._queues[member.identity].remains(self._readers(member.identity))

    def _readers(self, identity: str) -> set[Reader]:
        return {
            reader
            for member in self.members
            for queue, reader in member.subscriptions
            if queue.name == identity
        }


class Units:
    """The units there are; operators change them when none of those concerned is at work."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self.of: dict[str, Unit] = {}
        """The unit of each operator."""
        self._queues = queues
        self.to_change: set[str] = set()
        """The operators of which it is to be found out with which others they are a unit."""
        self._wanted: dict[str, tuple[RunningOperator, ...]] = {}
        self._awaited: set[str] = set()

    def __iter__(self) -> Iterator[Unit]:
        return iter(dict.fromkeys(self.of.values()))

    def add(self, running: RunningOperator) -> None:
        """A new operator stands alone at first."""
        self.to_change.add(running.identity)
        self._form((running,))

    def remove(self, identity: str) -> None:
        """An operator goes; the others of its unit stand alone until they are wanted together."""
        left = [each for each in self.of[identity].members if each.identity != identity]
        near = self.near(identity) - {identity}
        del self.of[identity]
        self._wanted.pop(identity, None)
        self.to_change |= near
        self._awaited.discard(identity)
        self.to_change.discard(identity)
        self._alone(left)

    def take_apart(self, identity: str) -> None:
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
        concerned, found = list[set[str]](), set[str]()
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

    def _formed(self, identities: set[str], in_any_case: bool = False) -> bool:
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
            read = (self.of.get(queue.name) for queue in waiting.pop().entries)
            new = {each for each in read if each is not None} - found
            found |= new
            waiting += new
        return found

    def near(self, identity: str) -> set[str]:
        """The operators that are a unit with one, or are to be, and are there."""
        wanted = {each.identity for each in self._wanted.get(identity, ())}
        return (wanted & self.of.keys()) | self.of[identity].identities

    def wants(self, members: tuple[str, ...]) -> bool:
        """Whether these operators are to be a unit, and no others with them."""
        wanted = self._wanted.get(members[0], ())
        return members == tuple(each.identity for each in wanted)

    def is_held(self, unit: Unit) -> bool:
        """Whether a unit is to change, and so begins nothing new."""
        return not self._awaited.isdisjoint(unit.identities)

    def _concerned(self, identity: str) -> set[str]:
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


@dataclass(eq=False)
class UnitStep:
    """What the members of a unit are to do, in one transaction."""

    unit: Unit
    steps: list[OperatorStep]
    error: BaseException | None = None
    """Why it was not executed to its end."""
    lost: object | None = None
    """What has died while it was executed with it, if anything has."""
    repetitions: int = 0
    thread: int = 0
    """The thread of the strategy that it belongs to; 0: none in particular."""
    weight: float = 1.0
    """How much that thread counts."""
    tag: str | None = None
    """What its work is known by, to be cancelled."""
    is_executed: bool = False
    is_over: bool = False
    """Whether it was committed or thrown away."""
    _done: dict[str, OperatorStep] = field(default_factory=dict)
    _is_apart: bool = False
    """Whether one that failed together with others is looked for."""

    @property
    def is_finished(self) -> bool:
        """Whether it was executed, with or without success."""
        return self.is_executed or self.error is not None

    @property
    def seconds(self) -> float:
        """How long the unit's members have worked."""
        return sum(step.outcome.seconds for step in self.steps if step.outcome is not None)

    def seconds_here(self, statistics: Mapping[str, Statistics]) -> float:
        """How long it takes in the driver without Spark; infinity if that is not known."""
        seconds, made = 0.0, dict[str, float]()
        for step in self.steps:
            running = step.running
            rows = step.rows + sum(made.get(name, 0.0) for name in running.inputs)
            made[running.identity] = rows * statistics[running.identity].row_selectivity
            seconds += math.inf if step.place == EXECUTORS else running.seconds_here(rows)
        return seconds

    # -- execution -------------------------------------------------------------------------

    def execute(self, executors: Executors) -> None:
        """Does the work of all members; one that fails holds up those that read it, and no others.

        Raises what is not the failure of a step: the end of Spark, or of the execution.
        """
        self._done, self._is_apart = {}, False
        waiting = list(self.steps)
        while waiting:
            step = waiting.pop(0)
            try:
                ridden = self._execute(step, waiting, executors)
            except BaseException as error:
                step.error = error
                if not executors.is_own(error):
                    raise
                step.offenders = executors.offenders(self._now(step), error)
                waiting = _without_readers(step, waiting)
            else:
                waiting = [each for each in waiting if each not in ridden]
        self._find_published()

    def execute_at_once(self, executors: Executors) -> None:
        """Does the same in a thread that may not ask Spark; raises whatever goes wrong."""
        self._done = {}
        for step in self.steps:
            now = self._now(step)
            if now.place == EXECUTORS:
                raise StateError("internal: more rows came than were expected")
            self._take(step, now, executors.execute(now) if is_due(step, now) else None)
        self._find_published()

    def _now(self, step: OperatorStep) -> OperatorStep:
        """A member's step with what the members before it have put out."""
        now = step.behind(self._done, step.until)
        if now is not step:
            now.place = step.running.place_for(now.rows)
        return now

    def _execute(
        self, step: OperatorStep, others: list[OperatorStep], executors: Executors
    ) -> list[OperatorStep]:
        """Executes a member's step; the steps of others that were executed with it."""
        now = self._now(step)
        if not is_due(step, now):
            self._take(step, now, None)
            return []
        executor = executors.of(now)
        together = None if self._is_apart else executor.together(now, others, self._done)
        if together is not None:
            riding = {each.number for each in together.riders}
            ridden = [each for each in others if each.number in riding]
            if self._is_done([step, *ridden], together, executors):
                return ridden
        self._take(step, now, executors.execute(now))
        return []

    def _is_done(self, steps: list[OperatorStep], together: Together, executors: Executors) -> bool:
        """Whether all was done in one go; if one failed, which one is found out one by one."""
        try:
            outcomes = together.run()
        except Exception as error:
            if not executors.is_own(error):
                raise
            self._is_apart = True
            return False
        done = zip(steps, [together.first, *together.riders], outcomes, strict=True)
        names = {step.running.identity for step in steps}
        for step, now, outcome in done:
            self._take(step, now, outcome, names)
        return True

    def _take(
        self,
        step: OperatorStep,
        now: OperatorStep,
        outcome: Outcome | None,
        together: Container[str] = (),
    ) -> None:
        """Takes the outcome of a step; those ``together`` with it were executed in one go."""
        step.is_idle = outcome is None
        if outcome is not None and outcome.until is not None and outcome.until < now.until:
            now = now.shortened(outcome.until)
        step.outcome, step.rows = outcome or Outcome(None), now.rows
        parts = list(self._parts(now, together))
        step.outcome.taken = sum(rows for _, rows in parts)
        step.outcome.origins = mixed(parts)
        if step.outcome.output is not None:
            step.outcome.output.origins = step.outcome.origins
        if step.outcome.until is None and now.until < step.until:
            step.outcome.until = now.until
        self._done[step.running.identity] = step

    def _parts(self, now: OperatorStep, together: Container[str]) -> Iterator[tuple[Origins, int]]:
        """What starts in a step: when its tuples came, and how many rows they are."""
        for reading in now.readings:
            for spans in reading.spans.get(STARTED, ()):
                yield from ((span.origins, span.rows) for span in spans)
        for name in now.running.inputs:
            outcome = self._done[name].outcome if name in together else None
            if outcome is not None:
                yield outcome.origins, outcome.rows

    def _find_published(self) -> None:
        """Finds out what others will see of each member's output, and has it in the store."""
        for identity, step in self._done.items():
            if step.outcome is None or step.outcome.output is None:
                continue
            readers = [each for each in self._done.values() if identity in each.running.inputs]
            is_read = all(each.reached >= step.reached for each in readers)
            remains = step.remains if is_read else Remains.ALL
            step.published = _remaining(step.outcome.output, remains, step)
            if step.published is not None and step.running.around.store.is_durable:
                _ = step.published.names

    # -- the end ---------------------------------------------------------------------------

    def give_up_unless_whole(self) -> None:
        """Has nothing to be committed if the execution did not come to its end.

        Whoever it failed in has failed, or all of them if that is not known.
        """
        if self.error is None:
            return
        is_known = any(step.error is not None for step in self.steps)
        for step in self.steps:
            step.running.discard(step)
            step.error = step.error if is_known else self.error

    @property
    def is_outdated(self) -> bool:
        """Whether somebody has begun to read what the members put out among themselves."""
        return any(
            step.remains is not Remains.ALL and self.unit.remains(step.running) is Remains.ALL
            for step in self.steps
        )

    def discard(self) -> None:
        """Gives up what the execution has written, so that it can be repeated."""
        for step in self.steps:
            step.running.discard(step)
            step.error = None
        self.error, self.lost, self.is_executed = None, None, False

    def unclaim(self) -> None:
        """What it was to do is there to be done again."""
        for step in self.steps:
            step.running.unclaim(step)

    def throw_away(self) -> None:
        """Gives it up with all it has written; it is unclaimed already."""
        if not self.is_over:
            self.is_over = True
            for step in self.steps:
                step.running.discard(step)
                step.unpin()


def _without_readers(failed: OperatorStep, steps: list[OperatorStep]) -> list[OperatorStep]:
    """The steps, upstream first, that read nothing of one that has failed."""
    gone, kept = {failed.running.identity}, []
    for step in steps:
        if gone.intersection(step.running.inputs):
            gone.add(step.running.identity)
        else:
            kept.append(step)
    return kept


def _remaining(page: Page, remains: Remains, step: OperatorStep) -> Page | None:
    """What of a page is needed when its step is over."""
    if remains is Remains.ALL:
        return page
    if remains is Remains.NOTHING or page.last_end is None or page.last_end <= step.reached:
        return None
    if not page.is_in_driver:
        return page
    rest = Page.of(step.running.around.store, remains.of(page.table, step.reached))
    rest.origins = page.origins
    return rest
