"""Turns subqueries in expressions into joins, so that execution knows no nested query.

A conjunct EXISTS, NOT EXISTS or IN becomes a semi or anti join. Everywhere else a subquery becomes
columns attached to each row of the outer query: whether there is a match, how many rows and values
there are, the smallest and the largest value, or the aggregates of a scalar subquery. SQL's three
truth values then follow by CASE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Node,
    Project,
)
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Exists,
    Expression,
    InSubquery,
    Literal,
    OuterColumn,
    Quantified,
    ScalarSubquery,
    children,
    walk,
    with_children,
)
from millpond.errors import MillpondError
from millpond.planning.name_movers import name_movers
from millpond.planning.nodes import Combine
from millpond.planning.predicates import (
    all_columns,
    columns_used,
    conjoin,
    conjuncts,
    rewrite,
    rewrite_bottom_up,
    substitute,
)
from millpond.schema import Type

Subquery = (Exists, InSubquery, Quantified, ScalarSubquery)
_TRUE = Literal(True, Type.BOOLEAN)
_FALSE = Literal(False, Type.BOOLEAN)
_UNKNOWN = Literal(None, Type.BOOLEAN)
_ZERO = Literal(0, Type.BIGINT)


def unnest_subqueries(plan: Node) -> Node:
    """The plan without any subquery expression."""
    return rewrite_bottom_up(plan, _unnest)


def _unnest(node: Node) -> Node:
    match node:
        case Filter() if _has_subquery(node.predicate):
            return _unnest_filter(node)
        case Project() if any(map(_has_subquery, node.expressions)):
            attached = _Attached(node.input)
            expressions = tuple(attached.replace(e) for e in node.expressions)
            return Project(attached.node, expressions, node.names)
        case Aggregate():
            return _unnest_aggregate(node)
        case Join() if node.condition is not None and _has_subquery(node.condition):
            raise MillpondError("a subquery in ON is not supported; put it into WHERE")
        case _:
            return node


def _has_subquery(expression: Expression) -> bool:
    return any(isinstance(part, Subquery) for part in walk(expression))


def _unnest_aggregate(node: Aggregate) -> Node:
    used = [*node.keys, *(a.argument for a in node.aggregates if a.argument is not None)]
    if not any(map(_has_subquery, used)):
        return node
    attached = _Attached(node.input)
    keys = tuple(attached.replace(key) for key in node.keys)
    aggregates = tuple(
        a if a.argument is None else replace(a, argument=attached.replace(a.argument))
        for a in node.aggregates
    )
    return Aggregate(attached.node, keys, aggregates, node.names)


def _unnest_filter(node: Filter) -> Node:
    """Semi and anti joins for whole conjuncts, attached columns for the rest."""
    result, width, rest = node.input, len(node.input.schema), []
    for part in conjuncts(node.predicate):
        join = _as_join(result, part)
        if join is None:
            rest.append(part)
        else:
            result = join
    attached = _Attached(result)
    predicate = conjoin(attached.replace(part) for part in rest)
    if predicate is None:
        return result
    filtered: Node = Filter(attached.node, predicate)
    if len(filtered.schema) == width:
        return filtered
    return Project(filtered, all_columns(filtered)[:width], filtered.schema.names[:width])


def _as_join(outer: Node, part: Expression) -> Node | None:
    negated = isinstance(part, Call) and part.function == "not"
    inner = part.arguments[0] if isinstance(part, Call) and negated else part
    if isinstance(inner, Exists):
        subquery = _decorrelate(inner.subquery)
        if subquery.is_global_aggregate:
            return None
        condition = subquery.condition(len(outer.schema))
        return Join(outer, subquery.node, "anti" if negated else "semi", condition)
    if isinstance(inner, InSubquery) and not negated and not _has_subquery(inner.value):
        subquery = _decorrelate(inner.subquery)
        width = len(outer.schema)
        value = Column(width, inner.value.type)
        equal = Call("=", (inner.value, value), Type.BOOLEAN)
        condition = conjoin([equal, *conjuncts(subquery.condition(width))])
        return Join(outer, subquery.node, "semi", condition)
    return None


@dataclass(frozen=True)
class _Decorrelated:
    """A subquery free of outer columns: its last columns are keys, to equal ``outer``.

    ``outer`` are expressions over the enclosing query's columns.
    """

    node: Node
    outer: tuple[Expression, ...]
    is_global_aggregate: bool = False

    @property
    def key_positions(self) -> range:
        width = len(self.node.schema)
        return range(width - len(self.outer), width)

    def condition(self, offset: int) -> Expression | None:
        """Outer columns equal keys, in a join whose left side is ``offset`` wide."""
        keys = zip(self.outer, self.key_positions, strict=True)
        return conjoin(
            Call("=", (outer, Column(offset + key, outer.type)), Type.BOOLEAN)
            for outer, key in keys
        )


def _decorrelate(node: Node) -> _Decorrelated:
    """Moves the equalities with outer columns out of a subquery, appending their inner sides."""
    node = unnest_subqueries(name_movers(node))
    match node:
        case Filter():
            return _decorrelate_filter(node)
        case Project():
            below = _decorrelate(node.input)
            keys = [all_columns(below.node)[k] for k in below.key_positions]
            names = tuple(below.node.schema.names[k] for k in below.key_positions)
            project = Project(below.node, (*node.expressions, *keys), (*node.names, *names))
            return _Decorrelated(project, below.outer, below.is_global_aggregate)
        case Distinct():
            below = _decorrelate(node.input)
            return _Decorrelated(Distinct(below.node), below.outer, below.is_global_aggregate)
        case Aggregate():
            return _decorrelate_aggregate(node)
        case _:
            _refuse_outer(node)
            return _Decorrelated(node, ())


def _decorrelate_filter(node: Filter) -> _Decorrelated:
    below = _decorrelate(node.input)
    keep: list[Expression] = []
    outer: list[Expression] = []
    inner: list[Expression] = []
    for part in conjuncts(node.predicate):
        sides = _correlation(part)
        if sides is None:
            keep.append(part)
        else:
            inner.append(sides[0])
            outer.append(sides[1])
    predicate = conjoin(keep)
    _refuse_outer_in(predicate)
    result = below.node if predicate is None else Filter(below.node, predicate)
    if inner:
        names = tuple(f"correlation{i}" for i in range(len(inner)))
        result = Project(result, (*all_columns(result), *inner), (*result.schema.names, *names))
    return _Decorrelated(result, (*below.outer, *outer), below.is_global_aggregate)


def _decorrelate_aggregate(node: Aggregate) -> _Decorrelated:
    """Adds the correlation keys to the groups; the schema stays keys, aggregates, then the new."""
    below = _decorrelate(node.input)
    if not below.outer:
        return _Decorrelated(
            Aggregate(below.node, node.keys, node.aggregates, node.names), (), not node.keys
        )
    extra = tuple(all_columns(below.node)[k] for k in below.key_positions)
    n_keys, n_extra, n_aggregates = len(node.keys), len(extra), len(node.aggregates)
    names = (
        *node.names[:n_keys],
        *(f"correlation{i}" for i in range(n_extra)),
        *node.names[n_keys:],
    )
    grouped = Aggregate(below.node, (*node.keys, *extra), node.aggregates, names)
    columns = all_columns(grouped)
    order = [
        *range(n_keys),
        *range(n_keys + n_extra, n_keys + n_extra + n_aggregates),
        *range(n_keys, n_keys + n_extra),
    ]
    moved = Project(grouped, tuple(columns[i] for i in order), tuple(names[i] for i in order))
    return _Decorrelated(moved, below.outer, not node.keys)


def _correlation(part: Expression) -> tuple[Expression, Expression] | None:
    """The inner and the outer side of an equality between the two, or None."""
    if isinstance(part, Call) and part.function == "=":
        left, right = part.arguments
        for inner, outer in ((left, right), (right, left)):
            if _has_outer(outer) and not columns_used(outer) and not _has_outer(inner):
                return inner, rewrite(outer, _as_column)
    return None


def _as_column(part: Expression) -> Expression:
    if isinstance(part, OuterColumn):
        return Column(part.position, part.type, part.name)
    return part


def _has_outer(expression: Expression) -> bool:
    return any(isinstance(part, OuterColumn) for part in walk(expression))


def _refuse_outer_in(expression: Expression | None) -> None:
    if expression is not None and _has_outer(expression):
        raise MillpondError(
            f"a subquery may use columns of the outer query only in equalities "
            f"`inner expression = outer column` of its WHERE, not in {expression}"
        )


def _refuse_outer(node: Node) -> None:
    for part in node.walk():
        if isinstance(part, Filter):
            _refuse_outer_in(part.predicate)
        if isinstance(part, Project):
            for expression in part.expressions:
                _refuse_outer_in(expression)


class _Attached:
    """A node that grows columns at its right end, one group a subquery."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._known: dict[Expression, Expression] = {}

    def replace(self, expression: Expression) -> Expression:
        """The expression over ``self.node``, each subquery replaced by attached columns."""
        if not isinstance(expression, Subquery):
            below = children(expression)
            return (
                with_children(expression, tuple(map(self.replace, below))) if below else expression
            )
        if expression not in self._known:
            self._known[expression] = self._attached(expression)
        return self._known[expression]

    def _attached(self, expression: Expression) -> Expression:
        match expression:
            case Exists():
                return self._exists(expression)
            case InSubquery():
                return self._in(replace(expression, value=self.replace(expression.value)))
            case Quantified():
                return self._quantified(replace(expression, value=self.replace(expression.value)))
            case ScalarSubquery():
                return self._scalar(expression)
        raise MillpondError(f"internal: {expression} is no subquery")

    def _exists(self, expression: Exists) -> Expression:
        subquery = _decorrelate(expression.subquery)
        if subquery.is_global_aggregate:
            return self._exists_of_aggregate(expression.subquery)
        rows, *_ = self._attach_counts(subquery, None)
        return Call(">", (rows, _ZERO), Type.BOOLEAN)

    def _exists_of_aggregate(self, subquery: Node) -> Expression:
        """A global aggregation has its one row unless HAVING drops it."""
        marked = Project(subquery, (_TRUE,), ("exists",))
        value = self._scalar(ScalarSubquery(marked, Type.BOOLEAN))
        return Call("coalesce", (value, _FALSE), Type.BOOLEAN)

    def _in(self, expression: InSubquery) -> Expression:
        subquery = _decorrelate(expression.subquery)
        width = len(self.node.schema)
        keys = Distinct(subquery.node)
        value = Column(width, expression.value.type)
        equal = Call("=", (expression.value, value), Type.BOOLEAN)
        condition = conjoin([equal, *conjuncts(replace(subquery, node=keys).condition(width))])
        match_column = self._attach_match(keys, condition)
        rows, values, *_ = self._attach_counts(subquery, Column(0, expression.value.type))
        return _case(
            (match_column, _TRUE),
            (Call("=", (rows, _ZERO), Type.BOOLEAN), _FALSE),
            (_is_null(expression.value), _UNKNOWN),
            (Call("<", (values, rows), Type.BOOLEAN), _UNKNOWN),
            otherwise=_FALSE,
        )

    def _quantified(self, expression: Quantified) -> Expression:
        value, comparison, is_all = (
            expression.value,
            expression.comparison,
            expression.quantifier.upper() == "ALL",
        )
        if comparison == "=" and not is_all:
            return self._in(InSubquery(value, expression.subquery))
        if comparison == "<>" and is_all:
            return Call("not", (self._in(InSubquery(value, expression.subquery)),), Type.BOOLEAN)
        subquery = _decorrelate(expression.subquery)
        rows, values, least, greatest = self._attach_counts(subquery, Column(0, value.type))
        decides = _decides(value, comparison, is_all, least, greatest)
        empty, verdict, rest = (_TRUE, _FALSE, _TRUE) if is_all else (_FALSE, _TRUE, _FALSE)
        return _case(
            (Call("=", (rows, _ZERO), Type.BOOLEAN), empty),
            (_is_null(value), _UNKNOWN),
            (decides, verdict),
            (Call("<", (values, rows), Type.BOOLEAN), _UNKNOWN),
            otherwise=rest,
        )

    def _scalar(self, expression: ScalarSubquery) -> Expression:
        """Attaches the aggregates; what is computed from them moves to the outer query."""
        node, above = expression.subquery, []
        while isinstance(node, (Project, Filter)):
            above.append(node)
            node = node.input
        if not isinstance(node, Aggregate) or node.keys:
            raise MillpondError("a scalar subquery must be an aggregation without GROUP BY")
        subquery = _decorrelate(node)
        aggregates: list[Expression] = list(self._attach_unique(subquery))
        for index, call in enumerate(node.aggregates):
            if call.function in ("count", "approx_count_distinct"):
                aggregates[index] = Call("coalesce", (aggregates[index], _ZERO), Type.BIGINT)
        columns: tuple[Expression, ...] = tuple(aggregates)
        condition: Expression | None = None
        for step in reversed(above):
            if isinstance(step, Project):
                columns = tuple(substitute(e, columns) for e in map(self._inner, step.expressions))
            elif isinstance(step, Filter):
                part = substitute(self._inner(step.predicate), columns)
                condition = conjoin([part] if condition is None else [condition, part])
        value = columns[0]
        if condition is None:
            return value
        return _case((condition, value), otherwise=Literal(None, value.type))

    @staticmethod
    def _inner(expression: Expression) -> Expression:
        if _has_subquery(expression):
            raise MillpondError(
                "a subquery inside the SELECT or HAVING of a scalar subquery is not supported"
            )
        return expression

    def _attach_counts(
        self, subquery: _Decorrelated, value: Column | None
    ) -> tuple[Expression, Expression, Expression, Expression]:
        """Rows, non-NULL values, least and greatest value of the subquery, for each outer row."""
        keys = tuple(all_columns(subquery.node)[k] for k in subquery.key_positions)
        counts = [AggregateCall("count", None, Type.BIGINT)]
        if value is not None:
            counts += [
                AggregateCall("count", value, Type.BIGINT),
                AggregateCall("min", value, value.type),
                AggregateCall("max", value, value.type),
            ]
        names = (*(f"k{i}" for i in range(len(keys))), "rows", "values", "least", "greatest")
        grouped = Aggregate(subquery.node, keys, tuple(counts), names[: len(keys) + len(counts)])
        columns = all_columns(grouped)
        ordered = (*columns[len(keys) :], *columns[: len(keys)])
        moved = Project(grouped, ordered, tuple(c.name for c in ordered))
        found = list(self._attach_unique(_Decorrelated(moved, subquery.outer)))
        rows = Call("coalesce", (found[0], _ZERO), Type.BIGINT)
        if value is None:
            return rows, rows, rows, rows
        return rows, Call("coalesce", (found[1], _ZERO), Type.BIGINT), found[2], found[3]

    def _attach_unique(self, subquery: _Decorrelated) -> tuple[Column, ...]:
        """Joins a relation with at most one row a key; NULLs where there is none."""
        width, added = len(self.node.schema), len(subquery.node.schema)
        if not subquery.outer:
            self.node = Join(self.node, subquery.node, "inner", None)
        else:
            self.node = self._outer_join(subquery.node, subquery.condition(width), added)
        return all_columns(self.node)[width : width + added - len(subquery.outer)]

    def _attach_match(self, keys: Node, condition: Expression | None) -> Expression:
        """Joins a set of keys; the attached column is true where one matches."""
        width = len(self.node.schema)
        marked = Project(keys, (*all_columns(keys), _TRUE), (*keys.schema.names, "matches"))
        self.node = self._outer_join(marked, condition, len(marked.schema))
        column = all_columns(self.node)[width + len(marked.schema) - 1]
        return Call("coalesce", (column, _FALSE), Type.BOOLEAN)

    def _outer_join(self, right: Node, condition: Expression | None, added: int) -> Node:
        left = self.node
        matched = Join(left, right, "inner", condition)
        width = len(left.schema)
        partners = Project(matched, all_columns(matched)[:width], left.schema.names)
        alone = Combine(left, partners, -1)
        nulls = tuple(Literal(None, f.type) for f in right.schema.fields)
        padded = Project(alone, (*all_columns(alone), *nulls), matched.schema.names)
        return Combine(matched, padded, 1)


def _decides(
    value: Expression, comparison: str, is_all: bool, least: Expression, greatest: Expression
) -> Expression:
    """For ALL: some value refutes the comparison. For ANY: some value confirms it."""

    def compare(operator: str, other: Expression) -> Expression:
        return Call(operator, (value, other), Type.BOOLEAN)

    if comparison in ("=", "<>"):
        # = ALL is refuted, and <> ANY confirmed, by any value that differs
        return Call("or", (compare("<>", least), compare("<>", greatest)), Type.BOOLEAN)
    wants_small = comparison in ("<", "<=")
    if is_all:
        hardest = least if wants_small else greatest
        return Call("not", (compare(comparison, hardest),), Type.BOOLEAN)
    return compare(comparison, greatest if wants_small else least)


def _is_null(expression: Expression) -> Expression:
    return Call("is_null", (expression,), Type.BOOLEAN)


def _case(*pairs: tuple[Expression, Expression], otherwise: Expression) -> Expression:
    flat = tuple(part for pair in pairs for part in pair)
    return Call("case", (*flat, otherwise), otherwise.type)
