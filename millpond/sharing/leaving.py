"""Dropping constraints on which queries rely: what they forbid still, until nothing is missing.

Rows that a constraint has freed would meet tuples that it forbids. So these stay forbidden until
the rows would have ended in their windows, or until another constraint forbids as much. Where that
is never, the constraint cannot be dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millpond.catalog import Constraint, StreamEntry
from millpond.errors import StateError
from millpond.identities import OperatorId, QueueId, StreamId
from millpond.intake.orderings import Ordering
from millpond.intake.remnants import Remnant
from millpond.intake.transitions import ConstraintLeft
from millpond.planning.bounded import OF_VALUES, Ageing, AnyFreeing, Freeing, freeings
from millpond.planning.graph import Graph
from millpond.planning.lasting import last_end
from millpond.planning.physical import JoinOperator
from millpond.schema import FOREVER
from millpond.sharing.ground import Ground
from millpond.sharing.relying import Relying
from millpond.spelling import listed
from millpond.storage.transitions import Transition

if TYPE_CHECKING:
    from millpond.execution.runtime import EngineRuntime


@dataclass(frozen=True)
class _End:
    """How long what an operator has freed would be missing: up to a time, or until another
    constraint forbids as much."""

    until: int = FOREVER
    by: str = ""


class Leaving:
    """Knows what dropped constraints forbid still."""

    def __init__(
        self,
        ground: Ground,
        graph: Graph,
        relying: Relying,
        runtime: Callable[[], EngineRuntime | None],
    ) -> None:
        self._ground, self._graph, self._relying = ground, graph, relying
        self._runtime = runtime

    def decided(self, entry: StreamEntry, name: str) -> list[Transition]:
        """What is left of a constraint that is about to be dropped; refused if rows that it has
        freed would be missing for ever."""
        constraint = next(c for c in entry.constraints if c.name.lower() == name.lower())
        self._refuse_awaited(entry, constraint)
        operators = (i for i in self._graph.operators if self._freeings(entry, constraint, i))
        freed = [each for each in operators if self._has_freed(each)]
        ends = {each: self._end(entry, constraint, each) for each in freed}
        for_ever = [each for each, end in ends.items() if end == _End()]
        if for_ever:
            queries = self._relying.asked_by(for_ever)
            raise StateError(
                f"constraint {constraint.name} of stream {entry.name} has freed rows of "
                f"{listed(queries)} that no window lets go, which would be missing for ever; DROP "
                "these first"
            )
        return list(self._left(entry, constraint, ends))

    def _refuse_awaited(self, entry: StreamEntry, constraint: Constraint) -> None:
        """Refuses to drop what another one that was dropped waits for."""
        for intake in self._ground.inputs.streams.values():
            for name, (remnant, owner) in intake.remnants.items():
                is_owner = owner.entry.identity == entry.identity
                if is_owner and remnant.by == constraint.name and not intake.is_over(name):
                    raise StateError(
                        f"constraint {constraint.name} of stream {entry.name} is to forbid what "
                        f"{remnant.dropped.name} did, which was dropped; DROP it once SHOW "
                        "CONSTRAINTS has that no more"
                    )

    def _has_freed(self, identity: OperatorId) -> bool:
        """Whether rows of an operator were freed so far, or may be by a step under way."""
        runtime = self._runtime()
        running = None if runtime is None else runtime.running.get(identity)
        if runtime is None or running is None:
            return False
        is_at_work = runtime.under_way.is_at_work(runtime.operators.units.of[identity])
        return is_at_work or getattr(running, "freed_rows", 0) > 0

    def _end(self, entry: StreamEntry, constraint: Constraint, identity: OperatorId) -> _End:
        """How long what an operator has freed by a constraint would be missing."""
        by = self._replacing(entry, constraint, identity)
        if by is not None:
            return _End(by=by.name)
        operator, fragments = self._graph.operators[identity], self._graph.fragments_of(identity)
        if not isinstance(operator, JoinOperator):
            return _End()
        begun = min(self._heartbeats(identity), default=0)  # no step has come further
        sides = {each.side for each in self._freeings(entry, constraint, identity)}
        return _End(max(last_end(self._graph, fragments[side], begun) for side in sides))

    def _freeings(
        self, entry: StreamEntry, constraint: Constraint, identity: OperatorId
    ) -> list[AnyFreeing]:
        found = freeings(self._graph, identity, self._known)
        return [each for each in found if each.relies_on(entry.identity, constraint)]

    @property
    def _known(self) -> dict[StreamId, tuple[Constraint, ...]]:
        """The constraints of streams, also those that were dropped and forbid something still:
        rows may have been freed by several of them together."""
        known = self._relying.known
        for intake in self._ground.inputs.streams.values():
            for remnant, owner in intake.left:
                stream = owner.entry.identity
                known[stream] = (*known.get(stream, ()), remnant.dropped)
        return known

    def _heartbeats(self, identity: OperatorId) -> Iterator[int]:
        """How far the streams below an operator are."""
        for each in self._graph.upstream(identity):
            for queue in self._graph.queues_of(each):
                if queue.stream is not None:
                    yield self._ground.inputs.queues[QueueId(queue)].heartbeat

    def _replacing(
        self, entry: StreamEntry, constraint: Constraint, identity: OperatorId
    ) -> Constraint | None:
        """Another constraint by which all that an operator frees by one would be freed, later."""
        others = [
            each
            for each in entry.constraints
            if _is_like(each, constraint) and self._is_asked_as_long(entry, each, constraint)
        ]
        is_of_values = constraint.kind in OF_VALUES  # then what references something still does
        still = [c for c in entry.constraints if is_of_values and c.kind == "references"]
        known = self._relying.known | {entry.identity: (*others, *still)}
        left = list(freeings(self._graph, identity, known))
        found = [
            _by(each, left, entry.identity, others)
            for each in self._freeings(entry, constraint, identity)
        ]
        widest = [each for each in found if each is not None]
        if len(widest) < len(found):
            return None
        seen = self._ground.inputs.streams[entry.identity].orderings
        return max(widest, key=lambda each: seen[each.name].widened.within)

    def _is_asked_as_long(
        self, entry: StreamEntry, other: Constraint, constraint: Constraint
    ) -> bool:
        """Whether another constraint knows of all tuples of which one does, or will know of
        enough of them."""
        seen = self._ground.inputs.streams[entry.identity].orderings[other.name]
        if isinstance(seen, Ordering) or seen.since is None:
            return True
        return entry.constraints.index(other) < entry.constraints.index(constraint)

    def _left(
        self, entry: StreamEntry, constraint: Constraint, ends: dict[OperatorId, _End]
    ) -> Iterator[ConstraintLeft]:
        """What is forbidden of tuples of the stream, or of the one that it references."""
        inputs = self._ground.inputs
        least, values, reach = inputs.streams[entry.identity].forbidden_by(constraint.name)
        asked = StreamId(constraint.target) if constraint.target else entry.identity
        if least is None and not values:
            return
        columns = constraint.target_columns if constraint.target else constraint.columns
        taken = set(inputs.streams[asked].remnants)
        for end in _ends(ends.values()):
            operators = tuple(each for each in ends if ends[each].by == end.by)
            name = _new_name(entry, constraint, taken)
            taken.add(name)
            about = name, entry.name, constraint, columns
            remnant = Remnant(*about, least, values, end.until, end.by, reach, operators)
            yield ConstraintLeft(asked, remnant)


def _ends(ends: Iterable[_End]) -> list[_End]:
    """The last of those at a time, and each other one."""
    known = list(ends)
    times = [end.until for end in known if not end.by]
    others = dict.fromkeys(end for end in known if end.by)
    return [*(_End(until=max(times)) for _ in times[:1]), *others]


def _new_name(entry: StreamEntry, constraint: Constraint, taken: set[str]) -> str:
    """What is left of a constraint has its name, and a number if it has that already."""
    own = f"{entry.name}.{constraint.name}" if constraint.target else constraint.name
    names = (f"{own} (dropped{number})" for number in ("", *(f" {n}" for n in range(2, 10**6))))
    return next(name for name in names if name not in taken)


def _is_like(other: Constraint, constraint: Constraint) -> bool:
    """Whether another constraint promises the same kind of thing, in the same unit."""
    if other.name == constraint.name or other.is_of_rows != constraint.is_of_rows:
        return False
    is_of_column = other.column == constraint.column or other.kind not in ("ordered", "clustered")
    is_alike = (other.kind, other.target.lower()) == (constraint.kind, constraint.target.lower())
    return is_alike and is_of_column


def _by(
    freeing: AnyFreeing,
    left: Sequence[AnyFreeing],
    stream: StreamId,
    others: Sequence[Constraint],
) -> Constraint | None:
    """The constraint by which the same is freed, if there is one."""
    for each in left:
        is_same = type(each) is type(freeing) and each.side == freeing.side
        if isinstance(each, Freeing) and isinstance(freeing, Freeing):
            is_same = each == freeing
        if is_same:
            found = [other for other in others if each.relies_on(stream, other)]
            if (found and not isinstance(each, Ageing)) or len(found) == 1:
                return found[0]
    return None
