"""The partitions that users have made, and which operators are in them (HMTS paper, 4.2.2)."""

from collections.abc import Callable, Mapping

from millpond.identities import BY_NUMBER, OperatorId
from millpond.planning.graph import Graph
from millpond.planning.physical import OutputOperator
from millpond.scheduling.snapshot import PartitionSnapshot

NOWHERE = 1.0
"""The priority of what is in no partition."""


class Partitions:
    """Which partition each operator is in.

    An operator that was put in one by hand is there. Others are where the queries are that they
    work for; if these are in several, then in the one of the highest priority, so that nobody
    urgent waits for what somebody less urgent shares.
    """

    def __init__(self, graph: Graph) -> None:
        self.declared: tuple[PartitionSnapshot, ...] = ()
        self.by_hand: Mapping[OperatorId, str] = {}
        """The operators that users have put in one."""
        self.of_query: Callable[[str], list[str]] = lambda query: []
        """The partitions of a query, or of the queries of a group; empty where one is in none."""
        self.of: Mapping[OperatorId, str] = {}
        """The partition of each operator that is in one."""
        self._graph = graph

    def assign(self) -> None:
        """Finds out anew which operators are in which partition."""
        if not self.declared:
            self.of = {}
            return
        known = {each.name for each in self.declared}
        found = self._by_queries() | dict(self.by_hand)
        self.of = {
            operator: name
            for operator, name in found.items()
            if name in known and operator in self._graph.operators
        }

    def _by_queries(self) -> dict[OperatorId, str]:
        """Those that follow from queries; readers have higher numbers."""
        priority = {each.name: each.priority for each in self.declared} | {"": NOWHERE}
        found: dict[OperatorId, str] = {}
        for identity in sorted(self._graph.operators, key=BY_NUMBER, reverse=True):
            operator = self._graph.operators[identity]
            if isinstance(operator, OutputOperator):
                names = self.of_query(operator.query)
            else:
                names = [found[each] for each in self._graph.readers(identity)]
            if names:
                found[identity] = min(names, key=lambda name: (-priority.get(name, 0.0), name))
            else:
                found[identity] = ""
        return found
