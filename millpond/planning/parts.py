"""Parts of operators: the selections and projections in a fragment that a queue can stand behind.

Each has a name from the start, ``op7_1`` in ``op7``, and is fused into what reads it. *Cut off* it
is an operator of its own, as long as somebody wants a queue there; where it was its queue is read.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millpond.cql.algebra import Filter, Project, Sample
from millpond.cql.node import Node, inputs_first
from millpond.errors import MillpondError
from millpond.identities import OperatorId
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


Rewiring = dict[OperatorId, tuple[Node, ...]]
"""Operators that read other fragments now, and which."""


@dataclass(frozen=True)
class Cut:
    """A part was cut off, or fused again, when those that read it had come to a time."""

    part: OperatorId
    is_cut: bool
    at: int


class Cuts:
    """Which parts of a graph's operators are cut off."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes: dict[OperatorId, dict[OperatorId, Node]] = {}
        """By operator the parts that are cut off it, each with what it does."""

    @property
    def names(self) -> set[OperatorId]:
        """The parts that are cut off now."""
        apart = {name for nodes in self._nodes.values() for name in nodes}
        return apart & self._graph.operators.keys()

    def apart(self, owner: OperatorId) -> Iterable[OperatorId]:
        """The parts that are cut off one operator."""
        return self._nodes.get(owner, {}).keys()

    def is_part(self, name: OperatorId) -> bool:
        """Whether there is such a part, cut off or not."""
        return self._node(name) is not None

    def named(self, identity: OperatorId) -> dict[OperatorId, Node]:
        """The parts of an operator by their names."""
        if identity.owner != identity or identity not in self._graph.operators:
            return {}
        found = enumerate(parts_of(self._graph.operators[identity]), 1)
        return {identity.part(number): node for number, node in found}

    def names_in(self, identity: OperatorId) -> dict[Node, OperatorId]:
        """The parts of an operator, or of one that is cut off itself, as they stand in its
        fragments, with their names."""
        owner = identity.owner
        apart = _reads(self._nodes.get(owner, {}))
        return {_wired(node, apart, is_own=True): name for name, node in self.named(owner).items()}

    def rewiring(self, name: OperatorId, is_cut: bool) -> Rewiring:
        """Who would read other fragments if a part were cut off, or were not, and which."""
        owner, node = name.owner, self._node(name)
        nodes = {each: n for each, n in self._nodes.get(owner, {}).items() if each != name}
        if is_cut and node is not None:
            nodes[name] = node
        reads, found = _reads(nodes), {}
        for each in (owner, *nodes):
            operator = self._graph.operators.get(each) or LinearOperator(nodes[each])
            found[each] = wired(operator, reads)
        return {
            each: fragments
            for each, fragments in found.items()
            if each == name or fragments != self._graph.fragments_of(each)
        }

    def cut(self, name: OperatorId) -> Rewiring:
        """Makes a part an operator, which is read where it was; who reads other fragments now."""
        node, owner = self._node(name), name.owner
        if node is None:
            raise MillpondError(f"internal: there is no part {name}")
        rewiring = self.rewiring(name, is_cut=True)
        self._nodes.setdefault(owner, {})[name] = node
        self._graph.insert(name, LinearOperator(node), self._graph.epochs[owner])
        self._rewire(rewiring)
        return rewiring

    def fuse(self, name: OperatorId) -> Rewiring:
        """Makes it a part again; who reads other fragments now."""
        rewiring = self.rewiring(name, is_cut=False)
        self._rewire(rewiring)
        del self._nodes[name.owner][name]
        self._graph.take_out(name)
        return rewiring

    def forget(self) -> None:
        """Operators have gone, with their parts."""
        there = self._graph.operators
        for owner, nodes in list(self._nodes.items()):
            self._nodes[owner] = {name: node for name, node in nodes.items() if name in there}
            if not self._nodes[owner]:
                del self._nodes[owner]

    def _node(self, name: OperatorId) -> Node | None:
        owner = name.owner
        return self._nodes.get(owner, {}).get(name) or self.named(owner).get(name)

    def _rewire(self, rewiring: Rewiring) -> None:
        for each, fragments in rewiring.items():
            self._graph.rewire(each, fragments)


def _reads(nodes: Mapping[OperatorId, Node]) -> dict[Node, QueueRead]:
    """The parts that are cut off, each with how its queue is read."""
    return {node: _read(name, node) for name, node in nodes.items()}


def _read(name: OperatorId, node: Node) -> QueueRead:
    part = LinearOperator(node)
    return QueueRead(name, part.schema, part.is_stream, part.is_base)
