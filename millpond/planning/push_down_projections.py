"""Keeps only the columns somebody reads, so that synopses and queues stay narrow.

Every node is asked by its readers for columns, readers first. A node that several readers share
has the columns of all of them; what is fused into its readers has for each just those he asks for.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import chain

from millpond.cql.algebra import (
    Aggregate,
    Filter,
    Join,
    Project,
    RangeWindow,
    RelationScan,
    RowsWindow,
    SessionWindow,
    StreamScan,
    TimeFilter,
)
from millpond.cql.expressions import Expression
from millpond.cql.node import Node, follows_from_inputs, inputs_first
from millpond.planning.nodes import Arrivals, Combine
from millpond.planning.predicates import all_columns, columns_used, remap, rewrite_aggregate
from millpond.planning.properties import is_fused

MOST_FORMS = 16
"""So many readers have what is fused into them in a form of their own; more share one."""

Columns = frozenset[int]
Kept = dict[int, int]
"""Old position of each kept column → its new position."""


@dataclass(frozen=True)
class _Pruned:
    """A node with at least the columns asked for, and where each of them went."""

    node: Node
    kept: Kept

    def exactly(self, positions: list[int], names: tuple[str, ...]) -> Node:
        """The node projected to these columns of the old one, in this order."""
        wanted = [self.kept[position] for position in positions]
        if wanted == list(range(len(self.node.schema))):
            return self.node
        columns = all_columns(self.node)
        chosen = tuple(names[position] for position in positions)
        return Project(self.node, tuple(columns[i] for i in wanted), chosen)


@dataclass
class _Asked:
    """A node with the columns its readers ask for, and the forms in which they find it."""

    wishes: dict[Columns, Columns] = field(default_factory=dict)
    forms: dict[Columns, _Pruned] = field(default_factory=dict)

    def answer(self, node: Node) -> Iterable[Columns]:
        """Decides which forms the node has."""
        separate = is_fused(node) and len(self.wishes) <= MOST_FORMS
        if not separate and len(self.wishes) > 1:
            everything = frozenset().union(*self.wishes)
            self.wishes = dict.fromkeys(self.wishes, everything)
        return dict.fromkeys(self.wishes.values())

    def read(self, wish: Columns) -> _Pruned:
        """The node for one reader."""
        return self.forms[self.wishes[wish]]


def push_down_projections(plan: Node) -> Node:
    """The plan with the same result, computed from as few columns as possible."""
    order = list(dict.fromkeys(inputs_first(plan)))
    asked = {node: _Asked() for node in order}
    asked[plan].wishes[_all(plan)] = _all(plan)
    forms = {}
    for node in reversed(order):
        forms[node] = list(asked[node].answer(node))
        for form in forms[node]:
            for below, wish in zip(node.inputs, _needed(node, form), strict=True):
                asked[below].wishes.setdefault(wish, wish)
    for node in order:
        for form in forms[node]:
            pairs = zip(node.inputs, _needed(node, form), strict=True)
            inputs = tuple(asked[below].read(wish) for below, wish in pairs)
            asked[node].forms[form] = _pruned(node, form, inputs)
    return _exactly(asked[plan].read(_all(plan)), plan)


def _all(node: Node) -> Columns:
    return frozenset(range(len(node.schema)))


def _exactly(pruned: _Pruned, node: Node, positions: Iterable[int] | None = None) -> Node:
    """What was made of a node, with all its columns or with some, in order."""
    order = sorted(_all(node) if positions is None else positions)
    return pruned.exactly(order, node.schema.names)


# -- what a node asks of its inputs ----------------------------------------------------------


def _needed(node: Node, form: Columns) -> tuple[Columns, ...]:
    """The columns of each input, if some of a node are asked for."""
    match node:
        case Project():
            return (_used(node.expressions[position] for position in form),)
        case Filter():
            return (form | columns_used(node.predicate),)
        case TimeFilter():
            return (form | columns_used(node.until),)
        case RangeWindow():
            return (form,)
        case Arrivals() if _passes_on(node.input):
            return (form,)
        case RowsWindow() if _is_base(node.input):
            return (form | {column.position for column in node.partition},)
        case SessionWindow():
            own = frozenset(p for p in form if p < len(node.input.schema))
            return (own | {column.position for column in node.partition},)
        case Join():
            width = len(node.left.schema)
            both = form | columns_used(node.condition)
            return (
                frozenset(p for p in both if p < width),
                frozenset(p - width for p in both if p >= width),
            )
        case Aggregate():
            read = (node.aggregates[i].arguments for i in _aggregates_read(node, form))
            return (_used((*node.keys, *chain.from_iterable(read))),)
        case Combine():
            return form, form
        case _:
            return tuple(map(_all, node.inputs))


def _used(expressions: Iterable[Expression | None]) -> Columns:
    return frozenset().union(*map(columns_used, expressions))


@follows_from_inputs
def _passes_on(node: Node) -> bool:
    """Whether what arrives depends on tuples alone; a group's row arrives anew with any change."""
    tuple_wise = (Arrivals, Filter, Project, RangeWindow, Join, Combine, StreamScan, RelationScan)
    return isinstance(node, tuple_wise) and all(map(_passes_on, node.inputs))


@follows_from_inputs
def _is_base(node: Node) -> bool:
    """Computed streams order equal times by all their columns, so only base streams are pruned."""
    if isinstance(node, (Filter, Project)):
        return _is_base(node.input)
    return isinstance(node, StreamScan)


def _aggregates_read(node: Aggregate, form: Columns) -> list[int]:
    """Aggregates go unless read; one stays."""
    read = [i for i in range(len(node.aggregates)) if len(node.keys) + i in form]
    return read or list(range(len(node.aggregates)))[:1]


# -- a node over pruned inputs ---------------------------------------------------------------


def _pruned(node: Node, form: Columns, inputs: tuple[_Pruned, ...]) -> _Pruned:
    match node:
        case Project():
            return _project(node, form, inputs[0])
        case Filter():
            predicate = remap(node.predicate, inputs[0].kept)
            return _Pruned(Filter(inputs[0].node, predicate), inputs[0].kept)
        case TimeFilter():
            until = remap(node.until, inputs[0].kept)
            return _Pruned(replace(node, input=inputs[0].node, until=until), inputs[0].kept)
        case RangeWindow():
            return _Pruned(node.with_inputs((inputs[0].node,)), inputs[0].kept)
        case Arrivals() if _passes_on(node.input):
            return _Pruned(node.with_inputs((inputs[0].node,)), inputs[0].kept)
        case RowsWindow() if _is_base(node.input):
            return _rows_window(node, form, inputs[0])
        case SessionWindow():
            return _sessions(node, form, inputs[0])
        case Join():
            return _join(node, form, *inputs)
        case Aggregate():
            return _aggregate(node, form, inputs[0])
        case Combine():
            pairs = zip(inputs, node.inputs, strict=True)
            left, right = (_exactly(pruned, below, form) for pruned, below in pairs)
            return _Pruned(Combine(left, right, node.sign), _numbered(form))
        case _:
            pairs = zip(inputs, node.inputs, strict=True)
            whole = tuple(_exactly(pruned, below) for pruned, below in pairs)
            return _Pruned(node.with_inputs(whole), {p: p for p in _all(node)})


def _numbered(form: Iterable[int]) -> Kept:
    return {old: new for new, old in enumerate(sorted(form))}


def _project(node: Project, form: Columns, below: _Pruned) -> _Pruned:
    order = sorted(form)
    expressions = tuple(remap(node.expressions[p], below.kept) for p in order)
    names = tuple(node.names[p] for p in order)
    return _Pruned(Project(below.node, expressions, names), _numbered(form))


def _rows_window(node: RowsWindow, form: Columns, below: _Pruned) -> _Pruned:
    (needed,) = _needed(node, form)
    kept = _numbered(needed)
    partition = tuple(replace(c, position=kept[c.position]) for c in node.partition)
    exact = _exactly(below, node.input, needed)
    return _Pruned(replace(node, input=exact, partition=partition), kept)


def _sessions(node: SessionWindow, form: Columns, below: _Pruned) -> _Pruned:
    """The bounds stay; where nobody reads the end of a session, elements have their own."""
    (needed,) = _needed(node, form)
    kept, end = _numbered(needed), len(node.schema) - 1
    partition = tuple(replace(c, position=kept[c.position]) for c in node.partition)
    exact = _exactly(below, node.input, needed)
    told = "own" if node.told == "running" and end not in form else node.told
    bounds = {end - 1: len(needed), end: len(needed) + 1}
    return _Pruned(replace(node, input=exact, partition=partition, told=told), kept | bounds)


def _join(node: Join, form: Columns, left: _Pruned, right: _Pruned) -> _Pruned:
    """Both sides are kept, so no column is that nobody reads."""
    of_left, of_right = _needed(node, form)
    width = len(node.left.schema)
    kept = _numbered([*of_left, *(position + width for position in of_right)])
    condition = None if node.condition is None else remap(node.condition, kept)
    narrow = _exactly(left, node.left, of_left), _exactly(right, node.right, of_right)
    return _Pruned(Join(*narrow, node.kind, condition), kept)


def _aggregate(node: Aggregate, form: Columns, below: _Pruned) -> _Pruned:
    """All keys stay: they make the groups."""
    n_keys, read = len(node.keys), _aggregates_read(node, form)
    pruned = Aggregate(
        below.node,
        tuple(remap(key, below.kept) for key in node.keys),
        tuple(rewrite_aggregate(node.aggregates[i], lambda e: remap(e, below.kept)) for i in read),
        (*node.names[:n_keys], *(node.names[n_keys + i] for i in read)),
    )
    positions = {key: key for key in range(n_keys)}
    return _Pruned(pruned, positions | {n_keys + old: n_keys + new for new, old in enumerate(read)})
