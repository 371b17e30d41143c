"""Operators of queries that began at different times become one, once they hold the same.

Two that do the same with the same queues, both settled (`planning/convergence.py`) and both at one
time, put out the same from then on, and so have left the same to end or to be taken back. Those who
read the one that came later read the other one from there on; it goes, with what it kept. What they
read before they read no more, so the queue must hold whatever of it they will read again: it does
if somebody of the same kind reads it already. In a stream that must be later than it has settled:
what is still in a reader's window is the same too. A copy of a relation that was made for
late-comers goes the same way.
"""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from millpond.execution.operators.running import RunningOperator
from millpond.execution.running_operators import RunningOperators
from millpond.execution.units import Unit
from millpond.identities import BY_NUMBER, OperatorId, QueueId
from millpond.kernels.columns import integers
from millpond.planning.convergence import Merge, begins_empty, is_sampled
from millpond.planning.graph import operators_in
from millpond.planning.physical import RowsWindowOperator
from millpond.schema import BEGINNING, FOREVER
from millpond.storage.bucketed import PairedState

IsBusy = Callable[[Unit], bool]
_Pair = tuple[OperatorId, OperatorId]


class Converging:
    """Finds operators, and copies of relations, that can become one with others."""

    def __init__(self, operators: RunningOperators) -> None:
        self._operators = operators
        self._graph = operators.graph
        self._queues = operators.queues
        self._counted: dict[OperatorId, int] = {}
        """How many elements Rows windows had seen when what they read was that of others."""
        self._aimed: dict[_Pair, list[Unit]] = {}
        """Pairs that could be one but for their times, with those that wait for others."""

    def due(self, changed: Iterable[OperatorId], is_busy: IsBusy) -> Iterator[Merge]:
        """What can be done now, concerning some operators of which something has changed; each is
        to be done before the next one is asked for."""
        self._let_go()
        if not self._graph.pairs and not self._graph.copied:
            return
        near: dict[QueueId, None] = dict.fromkeys(
            each for name in changed for each in (name, *self._graph.queues_of(name))
        )
        for copy in [name for name in near if name in self._graph.copied]:
            yield from self._copy(copy, is_busy)
        for first, later in dict.fromkeys((*self._aimed, *self._pairs(operators_in(near)))):
            if self._are_equal(first, later):
                yield from self._merges(first, later, is_busy)

    def _pairs(self, names: Iterable[OperatorId]) -> Iterator[_Pair]:
        """Pairs of operators that do the same: the first of them and each other one."""
        seen: set[OperatorId] = set()
        for name in names:
            if name in self._graph.operators and name not in seen:
                twins = sorted(self._graph.twins(name), key=BY_NUMBER)
                seen.update(twins)
                yield from ((twins[0], later) for later in twins[1:])

    # -- relations -------------------------------------------------------------------------

    def _copy(self, copy: QueueId, is_busy: IsBusy) -> Iterator[Merge]:
        queue, settled = self._queues.get(copy.original), self._graph.copied[copy]
        readers = self._operators.readers(copy)
        if queue is None or not readers or not self._can_move(readers, copy):
            return
        times = [reader.cursor for reader in readers]
        is_settled = min(times) >= max(settled, queue.base_time, BEGINNING)
        if is_settled and not any(map(self._is_at_work(is_busy), readers)):
            yield Merge(copy, queue.name, max(times))

    # -- operators -------------------------------------------------------------------------

    def _are_equal(self, first: OperatorId, later: OperatorId) -> bool:
        operators = self._graph.operators
        are_there = first in operators and later in operators
        return are_there and operators[first] == operators[later]

    def _merges(self, first: OperatorId, later: OperatorId, is_busy: IsBusy) -> Iterator[Merge]:
        """What makes the one that came later one with the first, if it can be done now."""
        running, readers = self._operators.running, self._operators.readers(later)
        concerned = [running[first], running[later], *readers]
        at = max(each.claimed for each in concerned)
        settled, queue = max(map(self._settled, (first, later))), self._queues[first]
        if not readers or at < BEGINNING or settled > at:
            return
        wanted = [r for reader in readers for q, r in reader.subscriptions if q.name == later]
        is_same = not queue.is_stream or all(r.retention.over(at) >= settled for r in wanted)
        there = [
            reader
            for each in self._operators.readers(first)
            for read, reader in each.subscriptions
            if read is queue
        ]
        is_served = is_same and all(queue.serves(reader, at, there) for reader in wanted)
        if not is_served or not self._can_move(concerned, later):
            return
        if self._operators.units.are_above(readers, running[first]):
            return  # until units are others
        if any(each.claimed < at for each in concerned):
            self._aim((first, later), concerned, at, is_busy)
        elif not any(map(self._is_at_work(is_busy), concerned)):
            yield Merge(later, first, at)

    def _settled(self, identity: OperatorId) -> int:
        known = self._graph.settled.get(identity, FOREVER)
        if known < FOREVER or identity not in self._graph.counting:
            return known
        running = self._operators.running[identity]
        operator = running.operator
        is_early = running.cursor < self._graph.counting[identity]
        if is_early or not isinstance(operator, RowsWindowOperator):
            return FOREVER
        if not isinstance(operator.rows, int):
            return FOREVER
        count = _elements(running)
        begin = 0 if begins_empty(operator) else self._counted.setdefault(identity, count)
        if count - begin < operator.rows:
            return FOREVER
        self._counted.pop(identity, None)
        self._graph.settled[identity] = running.cursor
        return running.cursor

    # -- who is concerned ------------------------------------------------------------------

    def _can_move(self, concerned: list[RunningOperator], queue: QueueId) -> bool:
        """Whether nothing of them is cut off, and no name of a queue matters."""
        return not any(
            each.identity in self._graph.fragments
            or each.identity.owner != each.identity
            or each.past
            or is_sampled(each.operator, queue)
            for each in concerned
        )

    def _is_at_work(self, is_busy: IsBusy) -> Callable[[RunningOperator], bool]:
        return lambda each: (
            each.claimed != each.cursor or is_busy(self._operators.units.of[each.identity])
        )

    # -- coming to one time ----------------------------------------------------------------

    @property
    def waiting(self) -> set[OperatorId]:
        """The operators that wait for their twins, or their twins for them."""
        return {name for units in self._aimed.values() for u in units for name in u.identities}

    def _aim(self, pair: _Pair, concerned: list[RunningOperator], at: int, is_busy: IsBusy) -> None:
        """Has those who are further wait for the others, while these are on their way and nothing
        but themselves can hold them up."""
        units = list({self._operators.units.of[each.identity] for each in concerned})
        inside = {name for unit in units for name in unit.identities}
        entries = (queue for unit in units for queue in unit.entries if queue.name not in inside)
        behind = [unit for unit in units if unit.claimed < at]
        is_moving = any(is_busy(unit) or unit.has_work(min(unit.horizon, at)) for unit in behind)
        if is_moving and all(queue.heartbeat >= at for queue in entries):
            self._aimed[pair] = units
            for unit in units:
                unit.through = min(unit.through, at)

    def _let_go(self) -> None:
        """Lets no operator wait, until it is said again."""
        for units in self._aimed.values():
            for unit in units:
                unit.through = FOREVER
        self._aimed = {pair: [] for pair in self._aimed if self._are_equal(*pair)}


def _elements(window: RunningOperator) -> int:
    """How many elements a Rows window without partitions has seen."""
    state = window.state
    if not isinstance(state, PairedState):
        return 0
    groups: pa.Table = state.left.everything()
    return int(integers(groups["_n"]).max(initial=0))
