"""Which queries rely on constraints of streams: rows of their joins are freed by them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from millpond.catalog import Constraint, StreamEntry
from millpond.errors import StateError
from millpond.failures import Failure
from millpond.identities import OperatorId, QueryName, StreamId
from millpond.planning.bounded import AnyFreeing, freeings
from millpond.planning.graph import Graph
from millpond.sharing.arrangement import Failed
from millpond.sharing.ground import Ground
from millpond.sharing.groups import Groups
from millpond.spelling import listed
from millpond.storage.transitions import Transition


class Relying:
    """Knows what constraints free, and for whom."""

    def __init__(self, ground: Ground, graph: Graph, groups: Groups) -> None:
        self._ground, self._graph, self._groups = ground, graph, groups

    def freeings(self, identity: OperatorId, graph: Graph | None = None) -> list[AnyFreeing]:
        """What is freed of an operator by the constraints there are; it may be of another graph."""
        known = self.known
        return list(freeings(graph or self._graph, identity, known)) if known else []

    @property
    def known(self) -> dict[StreamId, tuple[Constraint, ...]]:
        """The constraints of streams."""
        entries: Iterable[StreamEntry] = self._ground.catalog.of_kind(StreamEntry)
        return {entry.identity: entry.constraints for entry in entries if entry.constraints}

    def operators(self, stream: StreamEntry, constraint: Constraint) -> list[OperatorId]:
        """The operators of which a constraint frees rows."""
        return [
            identity
            for identity in self._graph.operators
            if any(each.relies_on(stream.identity, constraint) for each in self.freeings(identity))
        ]

    def queries(self, stream: StreamEntry, names: Sequence[str]) -> list[str]:
        """The queries of whose joins some constraints of a stream free rows."""
        constraints = [each for each in stream.constraints if each.name in names]
        return self.asked_by([i for each in constraints for i in self.operators(stream, each)])

    def asked_by(self, identities: Iterable[OperatorId]) -> list[str]:
        """The queries that need one of some operators."""
        found: dict[str, None] = {}
        for identity in identities:
            asked = self._groups.expanded(self._graph.queries(identity))
            found |= dict.fromkeys(QueryName(query).asked_by for query in asked)
        return list(found)

    def stopped_by(self, stream: StreamEntry, broken: Sequence[str]) -> list[Failed]:
        """How the queries stop that rely on broken constraints, where these say so."""
        relying: dict[str, str] = {}
        for name in broken:
            for query in self._stopped(stream, name):
                relying.setdefault(query, name)
        if not relying:
            return []
        stopping = list(dict.fromkeys(relying.values()))
        error = StateError(
            f"stream {stream.name}: a tuple breaks constraint {listed(stopping)}; it is put aside, "
            f"where engine.violating('{stream.name}') has it, and what relies on the constraint "
            f"stops: {listed(list(relying))}; ALTER QUERY … ACTIVATE has a query begin anew, and "
            "with ON VIOLATION COUNT it would have gone on without the tuple"
        )
        now = self._ground.inputs.streams[stream.identity].queue.heartbeat
        where = f"constraint {stopping[0]} of {stream.name}"
        found = [Failure(query, where, str(error), now, now) for query in relying]
        return [Failed(tuple(asdict(failure) for failure in found), error)]

    def missed_by(self, stream: StreamEntry, coming: Sequence[Transition]) -> str:
        """Names the queries that go on without tuples of a stream that are put aside: those that
        read it, and do not stop by what comes."""
        queues = self._ground.inputs.queues_of(stream.identity)
        readers = [each for queue in queues for each in self._graph.readers(queue.name)]
        failing = [each.failures for each in coming if isinstance(each, Failed)]
        stopped = {failure["query"] for failures in failing for failure in failures}
        return listed([each for each in self.asked_by(readers) if each not in stopped])

    def _stopped(self, stream: StreamEntry, name: str) -> list[str]:
        """The queries that stop when a constraint is broken, or what is left of one."""
        remnants = self._ground.inputs.streams[stream.identity].remnants
        if name in remnants:
            remnant, _ = remnants[name]
            stays = [each for each in remnant.operators if each in self._graph.operators]
            return self.asked_by(stays) if remnant.dropped.on_violation == "stop" else []
        owner, constraint = self._constraint(stream, name)
        return self.queries(owner, [constraint.name]) if constraint.on_violation == "stop" else []

    def _constraint(self, stream: StreamEntry, name: str) -> tuple[StreamEntry, Constraint]:
        """A constraint by which a stream's tuples were looked at, with the stream that has it."""
        known = stream.constraint(name)
        if known is not None:
            return stream, known
        intake, own = self._ground.inputs.streams[stream.identity].referring[name]
        return intake.entry, next(c for c in intake.entry.constraints if c.name == own)
