"""Which queries rely on punctuations of streams, heartbeats among them: these free rows of their
states."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from millpond.catalog import StreamEntry
from millpond.errors import StateError
from millpond.failures import Failure
from millpond.identities import OperatorId, QueryName, StreamId
from millpond.intake.punctuations import all_patterns, punctuation_name
from millpond.planning.graph import Graph
from millpond.planning.punctuated import Closing, Way, closings
from millpond.sharing.arrangement import Failed
from millpond.sharing.ground import Ground
from millpond.sharing.groups import Groups
from millpond.spelling import listed
from millpond.storage.transitions import Transition


class Closings:
    """Knows what punctuations free, and for whom."""

    def __init__(self, ground: Ground, graph: Graph, groups: Groups) -> None:
        self._ground, self._graph, self._groups = ground, graph, groups
        self._possible: dict[OperatorId, list[Closing]] = {}
        """What of an operator may be freed, worked out once: its plan stays."""

    def closings(self, identity: OperatorId) -> list[Closing]:
        """What is freed of an operator by the punctuations there are, and by heartbeats."""
        if identity not in self._possible:
            if len(self._possible) > 2 * len(self._graph.operators):
                self._possible.clear()
            self._possible[identity] = list(closings(self._graph, identity))
        found = self._possible[identity]
        return [each for each in found if all(map(self._is_closed, each.ways))]

    def _is_closed(self, way: Way) -> bool:
        """Whether a punctuation of the stream is of use, or its heartbeats are."""
        intake = self._ground.inputs.streams[way.stream]
        return by_heartbeats(intake.entry, way) or any(
            way.keys_of(each) is not None for each in all_patterns(intake.punctuations)
        )

    def awaited(self, identity: OperatorId, graph: Graph) -> list[Closing]:
        """What is freed of an operator of a graph by what has come or may come: punctuations of
        streams that have some, or a column that carries them, and heartbeats."""
        found = closings(graph, identity)
        return [each for each in found if all(map(self._is_awaited, each.ways))]

    def _is_awaited(self, way: Way) -> bool:
        entry = self._ground.inputs.streams[way.stream].entry
        return entry.punctuation_column is not None or self._is_closed(way)

    def relying(self) -> dict[OperatorId, list[Closing]]:
        """The operators of which punctuations free rows, and which."""
        found = ((each, self.closings(each)) for each in self._graph.operators)
        return {identity: freed for identity, freed in found if freed}

    def _queries(self, stream: StreamEntry, named: Sequence[Sequence[int]]) -> Iterator[str]:
        relying = {each: self.awaited(each, self._graph) for each in self._graph.operators}
        for identity in relied_on(relying, stream.identity, named):
            asked = self._groups.expanded(self._graph.queries(identity))
            yield from (QueryName(query).asked_by for query in asked)

    def stopped_by(
        self, stream: StreamEntry, named: Sequence[Sequence[int]], coming: Sequence[Transition]
    ) -> list[Failed]:
        """How the queries stop that rely on punctuations that were contradicted, which name some
        columns, unless they stop anyway."""
        failing = [each.failures for each in coming if isinstance(each, Failed)]
        stopped = {failure["query"] for failures in failing for failure in failures}
        relying = [
            each for each in dict.fromkeys(self._queries(stream, named)) if each not in stopped
        ]
        if not relying:
            return []
        names = listed([punctuation_name(stream, columns) for columns in named])
        error = StateError(
            f"stream {stream.name}: a tuple contradicts {names}; it is put aside, where "
            f"engine.violating('{stream.name}') has it, and what relies on that stops: "
            f"{listed(relying)}; ALTER QUERY … ACTIVATE has a query begin anew, and with ON "
            "VIOLATION COUNT it would have gone on without the tuple"
        )
        now = self._ground.inputs.streams[stream.identity].queue.heartbeat
        where = f"{punctuation_name(stream, named[0])} of {stream.name}"
        found = [Failure(query, where, str(error), now, now) for query in relying]
        return [Failed(tuple(asdict(failure) for failure in found), error)]


def by_heartbeats(entry: StreamEntry, way: Way) -> bool:
    """Whether a key has the time of a stream's tuples, which is over up to its heartbeat."""
    return any(column == entry.timestamp_column for column, _ in way.keys)


def relied_on(
    relying: Mapping[OperatorId, Sequence[Closing]],
    stream: StreamId,
    named: Sequence[Sequence[int]],
) -> list[OperatorId]:
    """Those of some operators that rely on punctuations of a stream that name some columns."""
    return [
        identity
        for identity, closings_ in relying.items()
        if any(
            way.stream == stream and any(map(way.tells, named))
            for each in closings_
            for way in each.ways
        )
    ]
