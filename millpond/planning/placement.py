"""Where queues stand between the operators of a graph, as plain data.

Operators with an edge between them that has no queue are one virtual operator. A user's word goes
before a strategy's. Where nobody has said anything there is a queue where work divides: none behind
selections and projections, which are quicker done with whatever reads them, and none in a chain of
operators that divide their rows by the same keys, nor before the output of what has one reader.
Shapes of queries that are matched with the same pages are one virtual operator, some tens of them,
and so is what the executors do with the same pages: a job costs much whatever is done in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from millpond.identities import OperatorId, QueueId
from millpond.planning.graph import Graph
from millpond.planning.keys import stays_divided
from millpond.planning.physical import LinearOperator, MatchOperator, OutputOperator

Edge = tuple[OperatorId, OperatorId]
"""An operator and one that reads it."""

Members = tuple[OperatorId, ...]
"""The operators of a virtual operator, upstream first."""

Inputs = tuple[frozenset[QueueId], str]
"""What a virtual operator reads, and the partition it is in."""

MOST_SHAPES = 32
"""So many shapes are worked on together: they wait for one another."""


class OpenUnits:
    """The virtual operators that are open to more shapes, by what they read.

    A shape that comes later finds its place by them, whatever else there is.
    """

    def __init__(self) -> None:
        self.is_there: Callable[[Members], bool] = lambda members: True
        """Whether a virtual operator is to be as it was put together."""
        self._open: dict[Inputs, list[tuple[Members, int]]] = {}
        """Each with its number of shapes."""

    def put_together(self, inputs: Inputs, shapes: Iterable[Members]) -> list[Members]:
        """Virtual operators of some shapes with the same inputs and of those still open."""
        if inputs not in self._open:
            self._forget()
        there = [each for each in self._open.pop(inputs, ()) if self.is_there(each[0])]
        full: list[Members] = []
        still_open: list[tuple[Members, int]] = []
        for members, number in [*there, *((shape, 1) for shape in shapes)]:
            fits = (each for each in still_open if each[1] + number <= MOST_SHAPES)
            others = next(fits, None)
            if others is None:
                still_open.append((members, number))
                continue
            together = others[0] + members, others[1] + number
            if together[1] < MOST_SHAPES:
                still_open[still_open.index(others)] = together
            else:
                still_open.remove(others)
                full.append(together[0])
        self._open[inputs] = still_open
        return full + [members for members, _ in still_open]

    def _forget(self) -> None:
        """Lets go of what is not there any more and nobody has asked for."""
        for inputs, units in list(self._open.items()):
            if not any(self.is_there(members) for members, _ in units):
                del self._open[inputs]


@dataclass(frozen=True)
class QueuePlacement:
    """Which edges of a graph have a queue."""

    chosen: Mapping[Edge, bool] = field(default_factory=dict)
    """The edges on which a strategy wants one, or wants none."""
    by_hand: Mapping[OperatorId, bool] = field(default_factory=dict)
    """The operators behind which a user wants queues, or wants none."""
    partitions: Mapping[OperatorId, str] = field(default_factory=dict)
    """The partition of each operator that is in one; between two there always is a queue."""

    def choose(self, graph: Graph, queues: Collection[Edge]) -> QueuePlacement:
        """The same after a strategy has chosen the edges of a graph that keep a queue."""
        return replace(self, chosen={edge: edge in queues for edge in edges(graph)})

    def undecided(self) -> QueuePlacement:
        """The same for another strategy, which has chosen nothing yet."""
        return replace(self, chosen={})

    def say(self, operator: OperatorId, has_queue: bool) -> QueuePlacement:
        """The same after a user has spoken about what is behind an operator."""
        return replace(self, by_hand={**self.by_hand, operator: has_queue})

    def queues(
        self, graph: Graph, producers: Iterable[OperatorId] | None = None
    ) -> frozenset[Edge]:
        """The edges of a graph that have a queue, or those behind some operators of it."""
        return frozenset(edge for edge in edges(graph, producers) if self._has_queue(graph, edge))

    def differing(self, other: QueuePlacement) -> set[OperatorId]:
        """The operators behind which another placement may want something else."""
        apart = {name for name, _ in self.by_hand.items() ^ other.by_hand.items()}
        apart |= {name for name, _ in self.partitions.items() ^ other.partitions.items()}
        return apart | {edge[0] for edge, _ in self.chosen.items() ^ other.chosen.items()}

    def beside(
        self,
        graph: Graph,
        groups: Iterable[Members],
        open_units: OpenUnits,
        is_quick: Callable[[OperatorId], bool] = lambda operator: False,
    ) -> list[Members]:
        """Some virtual operators, those of shapes with the same inputs put together.

        And those with a first operator that is known to be done quickly on the executors. What they
        read and pass on they read and pass on once. A strategy that has chosen where queues stand
        has chosen which operators wait for one another.
        """
        found: list[Members] = []
        by_inputs: dict[Inputs, list[Members]] = {}
        for group in groups:
            is_one = isinstance(graph.operators[group[0]], MatchOperator) or is_quick(group[0])
            inputs = None if self.chosen or not is_one else _inputs_of(graph, group)
            if inputs is None:
                found.append(group)
            else:
                partition = self.partitions.get(group[0], "")
                by_inputs.setdefault((inputs, partition), []).append(group)
        for together, shapes in by_inputs.items():
            found += open_units.put_together(together, shapes)
        return found

    def _has_queue(self, graph: Graph, edge: Edge) -> bool:
        if self.partitions and self.partitions.get(edge[0]) != self.partitions.get(edge[1]):
            return True
        said = self.by_hand.get(edge[0], self.chosen.get(edge))
        return not _are_one(graph, edge) if said is None else said


def _are_one(graph: Graph, edge: Edge) -> bool:
    """Whether two operators are quicker done together, where nobody wants a queue between them."""
    producer, reader = (graph.operators[each] for each in edge)
    if isinstance(producer, LinearOperator):
        return True
    if graph.readers(edge[0]) != [edge[1]]:
        return False
    others = set(graph.queues_of(edge[1])) - {edge[0]}
    if isinstance(producer, MatchOperator):
        return all(each.relation for each in others)  # which nobody waits for
    return not others and (isinstance(reader, OutputOperator) or stays_divided(producer, reader))


def _inputs_of(graph: Graph, group: Members) -> frozenset[QueueId] | None:
    """The streams and relations that a virtual operator reads; None if it reads other operators."""
    queues = {queue for each in group for queue in graph.queues_of(each)} - set(group)
    return None if queues & graph.operators.keys() else frozenset(queues)


def edges(graph: Graph, producers: Iterable[OperatorId] | None = None) -> frozenset[Edge]:
    """All edges from operator to operator, or those behind some of them."""
    behind = graph.operators if producers is None else producers
    return frozenset(
        (producer, reader) for producer in behind for reader in graph.readers(producer)
    )
