"""The operators that run, with the queues between them: what the parts of the runtime share."""

from collections.abc import Iterable

from millpond.execution.operators import start
from millpond.execution.operators.running import RunningOperator
from millpond.execution.partitions import Partitions
from millpond.execution.statistics import Statistics
from millpond.execution.surroundings import Surroundings
from millpond.execution.units import Unit, Units
from millpond.identities import OperatorId, QueueId
from millpond.planning.graph import Graph
from millpond.planning.physical import Operator
from millpond.storage.backlog import Backlog
from millpond.storage.queues import Queue


class RunningOperators:
    """The running operators of a graph by their names, their units, and what was measured."""

    def __init__(self, graph: Graph, around: Surroundings) -> None:
        self.graph = graph
        self.around = around
        self.queues = around.queues
        self.running: dict[OperatorId, RunningOperator] = {}
        self.units = Units(self.queues)
        """The virtual operators, of one operator or of several."""
        self.statistics: dict[OperatorId, Statistics] = {}
        """What was measured of each operator."""
        self.backlog = Backlog()
        """What waits in the queues."""
        self.partitions = Partitions(graph)
        """The partitions that users have made, and who is in which."""

    def start(
        self, identity: OperatorId, operator: Operator, around: Surroundings, cursor: int
    ) -> RunningOperator:
        """Starts an operator, which stands alone at first; its queue may be there already."""
        running = self.running[identity] = start(identity, operator, around, cursor)
        self.units.add(running)
        self.statistics[identity] = Statistics()
        if identity not in self.queues:
            self.queues[identity] = Queue(
                identity, running.output_schema, around.store, operator.is_stream
            )
        return running

    def stop(self, identity: OperatorId) -> None:
        """Ends an operator; its queue stays."""
        running = self.running.pop(identity)
        self.units.remove(identity)
        running.close()
        del self.statistics[identity]

    def close_queue(self, name: QueueId) -> None:
        """Frees a queue that nobody will read or write any more."""
        self.queues.pop(name).close()
        self.backlog.forget(name)

    def count(self, queues: Iterable[QueueId]) -> None:
        """Counts anew what waits in some queues."""
        for name in queues:
            self.backlog.count(self.queues[name])

    def readers(self, queue: QueueId) -> list[RunningOperator]:
        """The operators that read a queue."""
        return [self.running[each] for each in self.graph.readers(queue)]

    def units_reading(self, unit: Unit) -> set[Unit]:
        """The units that read what a unit's members put out."""
        readers = (each for member in unit.members for each in self.graph.readers(member.identity))
        return {self.units.of[each] for each in readers} - {unit}
