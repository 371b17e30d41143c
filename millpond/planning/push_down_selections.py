"""Filters as early as possible: through projections, joins and Range windows, never Rows ones.

Every node is asked by its readers for rows that satisfy their conditions, readers first. One that
several readers share does what they all ask for; of the rest only the disjunction is pushed below
it, as a hint, and each reader selects its own above. What is fused into its readers anyway is no
one's: each reader has it with conditions of his own.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Filter,
    HopWindow,
    Join,
    Over,
    Project,
    RangeWindow,
    Rank,
    SessionWindow,
    SetOperation,
    TimeFilter,
)
from millpond.cql.expressions import Call, Expression
from millpond.cql.node import Node, inputs_first
from millpond.planning.attempts import may_fail
from millpond.planning.nodes import Combine
from millpond.planning.predicates import (
    all_columns,
    columns_used,
    conjoin,
    conjuncts,
    shift,
    size,
    size_after,
    substitute,
)
from millpond.planning.properties import is_fused
from millpond.schema import Type

MOST_FORMS = 16
"""So many readers have what is fused into them in a form of their own; more share one."""

MOST_ALTERNATIVES = 8
"""A disjunction of more conditions is not worth its cost."""

MOST_PARTS = 1_000
"""A condition that would become larger below a projection stays above it."""

_LEFT_PUSHABLE = ("inner", "left", "semi", "anti")
_RIGHT_PUSHABLE = ("inner", "right")
_LEFT_CONDITION = ("inner", "right", "semi")
_RIGHT_CONDITION = ("inner", "left", "semi", "anti")

Conjuncts = tuple[Expression, ...]


@dataclass(frozen=True)
class Wish:
    """What a reader asks of a node: rows that satisfy all ``parts``, and no other.

    ``hint``: it has no use for rows that satisfy none of these conjunctions, but may get some.
    ``is_fresh``: no operator lies between the readers who say that and here, so it saves nothing.
    """

    parts: Conjuncts = ()
    hint: tuple[Conjuncts, ...] = ()
    is_fresh: bool = False


NOTHING = Wish()


@dataclass(frozen=True)
class _Shares:
    """What a wish means below a node: a wish for each input, and what is left to select above it.

    ``condition``: that of a join, with what was added to it.
    """

    inputs: tuple[Wish, ...]
    stay: Conjuncts = ()
    condition: Expression | None = None


class _Chain:
    """Selections and projections on top of one another, of which only the top one is shared.

    A condition goes from its place to below them all at once, however many they are.
    """

    def __init__(self, steps: list[Filter | Project]) -> None:
        self.input = steps[-1].input
        self._kept: list[Filter | Project] = []
        """What stays of them, from the bottom up."""
        self._conditions: list[Expression] = []
        """What is selected below them."""
        self._columns: tuple[Expression, ...] | None = all_columns(self.input)
        """What the columns are in terms of the input; None from where that is too large."""
        self._sizes = [1] * len(self._columns)
        for step in reversed(steps):
            if isinstance(step, Project):
                self._project(step)
            else:
                self._filter(step)

    def _project(self, step: Project) -> None:
        self._sizes = [size_after(expression, self._sizes) for expression in step.expressions]
        if sum(self._sizes) > MOST_PARTS:
            self._columns = None
        if self._columns is not None:
            columns = self._columns
            self._columns = tuple(substitute(e, columns) for e in step.expressions)
        self._kept.append(step)

    def _filter(self, step: Filter) -> None:
        moved = [(part, self.below(part)) for part in conjuncts(step.predicate)]
        self._conditions += [new for _, new in moved if new is not None]
        stay = conjoin(part for part, new in moved if new is None)
        if stay is not None:
            self._kept.append(Filter(step.input, stay))

    def below(self, part: Expression) -> Expression | None:
        """A condition on what the chain makes, as one on its input, unless that is too large."""
        if self._columns is None or size_after(part, self._sizes) > MOST_PARTS:
            return None
        return substitute(part, self._columns)

    def shares(self, wish: Wish) -> _Shares:
        """What a wish means below the chain, with its own conditions."""
        moved = [(part, self.below(part)) for part in wish.parts]
        down = (*self._conditions, *(new for _, new in moved if new is not None))
        stay = tuple(part for part, new in moved if new is None)
        hint = _weakened(wish.hint, self.below)
        return _Shares((Wish(down, hint, wish.is_fresh),), stay)

    def over(self, node: Node) -> Node:
        """The chain over another input, without the conditions that went below it."""
        for step in self._kept:
            node = step.with_inputs((node,))
        return node


def _chains(plan: Node) -> dict[Node, _Chain | None]:
    """The nodes of a plan, inputs first, with the chains that begin there; not those inside one."""
    order = list(dict.fromkeys(inputs_first(plan)))
    readers = Counter(below for node in order for below in node.inputs)
    inside: set[Node] = set()
    steps: dict[Node, list[Filter | Project]] = {}
    for node in reversed(order):
        if node in inside or not isinstance(node, Filter | Project):
            continue
        step: Node = node
        steps[node] = mine = []
        while isinstance(step, Filter | Project):
            mine.append(step)
            step = step.input
            if readers[step] > 1:
                break
            inside.add(step)
    ends = {node for node in inside if not isinstance(node, Filter | Project)}
    return {
        node: _Chain(steps[node]) if node in steps else None
        for node in order
        if node in ends or node not in inside
    }


@dataclass
class _Asked:
    """A node with the wishes of its readers, and how each of them is met."""

    wishes: dict[Wish, Wish] = field(default_factory=dict)
    """The wish of each reader and the form in which he finds the node."""
    forms: dict[Wish, _Shares] = field(default_factory=dict)
    built: dict[Wish, Node] = field(default_factory=dict)

    def answer(self, node: Node, chain: _Chain | None) -> None:
        """Decides which forms the node has."""
        separate = is_fused(node) and len(self.wishes) <= MOST_FORMS
        if not separate and len(self.wishes) > 1:
            common = _common(list(self.wishes))
            self.wishes = dict.fromkeys(self.wishes, common)
        forms = dict.fromkeys(self.wishes.values())
        self.forms = {f: _shares(node, f) if chain is None else chain.shares(f) for f in forms}

    def read(self, wish: Wish) -> Node:
        """The node for one reader."""
        form = self.wishes[wish]
        return _filtered(self.built[form], [p for p in wish.parts if p not in form.parts])


def push_down_selections(plan: Node) -> Node:
    """The plan with every conjunct as close to its data as its meaning allows."""
    chains = _chains(plan)
    asked = {node: _Asked() for node in chains}
    asked[plan].wishes[NOTHING] = NOTHING
    for node, chain in reversed(chains.items()):
        asked[node].answer(node, chain)
        for shares in asked[node].forms.values():
            for below, wish in zip(_below(node, chain), shares.inputs, strict=True):
                asked[below].wishes.setdefault(wish, wish)
    for node, chain in chains.items():
        mine = asked[node]
        for form, shares in mine.forms.items():
            pairs = zip(_below(node, chain), shares.inputs, strict=True)
            inputs = tuple(asked[below].read(wish) for below, wish in pairs)
            mine.built[form] = _filtered(_over(node, chain, inputs, shares), shares.stay)
    return asked[plan].read(NOTHING)


def _below(node: Node, chain: _Chain | None) -> tuple[Node, ...]:
    return node.inputs if chain is None else (chain.input,)


def _over(node: Node, chain: _Chain | None, inputs: tuple[Node, ...], shares: _Shares) -> Node:
    if chain is not None:
        return chain.over(inputs[0])
    if isinstance(node, Join):
        return Join(inputs[0], inputs[1], node.kind, shares.condition)
    return node.with_inputs(inputs)


def _filtered(node: Node, parts: Iterable[Expression]) -> Node:
    predicate = conjoin(parts)
    return node if predicate is None else Filter(node, predicate)


# -- several readers -------------------------------------------------------------------------


def _common(wishes: list[Wish]) -> Wish:
    """What all readers ask for, and the disjunction of the rest as a hint.

    A part that may fail stays with the others of its reader, which may keep it from failing.
    """
    first, *others = wishes
    common = tuple(
        part
        for part in first.parts
        if all(part in other.parts for other in others) and not may_fail(part)
    )
    rests = [tuple(p for p in wish.parts if p not in common) for wish in wishes]
    finest = [
        rest + alternative
        for rest, wish in zip(rests, wishes, strict=True)
        for alternative in wish.hint or ((),)
    ]
    for alternatives in (finest, rests):
        found = _worthwhile(dict.fromkeys(alternatives))
        if found:
            return Wish(common, found, is_fresh=True)
    return Wish(common)


def _worthwhile(alternatives: Iterable[Conjuncts]) -> tuple[Conjuncts, ...]:
    """The alternatives, or none if they allow everything or are too many."""
    found = tuple(alternatives)
    small = len(found) <= MOST_ALTERNATIVES
    small = small and sum(size(p) for each in found for p in each) <= MOST_PARTS
    return found if small and all(found) else ()


def _disjunction(alternatives: tuple[Conjuncts, ...]) -> list[Expression]:
    """The alternatives as one condition; none if there is no hint."""
    parts = tuple(part for each in alternatives if (part := conjoin(each)) is not None)
    if len(parts) < 2:
        return list(parts)
    return [Call("or", parts, Type.BOOLEAN)]


def _weakened(
    hint: tuple[Conjuncts, ...], keep: Callable[[Expression], Expression | None]
) -> tuple[Conjuncts, ...]:
    """What a hint says of the parts that ``keep`` carries over; nothing if of one it says none."""
    carried = (tuple(k for part in each if (k := keep(part)) is not None) for each in hint)
    return _worthwhile(dict.fromkeys(carried))


# -- one node --------------------------------------------------------------------------------


def _shares(node: Node, wish: Wish) -> _Shares:
    match node:
        case RangeWindow() | Combine():
            return _Shares((wish,) * len(node.inputs))
        case Distinct() | SetOperation() | TimeFilter():
            return _Shares((replace(wish, is_fresh=False),) * len(node.inputs))
        case HopWindow():
            return _through_hops(node, wish)
        case Rank() | Over() | SessionWindow():
            return _through_partition(node, wish)
        case Aggregate():
            return _through_aggregate(node, wish)
        case Join():
            return _through_join(node, wish)
        case _:
            above = [] if wish.is_fresh else _disjunction(wish.hint)
            return _Shares((NOTHING,) * len(node.inputs), (*wish.parts, *above))


def _through_hops(node: HopWindow, wish: Wish) -> _Shares:
    """What does not speak of the bounds of windows."""
    width = len(node.input.schema)

    def below(part: Expression) -> Expression | None:
        return part if all(position < width for position in columns_used(part)) else None

    return _divided(wish, below)


def _through_partition(node: Rank | Over | SessionWindow, wish: Wish) -> _Shares:
    """Only what speaks of the partition alone: other rows of it count too."""
    partition = {column.position for column in node.partition}

    def below(part: Expression) -> Expression | None:
        used = columns_used(part)
        return part if used and used <= partition else None

    return _divided(wish, below)


def _through_aggregate(node: Aggregate, wish: Wish) -> _Shares:
    """Only what speaks of the group's key alone; a global aggregate has no key."""

    def below(part: Expression) -> Expression | None:
        used = columns_used(part)
        is_key = bool(used) and all(position < len(node.keys) for position in used)
        return substitute(part, node.keys) if is_key else None

    return _divided(wish, below)


def _divided(wish: Wish, below: Callable[[Expression], Expression | None]) -> _Shares:
    """What of a wish goes to the only input, as what ``below`` makes of it, and what stays."""
    moved = [(part, below(part)) for part in wish.parts]
    down = tuple(new for _, new in moved if new is not None)
    stay = [part for part, new in moved if new is None]
    hint = _weakened(wish.hint, below)
    if not (hint or wish.is_fresh):
        stay += _disjunction(wish.hint)
    return _Shares((Wish(down, hint),), tuple(stay))


def _through_join(node: Join, wish: Wish) -> _Shares:
    """Also moves one-sided conjuncts of ON into their side, where that changes nothing."""
    width = len(node.left.schema)

    def left(part: Expression, kinds: tuple[str, ...]) -> Expression | None:
        used = columns_used(part)
        return part if used and max(used) < width and node.kind in kinds else None

    def right(part: Expression, kinds: tuple[str, ...]) -> Expression | None:
        used = columns_used(part)
        is_right = used and min(used) >= width and node.kind in kinds
        return shift(part, -width) if is_right else None

    lefts, rights, on, stay = [], [], [], []
    for part in conjuncts(node.condition):
        if left(part, _LEFT_CONDITION) is not None:
            lefts.append(part)
        elif (moved := right(part, _RIGHT_CONDITION)) is not None:
            rights.append(moved)
        else:
            on.append(part)
    for part in wish.parts:
        if left(part, _LEFT_PUSHABLE) is not None:
            lefts.append(part)
        elif (moved := right(part, _RIGHT_PUSHABLE)) is not None:
            rights.append(moved)
        elif node.kind == "inner":
            on.append(part)
        else:
            stay.append(part)
    left_hint = _weakened(wish.hint, lambda part: left(part, _LEFT_PUSHABLE))
    right_hint = _weakened(wish.hint, lambda part: right(part, _RIGHT_PUSHABLE))
    says_all = any(sum(map(len, h)) == sum(map(len, wish.hint)) for h in (left_hint, right_hint))
    if node.kind == "inner" and not says_all:
        on += _disjunction(wish.hint)
    return _Shares(
        (Wish(tuple(lefts), left_hint), Wish(tuple(rights), right_hint)), tuple(stay), conjoin(on)
    )
