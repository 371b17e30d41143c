"""Operators come and go while the others run: started and stopped, cut, merged, purged."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from millpond.errors import StoreError
from millpond.execution.converging import Converging
from millpond.execution.cutting import Cutting
from millpond.execution.listener import Listener
from millpond.execution.regrouping import Regrouping
from millpond.execution.running_operators import RunningOperators
from millpond.execution.telling import Telling
from millpond.execution.under_way import UnderWay
from millpond.identities import OperatorId, QueueId
from millpond.kernels.living import Living
from millpond.planning.convergence import Merge, settle_again
from millpond.planning.graph import operators_in
from millpond.planning.parts import Cut


class GraphChanges:
    """Has what runs be what the graph says."""

    def __init__(
        self,
        operators: RunningOperators,
        listener: Listener,
        under_way: UnderWay,
        telling: Telling,
        cutting: Cutting,
        regrouping: Regrouping,
    ) -> None:
        self.converging = Converging(operators)
        """Operators of late-comers that can become one with others."""
        self._operators = operators
        self._graph = operators.graph
        self._listener = listener
        self._under_way = under_way
        self._telling = telling
        self._cutting = cutting
        self._regrouping = regrouping
        self._purges: dict[OperatorId, tuple[Living, tuple[bool, ...]]] = {}
        """The operators that are to free what they keep for queries that are gone."""

    # -- starting and stopping -------------------------------------------------------------

    def start(
        self,
        identities: Iterable[OperatorId],
        since: Mapping[int, Mapping[QueueId, int]],
        cursor: int,
    ) -> None:
        """Starts operators that are new in the graph, those that others read first.

        ``since`` tells for each epoch after which times its operators read the streams.
        """
        operators = self._operators
        for identity in identities:
            after = since.get(self._graph.epochs[identity], {})
            around = replace(operators.around, since=after)
            operator = self._graph.operators[identity]
            running = operators.start(identity, operator, around, cursor)
            self._telling.changed.add(identity)
            operators.count(running.inputs)
        self._regrouping.graph_changed()
        self._under_way.wake()

    def renew(self, identities: Iterable[OperatorId]) -> None:
        """Gives up the steps of operators that are under way: what they are to do has changed."""
        operators = self._operators
        for unit in {operators.units.of[each] for each in identities if each in operators.running}:
            self._under_way.forget(unit)
            self._telling.changed |= unit.identities
        self._under_way.wake()

    def stop(self, identities: list[OperatorId]) -> None:
        """Stops operators and frees what they held; steps of theirs under way are for nothing.

        What others in the same units were about to do is there to be done again.
        """
        operators, read = self._operators, set[QueueId]()
        for unit in {operators.units.of[identity] for identity in identities}:
            self._under_way.forget(unit)
        for identity in identities:
            running = operators.running[identity]
            read |= {queue.name for queue, _ in (*running.subscriptions, *running.past)}
            operators.stop(identity)
            operators.close_queue(identity)
            self._regrouping.quick.discard(identity)
            self._telling.changed.discard(identity)
        self._cutting.forget()
        for name in read & operators.queues.keys():
            operators.queues[name].free()
            operators.backlog.count(operators.queues[name])
        operators.units.to_change |= operators.running.keys() & read
        self._regrouping.graph_changed()

    # -- parts -----------------------------------------------------------------------------

    def cut_what_is_wanted(self) -> None:
        """Cuts parts off and fuses others again, as far as nobody concerned is at work."""
        if self._regrouping.is_due:
            self._cutting.want(self._regrouping.placement.by_hand)
        for cut in self._cutting.due(self._under_way.is_at_work):
            self._listener.cut(cut)
            self.cut(cut)

    def cut(self, cut: Cut) -> None:
        """Cuts a part off an operator, or fuses it again; nobody concerned is at work."""
        running, telling = self._operators.running, self._telling
        before = self._read_around(cut.part)
        self._cutting.do(cut)
        telling.changed &= running.keys()
        self._regrouping.quick &= running.keys()
        telling.changed |= self._parts_around(cut.part)
        read = {*before, *self._read_around(cut.part), cut.part}
        self._operators.count(read & self._operators.queues.keys())
        self._regrouping.graph_changed()

    def _parts_around(self, part: OperatorId) -> set[OperatorId]:
        """The operator that a part belongs to, with all parts of it that run."""
        owner = part.owner
        return {owner, *self._cutting.cuts.apart(owner)}

    def _read_around(self, part: OperatorId) -> set[QueueId]:
        """The queues that these read."""
        running = self._operators.running
        return {queue for each in self._parts_around(part) for queue in running[each].inputs}

    # -- operators that become one ---------------------------------------------------------

    def converge(self) -> bool:
        """Has operators that hold the same be one, as far as nobody concerned is at work; whether
        any wait for others."""
        waiting = self.converging.waiting & self._operators.running.keys()
        self._telling.changed |= waiting
        gone: list[QueueId] | None = None
        while gone != []:  # those that read what has become one may be the same now
            gone = []
            changed = set(self._telling.changed)
            for merge in self.converging.due(changed, self._under_way.is_at_work):
                gone += self._merge(merge)
                self._listener.merged(merge)
            if gone:
                self._stop_merged(gone)
        return bool(waiting)

    def merge(self, merge: Merge) -> None:
        """Has the readers of one queue read another one; the operator that wrote it goes."""
        self._stop_merged(self._merge(merge))

    def _merge(self, merge: Merge) -> list[QueueId]:
        """The same without an end of whoever wrote it: what is to be stopped, a queue at least."""
        operators = self._operators
        readers = self._graph.redirect(merge.queue, merge.into)
        for each in readers:
            settle_again(self._graph, each, merge.at)
            operators.running[each].redefine(self._graph.operators[each])
            operators.units.take_apart(each)
            operators.count(operators.running[each].inputs)
        self._telling.changed |= operators.running.keys() & {merge.into} | set(readers)
        queue = merge.queue
        if isinstance(queue, OperatorId) and queue in self._graph.operators:
            return [*self._graph.remove(queue)]
        return [queue]

    def _stop_merged(self, names: list[QueueId]) -> None:
        self.stop([name for name in operators_in(names) if name in self._operators.running])

    # -- queries that are gone -------------------------------------------------------------

    def purge(self, output: OperatorId, living: Living) -> None:
        """Has the operators of a group free what they keep for queries of it that are gone.

        Each does when it is not at work.
        """
        for identity, inputs in self._graph.of_group(output).items():
            if self._operators.running[identity].state is not None:
                self._purges[identity] = living, inputs
        self.purge_what_rests()

    def purge_what_rests(self) -> None:
        """Has those who are to free something do so that are not at work."""
        operators = self._operators
        for identity, purge in list(self._purges.items()):
            running = operators.running.get(identity)
            if running is not None and self._under_way.is_at_work(operators.units.of[identity]):
                continue
            if running is not None and running.state is not None:
                try:
                    version = running.purged(*purge)
                except StoreError:  # it can wait until the store can be written again
                    continue
                reference = running.state.reference(version)
                if reference != running.state.present():
                    self._listener.purged(identity, running.cursor, reference)
                    running.state.take(version)
            del self._purges[identity]
