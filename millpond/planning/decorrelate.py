"""Takes the equalities with columns of the enclosing query out of a subquery.

What they compared becomes columns of the subquery, so that a join can compare it.
"""

from dataclasses import dataclass

from millpond.cql.algebra import Aggregate, Distinct, Filter, Project
from millpond.cql.expressions import Call, Column, Expression, OuterColumn, walk
from millpond.cql.node import Node, follows_from_inputs
from millpond.errors import MillpondError
from millpond.planning.predicates import (
    all_columns,
    columns_used,
    conjoin,
    conjuncts,
    expressions_of,
    rewrite,
)
from millpond.schema import Type


@dataclass(frozen=True)
class Decorrelated:
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


def decorrelate(node: Node) -> Decorrelated:
    """Moves the equalities with outer columns out of an unnested subquery.

    Their inner sides become its last columns.
    """
    if not _is_correlated(node):
        return Decorrelated(node, (), _is_global_aggregate(node))
    match node:
        case Filter():
            return _decorrelate_filter(node)
        case Project():
            below = decorrelate(node.input)
            keys = [all_columns(below.node)[k] for k in below.key_positions]
            names = tuple(below.node.schema.names[k] for k in below.key_positions)
            project = Project(below.node, (*node.expressions, *keys), (*node.names, *names))
            return Decorrelated(project, below.outer, below.is_global_aggregate)
        case Distinct():
            below = decorrelate(node.input)
            return Decorrelated(Distinct(below.node), below.outer, below.is_global_aggregate)
        case Aggregate():
            return _decorrelate_aggregate(node)
        case _:
            _refuse_outer(node)
            return Decorrelated(node, ())


@follows_from_inputs
def _is_correlated(node: Node) -> bool:
    """Whether an expression in or below the node names a column of the enclosing query."""
    return any(map(_has_outer, expressions_of(node))) or any(map(_is_correlated, node.inputs))


@follows_from_inputs
def _is_global_aggregate(node: Node) -> bool:
    if isinstance(node, (Filter, Project, Distinct)):
        return _is_global_aggregate(node.input)
    return isinstance(node, Aggregate) and not node.keys


def _decorrelate_filter(node: Filter) -> Decorrelated:
    below = decorrelate(node.input)
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
    return Decorrelated(result, (*below.outer, *outer), below.is_global_aggregate)


def _decorrelate_aggregate(node: Aggregate) -> Decorrelated:
    """Adds the correlation keys to the groups; the schema stays keys, aggregates, then the new."""
    below = decorrelate(node.input)
    if not below.outer:
        return Decorrelated(
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
    return Decorrelated(moved, below.outer, not node.keys)


def _correlation(part: Expression) -> tuple[Expression, Expression] | None:
    """The inner and the outer side of an equality between the two, or None."""
    if isinstance(part, Call) and part.function == "=":
        left, right = part.arguments
        for inner, outer in ((left, right), (right, left)):
            if _has_outer(outer) and not columns_used(outer) and not _has_outer(inner):
                return inner, rewrite(outer, outer_as_column)
    return None


def outer_as_column(part: Expression) -> Expression:
    """A column of the enclosing query's row, as that query names it."""
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
