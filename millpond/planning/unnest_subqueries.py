"""Turns subqueries in expressions into joins, so that execution knows no nested query.

A conjunct EXISTS, NOT EXISTS or IN becomes a semi or anti join. Everywhere else a subquery becomes
columns attached to each row of the outer query: whether there is a match, how many rows and values
there are, the smallest and the largest value, or the aggregates of a scalar subquery. SQL's three
truth values then follow by CASE.
"""

from dataclasses import replace

from millpond.cql.algebra import Aggregate, Distinct, Filter, Join, LateralJoin, Project
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Exists,
    Expression,
    InSubquery,
    Literal,
    Quantified,
    ScalarSubquery,
    children,
    walk,
    with_children,
)
from millpond.cql.node import Node
from millpond.cql.outer_columns import names_from_within
from millpond.errors import MillpondError
from millpond.planning.carry_inwards import carried_inwards
from millpond.planning.decorrelate import Decorrelated, decorrelate, outer_as_column
from millpond.planning.name_movers import name_movers
from millpond.planning.nodes import Combine
from millpond.planning.predicates import (
    all_columns,
    bottom_up,
    conjoin,
    conjuncts,
    rewrite,
    rewrite_aggregate,
    substitute,
)
from millpond.schema import Type

Subquery = (Exists, InSubquery, Quantified, ScalarSubquery)
_TRUE = Literal(True, Type.BOOLEAN)
_FALSE = Literal(False, Type.BOOLEAN)
_UNKNOWN = Literal(None, Type.BOOLEAN)
_ZERO = Literal(0, Type.BIGINT)


@bottom_up
def unnest_subqueries(node: Node) -> Node:
    """The plan without any subquery expression."""
    match node:
        case Filter() if names_from_within(node.predicate):
            return node  # a subquery of a subquery: the latter gets what it names, then it is met
        case Filter() if _has_subquery(node.predicate):
            return _unnest_filter(node)
        case LateralJoin():
            return _lateral(node)
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
    used = [*node.keys, *(argument for a in node.aggregates for argument in a.arguments)]
    if not any(map(_has_subquery, used)):
        return node
    attached = _Attached(node.input)
    keys = tuple(attached.replace(key) for key in node.keys)
    aggregates = tuple(rewrite_aggregate(a, attached.replace) for a in node.aggregates)
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
        subquery = _decorrelated(inner.subquery, outer)
        if subquery.is_global_aggregate:
            return None
        condition = subquery.condition(len(outer.schema))
        return Join(outer, subquery.node, "anti" if negated else "semi", condition)
    if isinstance(inner, InSubquery) and not negated and not _has_subquery(inner.value):
        subquery = _decorrelated(inner.subquery, outer)
        if subquery.is_global_aggregate and subquery.outer:
            return None
        width = len(outer.schema)
        value = Column(width, inner.value.type)
        equal = Call("=", (inner.value, value), Type.BOOLEAN)
        condition = conjoin([equal, *conjuncts(subquery.condition(width))])
        return Join(outer, subquery.node, "semi", condition)
    return None


def _lateral(node: LateralJoin) -> Node:
    """A join with what the right side has for each row of the left one."""
    subquery = _decorrelated(node.right, node.left)
    if subquery.is_global_aggregate and subquery.outer:
        return _lateral_aggregate(node)
    condition = conjoin(
        [*conjuncts(subquery.condition(len(node.left.schema))), *conjuncts(node.condition)]
    )
    joined = Join(node.left, subquery.node, node.kind, condition)
    width = len(node.schema)
    return Project(joined, all_columns(joined)[:width], node.schema.names)


def _lateral_aggregate(node: LateralJoin) -> Node:
    """The same where the right side is an aggregation without keys, which has a row at any rate."""
    attached, left = _Attached(node.left), all_columns(node.left)
    columns, present = attached.one_row(node.right)
    on = [substitute(part, (*left, *columns)) for part in conjuncts(node.condition)]
    kept = conjoin([*conjuncts(present), *on])
    rows = attached.node
    if kept is not None and node.kind == "inner":
        rows = Filter(rows, kept)
    elif kept is not None:
        columns = tuple(_case((kept, c), otherwise=Literal(None, c.type)) for c in columns)
    return Project(rows, (*left, *columns), node.schema.names)


def _decorrelated(subquery: Node, around: Node) -> Decorrelated:
    known = carried_inwards(name_movers(subquery), around)
    return decorrelate(unnest_subqueries(known), around)


class _Attached:
    """A node that grows columns at its right end, one group a subquery."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._around = node
        """The rows of the outer query, as they are without what is attached."""
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
        subquery = _decorrelated(expression.subquery, self._around)
        if subquery.is_global_aggregate:
            return self._exists_of_aggregate(expression.subquery)
        rows, *_ = self._attach_counts(subquery, None)
        return Call(">", (rows, _ZERO), Type.BOOLEAN)

    def _exists_of_aggregate(self, subquery: Node) -> Expression:
        """A global aggregation has its one row unless HAVING drops it."""
        _, present = self.one_row(subquery)
        return _TRUE if present is None else Call("coalesce", (present, _FALSE), Type.BOOLEAN)

    def _in(self, expression: InSubquery) -> Expression:
        subquery = _decorrelated(expression.subquery, self._around)
        if subquery.is_global_aggregate:
            return self._compared_with_one(expression.value, "=", expression.subquery, _FALSE)
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
        subquery = _decorrelated(expression.subquery, self._around)
        if subquery.is_global_aggregate:
            without = _TRUE if is_all else _FALSE
            return self._compared_with_one(value, comparison, expression.subquery, without)
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

    def _compared_with_one(
        self, value: Expression, comparison: str, subquery: Node, without: Expression
    ) -> Expression:
        """A comparison with the one row of a global aggregation, or ``without`` it."""
        (other, *_), present = self.one_row(subquery)
        compared = Call(comparison, (value, other), Type.BOOLEAN)
        return compared if present is None else _case((present, compared), otherwise=without)

    def _scalar(self, expression: ScalarSubquery) -> Expression:
        (value, *_), present = self.one_row(expression.subquery)
        if present is None:
            return value
        return _case((present, value), otherwise=Literal(None, value.type))

    def one_row(self, subquery: Node) -> tuple[tuple[Expression, ...], Expression | None]:
        """The columns of a global aggregation, and the condition that it has its row.

        The aggregates are attached; what is computed from them moves to the outer query.
        """
        node, above = subquery, []
        while isinstance(node, (Project, Filter, Distinct)):
            above.append(node)
            node = node.input
        if not isinstance(node, Aggregate) or node.keys:
            raise MillpondError("a scalar subquery must be an aggregation without GROUP BY")
        if any(map(_holds_subquery, above)):
            return self._one_computed_row(subquery)
        columns = self._attach_aggregates(node)
        conditions: list[Expression] = []
        for step in reversed(above):
            if isinstance(step, Project):
                columns = tuple(_in_outer_row(e, columns) for e in step.expressions)
            elif isinstance(step, Filter):
                conditions.append(_in_outer_row(step.predicate, columns))
        return columns, conjoin(conditions)

    def _attach_aggregates(self, node: Aggregate) -> tuple[Expression, ...]:
        """The aggregates for each outer row; over nothing, counts are 0."""
        attached: list[Expression] = list(self._attach_unique(_decorrelated(node, self._around)))
        for index, call in enumerate(node.aggregates):
            if call.function in ("count", "approx_count_distinct"):
                attached[index] = Call("coalesce", (attached[index], _ZERO), Type.BIGINT)
        return tuple(attached)

    def _one_computed_row(self, subquery: Node) -> tuple[tuple[Expression, ...], Expression]:
        """The same for an aggregation whose SELECT or HAVING holds subqueries of its own."""
        unnested = _decorrelated(subquery, self._around)
        width = len(self.node.schema)
        names = (*unnested.node.schema.names, "present")
        marked = Project(unnested.node, (*all_columns(unnested.node), _TRUE), names)
        self.node = self._outer_join(marked, None, len(names))
        columns = all_columns(self.node)
        found = columns[width : width + len(subquery.schema)]
        return found, Call("coalesce", (columns[-1], _FALSE), Type.BOOLEAN)

    def _attach_counts(
        self, subquery: Decorrelated, value: Column | None
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
        found = list(self._attach_unique(subquery.over(moved)))
        rows = Call("coalesce", (found[0], _ZERO), Type.BIGINT)
        if value is None:
            return rows, rows, rows, rows
        return rows, Call("coalesce", (found[1], _ZERO), Type.BIGINT), found[2], found[3]

    def _attach_unique(self, subquery: Decorrelated) -> tuple[Column, ...]:
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


def _holds_subquery(node: Node) -> bool:
    """Whether a subquery stands in an expression of a selection or projection."""
    match node:
        case Filter():
            return _has_subquery(node.predicate)
        case Project():
            return any(map(_has_subquery, node.expressions))
    return False


def _in_outer_row(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    """An expression of a subquery, over the outer row to which ``columns`` were attached."""
    return rewrite(substitute(expression, columns), outer_as_column)


def _is_null(expression: Expression) -> Expression:
    return Call("is_null", (expression,), Type.BOOLEAN)


def _case(*pairs: tuple[Expression, Expression], otherwise: Expression) -> Expression:
    flat = tuple(part for pair in pairs for part in pair)
    return Call("case", (*flat, otherwise), otherwise.type)
