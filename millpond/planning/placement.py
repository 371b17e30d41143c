"""Where queues stand between the operators of a graph, as plain data.

Operators with an edge between them that has no queue are one virtual operator. A user's word goes
before a strategy's. Where nobody has said anything there is a queue where work divides: none behind
selections and projections, which are quicker done with whatever reads them, and none in a chain of
operators that divide their rows by the same keys, nor before the output of what has one reader.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from millpond.planning.keys import stays_divided
from millpond.planning.physical import Graph, LinearOperator, MatchOperator, OutputOperator

Edge = tuple[str, str]
"""An operator and one that reads it."""


@dataclass(frozen=True)
class QueuePlacement:
    """Which edges of a graph have a queue."""

    chosen: Mapping[Edge, bool] = field(default_factory=dict)
    """The edges on which a strategy wants one, or wants none."""
    by_hand: Mapping[str, bool] = field(default_factory=dict)
    """The operators behind which a user wants queues, or wants none."""

    def choose(self, graph: Graph, queues: Collection[Edge]) -> QueuePlacement:
        """The same after a strategy has chosen the edges of a graph that keep a queue."""
        return replace(self, chosen={edge: edge in queues for edge in edges(graph)})

    def undecided(self) -> QueuePlacement:
        """The same for another strategy, which has chosen nothing yet."""
        return replace(self, chosen={})

    def say(self, operator: str, has_queue: bool) -> QueuePlacement:
        """The same after a user has spoken about what is behind an operator."""
        return replace(self, by_hand={**self.by_hand, operator: has_queue})

    def queues(self, graph: Graph, producers: Iterable[str] | None = None) -> frozenset[Edge]:
        """The edges of a graph that have a queue, or those behind some operators of it."""
        return frozenset(edge for edge in edges(graph, producers) if self._has_queue(graph, edge))

    def differing(self, other: QueuePlacement) -> set[str]:
        """The operators behind which another placement may want something else."""
        apart = {name for name, _ in self.by_hand.items() ^ other.by_hand.items()}
        return apart | {edge[0] for edge, _ in self.chosen.items() ^ other.chosen.items()}

    def _has_queue(self, graph: Graph, edge: Edge) -> bool:
        said = self.by_hand.get(edge[0], self.chosen.get(edge))
        return not _are_one(graph, edge) if said is None else said


def _are_one(graph: Graph, edge: Edge) -> bool:
    """Whether two operators are quicker done together, where nobody wants a queue between them."""
    producer, reader = (graph.operators[each] for each in edge)
    if isinstance(producer, LinearOperator):
        return True
    if graph.readers(edge[0]) != [edge[1]] or reader.queues() != (edge[0],):
        return False
    is_quick = isinstance(producer, MatchOperator) or isinstance(reader, OutputOperator)
    return is_quick or stays_divided(producer, reader)


def edges(graph: Graph, producers: Iterable[str] | None = None) -> frozenset[Edge]:
    """All edges from operator to operator, or those behind some of them."""
    behind = graph.operators if producers is None else producers
    return frozenset(
        (producer, reader) for producer in behind for reader in graph.readers(producer)
    )
