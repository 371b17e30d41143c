"""The graph: its operators, who reads them, and what is known of them."""

from collections.abc import Container, Iterator, Mapping

from millpond.identities import OperatorId, QueueId
from millpond.insight.validation.complaints import different, recounted, strangers
from millpond.planning.graph import Graph
from millpond.planning.physical import Operator, OutputOperator

Reads = Mapping[OperatorId, tuple[QueueId, ...]]
"""The queues that each operator reads."""


def inputs(graph: Graph, reads: Reads, queues: Container[str]) -> Iterator[str]:
    """What an operator reads is another operator or the queue of an input."""
    for identity, read in reads.items():
        for queue in read:
            if queue not in graph.operators and queue not in queues:
                yield f"{identity} reads {queue}, which is not there"


def order(reads: Reads) -> Iterator[str]:
    """Who reads an operator has a larger number, so that nobody reads himself."""
    for identity, read in reads.items():
        for queue in read:
            if isinstance(queue, OperatorId) and queue.number >= identity.number:
                yield f"{identity} reads {queue}, which comes after it"


def readers(graph: Graph, reads: Reads) -> Iterator[str]:
    """It is known of every queue who reads it."""
    anew: dict[QueueId, list[OperatorId]] = {}
    for identity, read in reads.items():
        for queue in read:
            anew.setdefault(queue, []).append(identity)
    for name in () if anew == graph._readers else graph._readers.keys() | anew.keys():
        known = sorted(graph._readers.get(name, []))
        yield from recounted(f"readers of {name}", known, sorted(anew.get(name, [])))


def purposes(graph: Graph) -> Iterator[str]:
    """Every operator puts a query out, or somebody reads it."""
    for identity, operator in graph.operators.items():
        if not isinstance(operator, OutputOperator) and not graph.readers(identity):
            yield f"nobody reads {identity} ({operator.label()})"


def what_is_known(graph: Graph) -> Iterator[str]:
    """What is known of operators is known of those that are there."""
    there = graph.operators
    yield from different("operators and their epochs", there, graph.epochs)
    yield from strangers("operators that read other fragments", graph.fragments, there)
    yield from strangers("operators that settle", graph.settled, there)
    yield from strangers("operators that count", graph.counting, there)
    yield from strangers("operators made of nodes", graph._nodes, there)


def forms(graph: Graph) -> Iterator[str]:
    """Every operator is found by what it does and when it began; parts that are cut off are not."""
    for (operator, epoch), identity in graph._ids.items():
        if graph.operators.get(identity) != operator or graph.epochs.get(identity) != epoch:
            yield f"{identity} is found by what it does not do: {operator.label()}"
    whole = {each for each in graph.operators if each.owner == each}
    yield from different("operators, and those found by their form", whole, graph._ids.values())


def twins(graph: Graph) -> Iterator[str]:
    """Those that do the same are known of one another."""
    anew: dict[Operator, list[str]] = {}
    for identity, operator in graph.operators.items():
        if identity.owner == identity:
            anew.setdefault(operator, []).append(identity)
    for each in () if anew == graph._twins else anew.keys() | graph._twins.keys():
        known, found = sorted(graph._twins.get(each, [])), sorted(anew.get(each, []))
        yield from recounted(f"operators that do the same ({each.label()})", known, found)
    yield from recounted("pairs", graph.pairs, sum(len(some) - 1 for some in anew.values()))


def nodes(graph: Graph) -> Iterator[str]:
    """What nodes of plans have become is known both ways."""
    made = {(node, each) for node, some in graph._made.items() for each in some}
    stems = {(node, each) for each, some in graph._nodes.items() for node in some}
    for identity in sorted({each for _, each in made ^ stems}):
        yield f"of {identity} it is not known both ways which node of a plan it was"


def copies(graph: Graph) -> Iterator[str]:
    """A copy of a relation that is to settle is read."""
    for queue in graph.copied:
        if not queue.is_copy or not graph.readers(queue):
            yield f"{queue} is to become one with its relation, and nobody reads it"
