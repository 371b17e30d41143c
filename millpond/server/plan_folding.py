"""Boxes of a plan: one for each operator, or one for all that do the same, or for a whole view.

Operators do the same if they differ in constants only and what they read does the same: so queries
of one shape, sharing operators or not, are one row of boxes however many they are.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from millpond.catalog import ViewEntry
from millpond.cql.node import Node, lines_of
from millpond.facade.engine import Engine
from millpond.identities import OperatorId, QueryId, QueryName
from millpond.planning.graph import Graph, operators_in
from millpond.planning.optimise import optimise
from millpond.planning.physical import Operator, OutputOperator

OWN = ("query", "group", "number", "begins")
"""Fields of operators that say whose they are, and not what they do."""

KEPT_BOXES = 8
"""The boxes of so many ways to look at the plan are remembered."""

_CONSTANT = re.compile(r"'(?:[^']|'')*'|(?<![\w.:@?])\d+(?:\.\d+)?(?:e[+-]?\d+)?\b", re.IGNORECASE)
_READ = re.compile(r"\bRead (\S+)")

Members = list[OperatorId]


@dataclass(frozen=True)
class Wish:
    """What is to be seen of a plan."""

    query: str | None = None
    """Only what works for this one."""
    folds: bool = False
    """Whether operators that do the same are one box, and so are those of a view."""
    opened: frozenset[str] = frozenset()
    """The boxes that are not folded all the same."""
    find: str = ""
    """What is looked for, in lower case."""


@dataclass(frozen=True)
class Boxes:
    """Which operators are in which box; boxes come after those that they read."""

    members: Mapping[str, Members]
    kinds: Mapping[str, str]
    """``operator``, ``shape`` or ``view``."""
    of: Mapping[OperatorId, str]
    views: Mapping[str, int] = field(default_factory=dict)
    """The views that run as operators of their own, and how many these are."""
    outputs: dict[str, tuple[QueryName, ...]] = field(default_factory=dict)
    """For boxes that were looked at the queries, and groups of them, that they work for."""

    def served(self, graph: Graph, box: str) -> tuple[QueryName, ...]:
        """The queries, and groups of them, that depend on a box."""
        if box not in self.outputs:
            names = (q.asked_by for each in self.members[box] for q in graph.queries(each))
            self.outputs[box] = tuple(dict.fromkeys(names))
        return self.outputs[box]


class Folding:
    """Puts the operators of an engine into boxes; what an operator does is worked out once."""

    def __init__(self) -> None:
        self._outlines: dict[OperatorId, tuple[Operator, str]] = {}
        self._known: dict[tuple[object, ...], Boxes] = {}

    def boxes(self, engine: Engine, wish: Wish) -> Boxes:
        """The boxes of the operators that are wanted; the lock is held."""
        graph, views = engine.graph, len(list(engine.catalog.of_kind(ViewEntry)))
        running = len(engine.runtime.running) if engine.has_runtime else 0
        state = graph.next_number, len(graph.operators), running, graph.pairs, views
        key = (*state, wish.query, wish.folds, wish.opened)
        if key not in self._known:
            self._known = {k: v for k, v in self._known.items() if k[: len(state)] == state}
            self._known[key] = self._new_boxes(engine, wish)
            while len(self._known) > KEPT_BOXES:
                del self._known[next(iter(self._known))]
        return self._known[key]

    def _new_boxes(self, engine: Engine, wish: Wish) -> Boxes:
        operators, graph = _wanted(engine, wish), engine.graph
        if not wish.folds:
            return _alone(operators)
        views = _views(engine, set(operators))
        box_of: dict[OperatorId, str] = {}
        kinds: dict[str, str] = {}
        for name, inside in views.items():
            box = f"view:{name}"
            free = [each for each in inside if each not in box_of]
            if free and box not in wish.opened:
                box_of |= dict.fromkeys(free, box)
                kinds[box] = "view"
        shapes: dict[str, Members] = defaultdict(list)
        for each, digest in self._digests(graph, operators).items():
            if each not in box_of:
                shapes[f"shape:{digest}"].append(each)
        for name, members in shapes.items():
            if len(members) > 1 and name not in wish.opened:
                box_of |= dict.fromkeys(members, name)
                kinds[name] = "shape"
        for each in operators:
            kinds.setdefault(box_of.setdefault(each, each), "operator")
        sizes = {name: len(inside) for name, inside in views.items()}
        return Boxes(_in_order(graph, operators, box_of), kinds, box_of, sizes)

    def _digests(self, graph: Graph, operators: Members) -> dict[OperatorId, str]:
        """For each operator what it does, and what all that it reads does."""
        known: dict[OperatorId, str] = {}
        for each in _inputs_first(graph, operators):
            text = _READ.sub(
                lambda found: f"Read {_digest_of(found[1], known)}",
                self._outline(each, graph.operators[each]),
            )
            known[each] = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:12]
        self._outlines = {k: v for k, v in self._outlines.items() if k in graph.operators}
        return {each: known[each] for each in operators}

    def _outline(self, identity: OperatorId, operator: Operator) -> str:
        found = self._outlines.get(identity)
        if found is None or found[0] is not operator:
            found = self._outlines[identity] = operator, outline(operator)
        return found[1]


def _wanted(engine: Engine, wish: Wish) -> Members:
    """The running operators, or those of them that work for one query."""
    running = list(engine.runtime.running) if engine.has_runtime else []
    output = engine.queries.outputs.get(QueryId(wish.query)) if wish.query else None
    if output is None or output not in running:
        return running
    wanted = engine.graph.upstream(output)
    return [each for each in running if each in wanted]


def outline(operator: Operator) -> str:
    """What an operator does, without constants and without saying whose it is."""
    parts = [type(operator).__name__]
    for each in fields(operator):
        value = getattr(operator, each.name)
        if each.name not in OWN:
            parts.append("\n".join(lines_of(value)) if isinstance(value, Node) else str(value))
    return without_constants("\n".join(parts))


def without_constants(text: str) -> str:
    """A text of a plan in which constants are question marks.

    >>> without_constants("Filter a > 17 AND name = 'it''s' Read op12")
    'Filter a > ? AND name = ? Read op12'
    """
    return _CONSTANT.sub("?", text)


def _digest_of(queue: str, known: Mapping[OperatorId, str]) -> str:
    """What stands for a queue: the digest of its operator, or its input in whatever epoch."""
    operator = OperatorId.written(queue)
    return queue.partition("@")[0] if operator is None else known.get(operator, queue)


def _alone(operators: Members) -> Boxes:
    boxes: dict[str, Members] = {each: [each] for each in operators}
    return Boxes(boxes, dict.fromkeys(boxes, "operator"), {each: each for each in operators})


def _views(engine: Engine, wanted: set[OperatorId]) -> dict[str, Members]:
    """The views that run as operators, each with those that work for nothing else below it."""
    found: dict[str, Members] = {}
    for entry in engine.catalog.of_kind(ViewEntry):
        tops = [each for each in _tops(engine.graph, entry) if each in wanted]
        inside = {each for top in tops for each in _only_for(engine.graph, top)}
        if inside:
            found[entry.name] = [each for each in engine.graph.operators if each in inside]
    return found


def _tops(graph: Graph, entry: ViewEntry) -> Members:
    """The operators that do what a view does, but for selections and projections at its end, which
    are a part of what reads it."""
    node = optimise(entry.plan, "stop")
    while not (found := graph.made_of(node)) and len(node.inputs) == 1:
        (node,) = node.inputs
    return [each for each in found if not isinstance(graph.operators[each], OutputOperator)]


def _only_for(graph: Graph, top: OperatorId) -> set[OperatorId]:
    """An operator, and all below it that nobody else reads."""
    inside = {top}
    for each in reversed(_inputs_first(graph, graph.upstream(top))):
        if each != top and all(reader in inside for reader in graph.readers(each)):
            inside.add(each)
    return inside


def _inputs_first(graph: Graph, operators: Iterable[OperatorId]) -> Members:
    """Operators, each after those that it reads."""
    ordered: dict[OperatorId, None] = {}
    wanted = dict.fromkeys(operators)
    for first in wanted:
        stack = [(first, False)]
        while stack:
            each, is_done = stack.pop()
            if is_done:
                ordered[each] = None
            elif each not in ordered:
                stack.append((each, True))
                inputs = operators_in(graph.queues_of(each))
                stack += [(up, False) for up in reversed(inputs) if up not in ordered]
    return [each for each in ordered if each in wanted]


def _in_order(
    graph: Graph, operators: Members, box_of: Mapping[OperatorId, str]
) -> dict[str, Members]:
    """The boxes with their members, each after those that it reads."""
    members: dict[str, Members] = defaultdict(list)
    for each in operators:
        members[box_of[each]].append(each)
    reads = {
        box: dict.fromkeys(
            box_of[up]
            for each in inside
            for up in operators_in(graph.queues_of(each))
            if up in box_of and box_of[up] != box
        )
        for box, inside in members.items()
    }
    ordered: dict[str, Members] = {}
    for first in members:
        stack = [(first, False)]
        while stack:
            box, is_done = stack.pop()
            if is_done:
                ordered[box] = members[box]
            elif box not in ordered:
                stack.append((box, True))
                stack += [(up, False) for up in reversed(reads[box]) if up not in ordered]
    return ordered
