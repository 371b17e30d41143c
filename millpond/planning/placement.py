"""Where queues stand between the operators of a graph, as plain data.

Operators with an edge between them that has no queue are one virtual operator. A user's word goes
before a strategy's; where nobody has said anything there is a queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from millpond.planning.physical import Graph

Edge = tuple[str, str]
"""An operator and one that reads it."""


@dataclass(frozen=True)
class QueuePlacement:
    """Which edges of a graph have a queue."""

    direct: frozenset[Edge] = frozenset()
    """The edges on which a strategy wants none."""
    by_hand: Mapping[str, bool] = field(default_factory=dict)
    """The operators behind which a user wants queues, or wants none."""

    def chosen(self, graph: Graph, queues: frozenset[Edge]) -> QueuePlacement:
        """The same after a strategy has chosen the edges of a graph that keep a queue."""
        return replace(self, direct=edges(graph) - queues)

    def said(self, operator: str, has_queue: bool) -> QueuePlacement:
        """The same after a user has spoken about what is behind an operator."""
        return replace(self, by_hand={**self.by_hand, operator: has_queue})

    def has_queue(self, edge: Edge) -> bool:
        """Whether an edge has a queue."""
        return self.by_hand.get(edge[0], edge not in self.direct)

    def queues(self, graph: Graph) -> frozenset[Edge]:
        """The edges with a queue."""
        return frozenset(edge for edge in edges(graph) if self.has_queue(edge))


def edges(graph: Graph) -> frozenset[Edge]:
    """All edges from operator to operator."""
    return frozenset(
        (producer, reader) for producer in graph.operators for reader in graph.readers(producer)
    )
