"""ON ERROR SKIP: the plan in which nothing fails, and the plans of what it leaves out.

Every clause is guarded as it is written, before any rewrite: a condition becomes one that is true
where it was and false or NULL where it failed; below a select list or an aggregation stands a
filter that keeps the rows on which all its expressions have values. See docs/semantics.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import NamedTuple

from millpond.cql.algebra import (
    Aggregate,
    Filter,
    Join,
    LateralJoin,
    Project,
    RangeWindow,
    SetOperation,
    TimeFilter,
    UntilWindow,
)
from millpond.cql.coercion import as_text
from millpond.cql.expressions import (
    Call,
    Column,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Quantified,
    ScalarSubquery,
    walk,
)
from millpond.cql.node import Node, inputs_first
from millpond.cql.outer_columns import outer_columns
from millpond.cql.row_patterns import DEFINE, MatchRecognize
from millpond.cql.written import Written
from millpond.errors import MillpondError
from millpond.planning.attempts import (
    all_of,
    failure,
    may_fail,
    negation,
    sizes,
    success,
    truth,
    value,
)
from millpond.planning.nodes import Combine
from millpond.planning.predicates import (
    all_columns,
    conjoin,
    conjuncts,
    rewrite,
    rewrite_aggregate,
)
from millpond.schema import Schema, Type

MAX_SIZE = 20_000
"""How large the guards of one expression may become."""

_SUBQUERIES = (Exists, InSubquery, Quantified, ScalarSubquery)


@dataclass(frozen=True)
class Fault:
    """A clause that may fail, and the relation (expression, row) of what it leaves out.

    ``uses``: in how many places of the query, views included, the clause stands.
    """

    clause: str
    expressions: tuple[str, ...]
    plan: Node
    uses: int = 1


class Guarded(NamedTuple):
    """A plan in which nothing fails, and what it leaves out."""

    plan: Node
    faults: list[Fault]


def guard(plan: Node) -> Guarded:
    """The plan of a checked query under ON ERROR SKIP."""
    guarding = _Guard()
    guarded, uses = guarding.plan(plan), _uses(plan)
    faults = [replace(fault, uses=uses[node]) for node, fault in guarding.faults]
    return Guarded(guarded, faults)


def _uses(plan: Node) -> dict[int, int]:
    """How often each node, by its identity, is read on the ways from the top, subqueries too."""
    order = list(inputs_first(plan, into=True))
    uses = {id(node): 0 for node in order} | {id(plan): 1}
    for node in reversed(order):
        for below in _read_by(node):
            uses[id(below)] += uses[id(node)]
    return uses


def _read_by(node: Node) -> tuple[Node, ...]:
    """What a node reads, as the script has it: what a condition asks before and after a time, it
    asks once."""
    if isinstance(node, TimeFilter) and node.is_second:
        return ()
    below = node.inputs[0] if isinstance(node, Filter) else None
    while isinstance(below, TimeFilter):
        if below.is_second:
            return node.inputs
        below = below.input
    return (*node.inputs, *node.subqueries)


def left_out(faults: Sequence[Fault]) -> Node | None:
    """All that a query leaves out, as one relation (expression, row); None if nothing can fail."""
    plans = [_times(fault.plan, fault.uses) for fault in faults]
    while len(plans) > 1:
        pairs = [plans[i : i + 2] for i in range(0, len(plans), 2)]
        plans = [SetOperation(p[0], p[1], "union", all=True) if p[1:] else p[0] for p in pairs]
    return plans[0] if plans else None


def _times(plan: Node, uses: int) -> Node:
    """A relation, every row so often."""
    return plan if uses == 1 else Combine(plan, plan, uses - 1)


class _Guard:
    """Walks a plan from its sources up, each node once, collecting faults.

    Nodes are told apart by identity: equal ones may stand in different places of the script.
    """

    def __init__(self) -> None:
        self.faults: list[tuple[int, Fault]] = []
        """What each node, by its identity, leaves out."""
        self._guarded: dict[int, Node] = {}
        self._at = 0

    def plan(self, plan: Node) -> Node:
        """The plan, guarded."""
        for node in inputs_first(plan, lambda one: id(one) in self._guarded, into=True):
            self._at = id(node)
            self._guarded[id(node)] = self._node(node)
        return self._guarded[id(plan)]

    def _node(self, node: Node) -> Node:
        below = node.with_inputs(tuple(self._guarded[id(child)] for child in node.inputs))
        match below:
            case Filter():
                return self._filter(below)
            case Project():
                return self._project(below)
            case Aggregate():
                return self._aggregate(below)
            case TimeFilter():  # the condition above it says what is left out
                return replace(below, until=value(below.until))
            case UntilWindow():
                self._note("UNTIL", below.input, (below.until,), [below.written])
                return replace(below, until=value(below.until))
            case MatchRecognize():  # conditions that fail are not true, here and in its input
                definitions = [replace(d, condition=truth(d.condition)) for d in below.definitions]
                return replace(below, definitions=tuple(definitions))
            case LateralJoin() if below.condition is not None:  # of which pairs the row decides
                return replace(below, condition=truth(self._sealed(below.condition)))
            case Join() if below.condition is not None:
                return self._join(below, self._sealed(below.condition))
            case _:
                return below

    def _sealed(self, expression: Expression) -> Expression:
        """The expression with its subqueries guarded."""

        def change(part: Expression) -> Expression:
            if isinstance(part, _SUBQUERIES):
                return replace(part, subquery=self._guarded[id(part.subquery)])
            return part

        return rewrite(expression, change)

    def _filter(self, node: Filter) -> Node:
        predicate = self._sealed(node.predicate)
        clause = node.written.clause if node.written else "WHERE"
        judged = conjoin(map(_for_some_outer_row, conjuncts(predicate))) or predicate
        self._note(clause, node.input, (judged,), [node.written])
        return replace(node, predicate=truth(predicate))

    def _join(self, node: Join, condition: Expression) -> Node:
        if self._checked("ON", (condition,), [node.written]):
            pairs = Join(node.left, node.right, "inner", failure((condition,)))
            self._keep("ON", pairs, (condition,), [node.written])
        return replace(node, condition=truth(condition))

    def _project(self, node: Project) -> Node:
        expressions = tuple(map(self._sealed, node.expressions))
        written = chain(node.written, repeat(None))
        expressions = tuple(
            truth(e) if w is not None and w.clause == DEFINE else e
            for e, w in zip(expressions, written, strict=False)
        )
        if not self._note("SELECT", node.input, expressions, node.written):
            return replace(node, expressions=expressions)
        new = replace(node, expressions=tuple(map(value, expressions)))
        have_values = all_of(map(success, expressions))
        if not any(_has_subquery(expression) for expression in expressions):
            return replace(new, input=Filter(node.input, have_values))
        # Computed in one place, a subquery is joined once.
        marked = (*new.expressions, have_values), (*new.names, "succeeds")
        column = Column(len(new.names), Type.BOOLEAN, "succeeds")
        kept = Filter(Project(node.input, *marked), column)
        return Project(kept, all_columns(new), new.names)

    def _aggregate(self, node: Aggregate) -> Node:
        parts = [*((key,) for key in node.keys), *(a.arguments for a in node.aggregates)]
        written = [w for w, part in zip(node.written, parts, strict=False) for _ in part]
        used = tuple(chain.from_iterable(parts))
        if not self._note("GROUP BY", node.input, used, written):
            return node
        return replace(
            node,
            input=Filter(node.input, all_of(map(success, used))),
            keys=tuple(map(value, node.keys)),
            aggregates=tuple(rewrite_aggregate(a, value) for a in node.aggregates),
        )

    def _note(
        self,
        clause: str,
        rows: Node,
        expressions: tuple[Expression, ...],
        written: Sequence[Written | None],
    ) -> bool:
        """Whether a clause over rows can fail; if so, notes which it leaves out."""
        if not self._checked(clause, expressions, written):
            return False
        self._keep(clause, Filter(rows, failure(expressions)), expressions, written)
        return True

    def _checked(
        self, clause: str, expressions: tuple[Expression, ...], written: Sequence[Written | None]
    ) -> bool:
        for label, expression in _labelled(clause, expressions, written):
            if sum(sizes(expression)) > MAX_SIZE:
                raise MillpondError(
                    f"{label} is too large for ON ERROR SKIP; CREATE VIEW can name parts of it"
                )
        return any(map(may_fail, expressions))

    def _keep(
        self,
        clause: str,
        rows: Node,
        expressions: tuple[Expression, ...],
        written: Sequence[Written | None],
    ) -> None:
        """Notes the rows, each with the first of the expressions that fails on it."""
        failing = [
            (Literal(label, Type.STRING), expression)
            for label, expression in _labelled(clause, expressions, written)
            if may_fail(expression)
        ]
        first: Expression = failing[-1][0]
        for label, expression in reversed(failing[:-1]):
            first = Call("case", (success(expression), first, label), Type.STRING)
        kept = _closed(RangeWindow(rows, None) if rows.is_stream else rows)
        plan = Project(kept, (first, _text(kept.schema)), ("expression", "row"))
        labels = tuple(str(label.value) for label, _ in failing)
        self.faults.append((self._at, Fault(clause, labels, plan)))


def _labelled(
    clause: str, expressions: tuple[Expression, ...], written: Sequence[Written | None]
) -> list[tuple[str, Expression]]:
    """Each expression with the words it has in the script, or its own."""
    words = [*written, *[None] * (len(expressions) - len(written))]
    return [(str(w) if w else f"{clause} {e}", e) for w, e in zip(words, expressions, strict=True)]


def _text(schema: Schema) -> Expression:
    """A row as one text: a = 1, b = NULL."""
    null = Literal("NULL", Type.STRING)
    parts: list[Expression] = []
    for position, field in enumerate(schema.fields):
        column: Expression = Column(position, field.type, field.name)
        if field.type is not Type.STRING:
            column = as_text(column)
        before = ", " if position else ""
        parts += [
            Literal(f"{before}{field.name} = ", Type.STRING),
            Call("coalesce", (column, null), Type.STRING),
        ]
    return Call("concat", tuple(parts), Type.STRING)


def _has_subquery(expression: Expression) -> bool:
    return any(isinstance(part, _SUBQUERIES) for part in walk(expression))


# What a correlated subquery leaves out is found for all outer rows at once.


def _is_correlated(expression: Expression) -> bool:
    return any(True for _ in outer_columns(expression))


def _inner_side(part: Expression) -> Expression | None:
    """The side of `inner = outer` that belongs to the subquery; None if it is something else."""
    sides = part.arguments if isinstance(part, Call) and part.function == "=" else ()
    inner = [side for side in sides if not _is_correlated(side)]
    return inner[0] if len(inner) == 1 else None


def _for_some_outer_row(part: Expression) -> Expression:
    """A conjunct; if it compares with the outer row, as one that such a row can make true."""
    if not _is_correlated(part):
        return part
    inner = _inner_side(part)
    if inner is None:
        return Literal(True, Type.BOOLEAN)
    return Call("is_not_distinct", (inner, inner), Type.BOOLEAN)


def _closed(plan: Node) -> Node:
    """The plan without outer columns: rows that some outer row can be equal to."""
    new: dict[int, Node] = {}
    for node in inputs_first(plan):
        inputs = tuple(new[id(below)] for below in node.inputs)
        if isinstance(node, LateralJoin):  # its right side names columns of its left one
            inputs = (inputs[0], node.right)
        new[id(node)] = _closed_filter(node.with_inputs(inputs))
    return new[id(plan)]


def _closed_filter(node: Node) -> Node:
    if not (isinstance(node, Filter) and _is_correlated(node.predicate)):
        return node
    parts = [part for part in conjuncts(node.predicate) if not _is_correlated(part)]
    for part in conjuncts(node.predicate):
        inner = _inner_side(part) if _is_correlated(part) else None
        if inner is not None:
            parts.append(negation(Call("is_null", (inner,), Type.BOOLEAN)))
    return replace(node, predicate=conjoin(parts) or Literal(True, Type.BOOLEAN))
