"""Parts of operators: the selections and projections in a fragment that a queue can stand behind.

Each has a name from the start, ``op7_1`` in ``op7``, and is fused into what reads it. *Cut off* it
is an operator of its own, as long as somebody wants a queue there; where it was its queue is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from millpond.cql.algebra import Filter, Project, Sample
from millpond.cql.node import Node, inputs_first
from millpond.errors import MillpondError
from millpond.identities import OperatorId, QueueId
from millpond.planning.graph import Graph
from millpond.planning.physical import LinearOperator, Operator, QueueRead, SnapshotsOperator

MOST_PARTS = 63
"""So many parts of an operator have names."""


def parts_of(operator: Operator) -> list[Node]:
    """The parts of an operator, upstream first.

    Nothing above a window is one, or above a sample: there times and draws are others than in the
    queue that is read. Nor is anything that only says when an Rstream speaks.
    """
    found: dict[Node, None] = {}
    for fragment in _fragments(operator):
        sampled = {
            below for node in fragment.walk() if isinstance(node, Sample) for below in node.walk()
        }
        chains = (node for node in inputs_first(fragment) if _is_chain(node))
        found |= dict.fromkeys(node for node in chains if node not in sampled)
    if isinstance(operator, LinearOperator):
        found.pop(operator.input, None)
    return list(found)[:MOST_PARTS]


def _fragments(operator: Operator) -> tuple[Node, ...]:
    return operator.inputs[:1] if isinstance(operator, SnapshotsOperator) else operator.inputs


def _is_chain(node: Node) -> bool:
    """Whether it is a selection or a projection, and all below it down to one queue are."""
    if not isinstance(node, Filter | Project):
        return False
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, QueueRead)


def wired(operator: Operator, reads: Mapping[Node, QueueRead]) -> tuple[Node, ...]:
    """The fragments of an operator with the queues of the parts that are cut off."""
    allowed = len(_fragments(operator))
    return tuple(
        _wired(node, reads, isinstance(operator, LinearOperator)) if index < allowed else node
        for index, node in enumerate(operator.inputs)
    )


def _wired(fragment: Node, reads: Mapping[Node, QueueRead], is_own: bool) -> Node:
    """``is_own``: the fragment is not itself replaced, only what is below it."""
    new: dict[Node, Node] = {}
    for node in inputs_first(fragment):
        if node in reads and not (is_own and node == fragment):
            new[node] = reads[node]
        else:
            new[node] = node.with_inputs(tuple(new[below] for below in node.inputs))
    return new[fragment]


@dataclass(frozen=True)
class Cut:
    """A part was cut off, or fused again, when those that read it had come to a time."""

    part: str
    is_cut: bool
    at: int


class Cuts:
    """Which parts of a graph's operators are cut off."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: dict[str, Node] = {}
        """The parts that are cut off, each with what it does."""

    @property
    def names(self) -> set[str]:
        """The parts that are cut off now."""
        return self._nodes.keys() & self._graph.operators.keys()

    def is_part(self, name: str) -> bool:
        """Whether there is such a part, cut off or not."""
        return self._node(name) is not None

    def named(self, operator: str) -> dict[str, Node]:
        """The parts of an operator by their names."""
        identity = OperatorId(operator)
        if identity.owner != identity or identity not in self._graph.operators:
            return {}
        found = enumerate(parts_of(self._graph.operators[identity]), 1)
        return {identity.part(number): node for number, node in found}

    def names_in(self, identity: str) -> dict[Node, str]:
        """The parts of an operator, or of one that is cut off itself, as they stand in its
        fragments, with their names."""
        owner = OperatorId(identity).owner
        apart = {self._nodes[each]: _read(each, self._nodes[each]) for each in self.names}
        return {_wired(node, apart, is_own=True): name for name, node in self.named(owner).items()}

    def rewiring(self, name: str, is_cut: bool) -> dict[str, tuple[Node, ...]]:
        """Who would read other fragments if a part were cut off, or were not, and which."""
        nodes, node, owner = dict(self._nodes), self._node(name), OperatorId(name).owner
        nodes.pop(name, None)
        if is_cut and node is not None:
            nodes[name] = node
        mine = [each for each in nodes if OperatorId(each).owner == owner]
        reads = {nodes[each]: _read(each, nodes[each]) for each in mine}
        found = {}
        for each in (owner, *mine):
            operator = self._graph.operators.get(each) or LinearOperator(nodes[each])
            found[each] = wired(operator, reads)
        return {
            each: fragments
            for each, fragments in found.items()
            if each == name or fragments != self._graph.fragments_of(each)
        }

    def cut(self, name: str) -> dict[str, tuple[Node, ...]]:
        """Makes a part an operator, which is read where it was; who reads other fragments now."""
        node, owner = self._node(name), OperatorId(name).owner
        if node is None:
            raise MillpondError(f"internal: there is no part {name}")
        rewiring = self.rewiring(name, is_cut=True)
        self._nodes[name] = node
        self._graph.insert(OperatorId(name), LinearOperator(node), self._graph.epochs[owner])
        self._rewire(rewiring)
        return rewiring

    def fuse(self, name: str) -> dict[str, tuple[Node, ...]]:
        """Makes it a part again; who reads other fragments now."""
        rewiring = self.rewiring(name, is_cut=False)
        self._rewire(rewiring)
        del self._nodes[name]
        self._graph.take_out(OperatorId(name))
        return rewiring

    def forget(self) -> None:
        """Operators have gone, with their parts."""
        self._nodes = {name: self._nodes[name] for name in self.names}

    def _node(self, name: str) -> Node | None:
        return self._nodes.get(name) or self.named(OperatorId(name).owner).get(name)

    def _rewire(self, rewiring: Mapping[str, tuple[Node, ...]]) -> None:
        for each, fragments in rewiring.items():
            self._graph.rewire(OperatorId(each), fragments)


def _read(name: str, node: Node) -> QueueRead:
    part = LinearOperator(node)
    return QueueRead(QueueId(name), part.schema, part.is_stream, part.is_base)
