"""Which queries rely on constraints of streams: rows of their joins are freed by them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from millpond.catalog import Constraint, StreamEntry
from millpond.errors import StateError
from millpond.failures import Failure
from millpond.identities import OperatorId, QueryName
from millpond.planning.bounded import Freeing, StreamColumn, freeings
from millpond.planning.graph import Graph
from millpond.sharing.arrangement import Failed
from millpond.sharing.ground import Ground
from millpond.sharing.groups import Groups
from millpond.spelling import listed


class Relying:
    """Knows what constraints free, and for whom."""

    def __init__(self, ground: Ground, graph: Graph, groups: Groups) -> None:
        self._ground, self._graph, self._groups = ground, graph, groups

    def freeings(self, identity: OperatorId, graph: Graph | None = None) -> list[Freeing]:
        """What is freed of a join by the constraints there are; it may be of another graph."""
        bounded = set(self._bounded())
        if not bounded:
            return []
        found = freeings(graph or self._graph, identity)
        return [each for each in found if each.sources <= bounded]

    def _bounded(self) -> Iterator[StreamColumn]:
        """The columns by which streams are ordered."""
        for entry in self._ground.catalog.of_kind(StreamEntry):
            for each in entry.constraints:
                yield entry.identity, each.column

    def operators(self, stream: StreamEntry, constraint: Constraint) -> list[OperatorId]:
        """The joins of which a constraint frees rows."""
        column = stream.identity, constraint.column
        return [
            identity
            for identity in self._graph.operators
            if any(column in each.sources for each in self.freeings(identity))
        ]

    def queries(self, stream: StreamEntry, names: Sequence[str]) -> list[str]:
        """The queries of whose joins some constraints of a stream free rows."""
        found: dict[str, None] = {}
        for constraint in (each for each in stream.constraints if each.name in names):
            for identity in self.operators(stream, constraint):
                asked = self._groups.expanded(self._graph.queries(identity))
                found |= dict.fromkeys(QueryName(query).asked_by for query in asked)
        return list(found)

    def stopped_by(self, stream: StreamEntry, broken: Sequence[str]) -> list[Failed]:
        """How the queries stop that rely on broken constraints, where these say so."""
        is_stopping = {each.name: each.on_violation == "stop" for each in stream.constraints}
        stopping = [name for name in broken if is_stopping[name]]
        relying = self.queries(stream, stopping)
        if not relying:
            return []
        error = StateError(
            f"stream {stream.name}: a tuple breaks constraint {listed(stopping)}; it is put aside, "
            f"where engine.violating('{stream.name}') has it, and what relies on the constraint "
            f"stops: {listed(relying)}; ALTER QUERY … ACTIVATE has a query begin anew, and with ON "
            "VIOLATION COUNT it would have gone on without the tuple"
        )
        now = self._ground.inputs.streams[stream.identity].queue.heartbeat
        where = f"constraint {stopping[0]} of {stream.name}"
        found = [Failure(query, where, str(error), now, now) for query in relying]
        return [Failed(tuple(asdict(failure) for failure in found), error)]
