"""The graph of all operators of all queries; equal operators that began together exist once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from millpond.cql.node import Node, inputs_first, lines_of
from millpond.identities import BY_NUMBER, PARTS, OperatorId, QueryName, QueueId
from millpond.planning.physical import (
    JoinOperator,
    LinearOperator,
    MatchOperator,
    Operator,
    OutputOperator,
    QueueRead,
    queues_in,
)


@dataclass(frozen=True)
class Placed:
    """An operator and its place in a graph."""

    identity: OperatorId
    operator: Operator
    epoch: int


@dataclass(frozen=True)
class Addition:
    """What a plan adds to a graph."""

    operators: tuple[Placed, ...] = ()
    """The operators that were not there, inputs first."""
    made: tuple[tuple[str, OperatorId], ...] = ()
    """The digests of the plan's nodes that have become operators, new or not, and which."""


@dataclass
class Graph:
    """All operators of all queries; equal operators started at the same time exist once."""

    operators: dict[OperatorId, Operator] = field(default_factory=dict)
    epochs: dict[OperatorId, int] = field(default_factory=dict)
    """When each operator began: queries registered later see only what came later."""
    linear: str = "fused"
    """Which selections and projections of queries to come are operators of their own: none
    (fused), those next to functions of the user (functions), or all (apart)."""
    next_number: int = 1
    """The number of the next operator."""
    fragments: dict[OperatorId, tuple[Node, ...]] = field(default_factory=dict)
    """What operators read of which parts are cut off: queues in place of these."""
    settled: dict[OperatorId, int] = field(default_factory=dict)
    """From when on operators are as if they were there from the beginning, where that is known."""
    counting: dict[OperatorId, int] = field(default_factory=dict)
    """The same of what Rows windows read that settle once they are full of what came since."""
    copied: dict[QueueId, int] = field(default_factory=dict)
    """From when on the copies of relations that are read are like these."""
    pairs: int = 0
    """How many operators do what one that came before them does, with the same queues."""
    _ids: dict[tuple[Operator, int], OperatorId] = field(default_factory=dict)
    _readers: dict[QueueId, list[OperatorId]] = field(default_factory=dict)
    _twins: dict[Operator, list[OperatorId]] = field(default_factory=dict)
    _made: dict[str, dict[OperatorId, None]] = field(default_factory=dict)
    """The operators that nodes of plans have become, by the digests of the nodes."""
    _nodes: dict[OperatorId, dict[str, None]] = field(default_factory=dict)
    """The same the other way round."""

    def add(self, addition: Addition) -> None:
        """Adds the operators of a plan."""
        for each in addition.operators:
            self._ids[each.operator, each.epoch] = each.identity
            self._place(each.identity, each.operator, each.epoch)
            self.next_number = max(self.next_number, each.identity.number // PARTS + 1)
        for digest, identity in addition.made:
            self._made.setdefault(digest, {})[identity] = None
            self._nodes.setdefault(identity, {})[digest] = None

    def find(self, operator: Operator, epoch: int) -> OperatorId | None:
        """The id of an operator that began at a time, if it is there."""
        return self._ids.get((operator, epoch))

    def whole(self) -> Addition:
        """What adds all there is to an empty graph, but for parts that are cut off."""
        names = sorted(self._ids.values(), key=BY_NUMBER)
        placed = tuple(Placed(each, self.operators[each], self.epochs[each]) for each in names)
        made = ((digest, each) for each in names for digest in self._nodes.get(each, ()))
        return Addition(placed, tuple(made))

    def _place(self, identity: OperatorId, operator: Operator, epoch: int) -> None:
        self.operators[identity], self.epochs[identity] = operator, epoch
        self._pair(operator, identity)
        for queue in operator.queues():
            self._readers.setdefault(queue, []).append(identity)

    def _pair(self, operator: Operator, identity: OperatorId) -> None:
        twins = self._twins.setdefault(operator, [])
        self.pairs += bool(twins)
        twins.append(identity)

    def remove(self, identity: OperatorId) -> list[OperatorId]:
        """Removes an output operator and all that nobody else reads; the ids removed."""
        removed, stack = list[OperatorId](), [identity]
        while stack:
            removed.append(stack.pop())
            queues = self._forget(removed[-1])
            stack += [q for q in operators_in(queues) if not self.readers(q)]
        return removed

    def _forget(self, identity: OperatorId) -> tuple[QueueId, ...]:
        queues = self.queues_of(identity)
        for queue in queues:
            self._readers[queue].remove(identity)
        self.fragments.pop(identity, None)
        self.settled.pop(identity, None)
        self.counting.pop(identity, None)
        for digest in self._nodes.pop(identity, ()):
            del self._made[digest][identity]
            if not self._made[digest]:
                del self._made[digest]
        key = self.operators.pop(identity), self.epochs.pop(identity)
        if self._ids.get(key) == identity:  # a part that was cut off has none
            self._forget_form(identity, *key)
        for queue in queues:
            if not self.readers(queue):
                self.copied.pop(queue, None)
        return queues

    def _forget_form(self, identity: OperatorId, operator: Operator, epoch: int) -> None:
        del self._ids[operator, epoch]
        twins = self._twins[operator]
        twins.remove(identity)
        self.pairs -= bool(twins)
        if not twins:
            del self._twins[operator]

    def has(self, operator: Operator) -> bool:
        """Whether there is such an operator, whenever it began."""
        return operator in self._twins

    # -- what plans have become --------------------------------------------------------------

    def made_of(self, node: Node) -> list[OperatorId]:
        """The operators that equal nodes of plans have become, the first one first."""
        return sorted(self._made.get(node.digest, ()), key=BY_NUMBER)

    def joins_in(self, identity: OperatorId) -> dict[str, int]:
        """The nodes that have become the joins an operator is or depends on, by their digests;
        their numbers."""
        joins = {each: self.operators[each] for each in self.upstream(identity)}
        return {
            digest: operator.number
            for each, operator in joins.items()
            if isinstance(operator, JoinOperator)
            for digest in self._nodes.get(each, ())
        }

    # -- operators that become one -----------------------------------------------------------

    def twins(self, identity: OperatorId) -> list[OperatorId]:
        """The operators that do the same, whenever they began, with the same queues; itself too.

        A part that was cut off has none.
        """
        operator = self.operators[identity]
        found = self._twins.get(operator, [])
        return found if identity in found else []

    def redirect(self, old: QueueId, new: QueueId) -> list[OperatorId]:
        """Has those that read a queue read another one with the same content; who they are."""
        readers = list(self.readers(old))
        self.copied.pop(old, None)
        for identity in readers:
            operator, epoch = self.operators[identity], self.epochs[identity]
            for queue in operator.queues():
                self._readers[queue].remove(identity)
            self._forget_form(identity, operator, epoch)
            operator = redirected(operator, old, new)
            self._ids[operator, epoch] = identity
            self._place(identity, operator, epoch)
        return readers

    # -- parts of operators that are cut off -----------------------------------------------

    def fragments_of(self, identity: OperatorId) -> tuple[Node, ...]:
        """What an operator reads."""
        return self.fragments.get(identity) or self.operators[identity].inputs

    def queues_of(self, identity: OperatorId) -> tuple[QueueId, ...]:
        """The names of the queues an operator reads, without repetition."""
        if identity not in self.fragments:
            return self.operators[identity].queues()
        return queues_in(self.fragments[identity])

    def insert(self, identity: OperatorId, part: Operator, epoch: int) -> None:
        """A part of an operator becomes one itself; nobody reads it yet."""
        self.operators[identity], self.epochs[identity] = part, epoch
        for queue in part.queues():
            self._readers.setdefault(queue, []).append(identity)

    def rewire(self, identity: OperatorId, fragments: tuple[Node, ...]) -> None:
        """An operator reads other fragments from now on, with the same meaning."""
        for queue in self.queues_of(identity):
            self._readers[queue].remove(identity)
        self.fragments[identity] = fragments
        if fragments == self.operators[identity].inputs:
            del self.fragments[identity]
        for queue in self.queues_of(identity):
            self._readers.setdefault(queue, []).append(identity)

    def take_out(self, identity: OperatorId) -> None:
        """What was inserted, and nobody reads any more, is gone."""
        self._forget(identity)

    def readers(self, queue: QueueId) -> list[OperatorId]:
        """The operators that read a queue."""
        return self._readers.get(queue, [])

    def queries(self, identity: OperatorId) -> list[QueryName]:
        """The queries, or groups of them, that depend on an operator."""
        found: dict[QueryName, None] = {}
        seen, waiting = {identity}, [identity]
        while waiting:
            operator = self.operators[waiting[-1]]
            readers = self.readers(waiting.pop())
            if isinstance(operator, OutputOperator):
                found[operator.query] = None
            waiting += [each for each in reversed(readers) if each not in seen]
            seen.update(readers)
        return list(found)

    def serves(self, identity: OperatorId) -> int:
        """How many queries, or groups of them, depend on an operator."""
        return len(self.queries(identity))

    def describe(
        self,
        wanted: AbstractSet[OperatorId] | None = None,
        running: AbstractSet[OperatorId] | None = None,
        parts: Callable[[OperatorId], Mapping[Node, OperatorId]] = lambda identity: {},
    ) -> str:
        """The operators as text, sources first, with the names that parts of them have."""
        lines = []
        for identity, operator in self.operators.items():
            if wanted is not None and identity not in wanted:
                continue
            shared = " (already running)" if running and identity in running else ""
            lines.append(f"{identity}: {operator.label()}{shared}")
            fragments = self.fragments_of(identity)
            is_linear = isinstance(operator, LinearOperator)
            for fragment in fragments[0].inputs if is_linear else fragments:
                names = parts(identity)
                lines += ["    " + line for line in lines_of(fragment, names)]
            if isinstance(operator, JoinOperator) and not isinstance(operator.post, QueueRead):
                lines.append("    then " + " over ".join(n.label() for n in _path(operator.post)))
        return "\n".join(lines)

    def copy(self) -> Graph:
        """The same once more, to try something out."""
        return replace(self, **{f.name: _copied(getattr(self, f.name)) for f in fields(self)})

    def of_group(self, output: OperatorId) -> dict[OperatorId, tuple[bool, ...]]:
        """The operators above the matches of a group that is put out there, and which of their
        inputs are rows of its queries."""
        found: dict[OperatorId, tuple[bool, ...]] = {}
        for identity in sorted(self.upstream(output), key=BY_NUMBER):
            operator = self.operators[identity]
            inputs = tuple(
                any(
                    name in found or isinstance(self.operators[name], MatchOperator)
                    for name in operators_in(queues_in([each]))
                )
                for each in operator.inputs
            )
            if any(inputs):
                found[identity] = inputs
        return found

    def upstream(self, identity: OperatorId) -> set[OperatorId]:
        """The operator and all it depends on."""
        found, stack = {identity}, [identity]
        while stack:
            read = set(operators_in(self.queues_of(stack.pop()))) - found
            found |= read
            stack += read
        return found


def operators_in(queues: Iterable[QueueId]) -> list[OperatorId]:
    """The operators that some queues are behind; those of inputs are behind none."""
    return [queue for queue in queues if isinstance(queue, OperatorId)]


Reading = TypeVar("Reading", bound=Operator)


def redirected(operator: Reading, old: QueueId, new: QueueId) -> Reading:
    """The same operator with one queue in place of another one."""
    changed: dict[str, Any] = {}
    for each in fields(operator):
        value = getattr(operator, each.name)
        if isinstance(value, Node):
            changed[each.name] = _redirected(value, old, new)
        elif isinstance(value, tuple) and any(isinstance(part, Node) for part in value):
            changed[each.name] = tuple(_redirected(part, old, new) for part in value)
    return replace(operator, **changed)


def _redirected(fragment: Node, old: QueueId, new: QueueId) -> Node:
    made: dict[Node, Node] = {}
    for node in inputs_first(fragment):
        if isinstance(node, QueueRead) and node.queue == old:
            made[node] = replace(node, queue=new)
        else:
            made[node] = node.with_inputs(tuple(made[each] for each in node.inputs))
    return made[fragment]


def _path(node: Node) -> list[Node]:
    return [part for part in node.walk() if not isinstance(part, QueueRead)]


def _copied(value: Any) -> Any:
    """A value of its own where it can change."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return list(value) if isinstance(value, list) else value
