"""Takes the columns of the enclosing query out of a subquery.

What equalities compared with them becomes columns of the subquery, so that a join can compare it.
With other conditions the subquery is joined with the values that the enclosing query has in these
columns, each once, which become columns of the subquery instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from millpond.cql.algebra import Aggregate, Distinct, Filter, Join, Over, Project, Rank
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

    ``outer`` are expressions over the enclosing query's columns, ``functions`` what compares each.
    """

    node: Node
    outer: tuple[Expression, ...]
    functions: tuple[str, ...]
    is_global_aggregate: bool = False

    @property
    def key_positions(self) -> range:
        width = len(self.node.schema)
        return range(width - len(self.outer), width)

    def condition(self, offset: int) -> Expression | None:
        """Outer columns equal keys, in a join whose left side is ``offset`` wide."""
        keys = zip(self.functions, self.outer, self.key_positions, strict=True)
        return conjoin(
            Call(function, (outer, Column(offset + key, outer.type)), Type.BOOLEAN)
            for function, outer, key in keys
        )

    def over(self, node: Node) -> Decorrelated:
        """The same over a node that has the same keys."""
        return replace(self, node=node)


def decorrelate(node: Node, around: Node) -> Decorrelated:
    """Moves the conditions with outer columns out of an unnested subquery.

    What they compare becomes its last columns. ``around`` has the rows of the enclosing query.
    """
    if not _is_correlated(node):
        return Decorrelated(node, (), (), _is_global_aggregate(node))
    match node:
        case Filter():
            return _decorrelate_filter(node, around)
        case Project():
            below = decorrelate(node.input, around)
            keys = [all_columns(below.node)[k] for k in below.key_positions]
            names = tuple(below.node.schema.names[k] for k in below.key_positions)
            project = Project(below.node, (*node.expressions, *keys), (*node.names, *names))
            return below.over(project)
        case Distinct():
            below = decorrelate(node.input, around)
            return below.over(Distinct(below.node))
        case Aggregate():
            return _decorrelate_aggregate(node, around)
        case Rank() | Over():
            return _decorrelate_ranked(node, around)
        case _:
            _refuse_outer(node)
            return Decorrelated(node, (), ())


@follows_from_inputs
def _is_correlated(node: Node) -> bool:
    """Whether an expression in or below the node names a column of the enclosing query."""
    return any(map(_has_outer, expressions_of(node))) or any(map(_is_correlated, node.inputs))


@follows_from_inputs
def _is_global_aggregate(node: Node) -> bool:
    if isinstance(node, (Filter, Project, Distinct)):
        return _is_global_aggregate(node.input)
    return isinstance(node, Aggregate) and not node.keys


def _decorrelate_filter(node: Filter, around: Node) -> Decorrelated:
    below = decorrelate(node.input, around)
    parts = conjuncts(node.predicate)
    own = [part for part in parts if _has_outer(part)]
    predicate = conjoin(part for part in parts if not _has_outer(part))
    result = below.node if predicate is None else Filter(below.node, predicate)
    sides = [_correlation(part) for part in own]
    pairs = [pair for pair in sides if pair is not None]
    if len(pairs) < len(sides):
        return _with_outer_rows(below.over(result), own, around)
    if pairs:
        names = tuple(f"correlation{i}" for i in range(len(pairs)))
        inner = (inner for _, inner, _ in pairs)
        result = Project(result, (*all_columns(result), *inner), (*result.schema.names, *names))
    return replace(
        below.over(result),
        outer=(*below.outer, *(outer for *_, outer in pairs)),
        functions=(*below.functions, *(function for function, *_ in pairs)),
    )


def _with_outer_rows(below: Decorrelated, own: list[Expression], around: Node) -> Decorrelated:
    """A subquery joined with the values of the outer columns that its conditions name."""
    named = {e.position for part in own for e in walk(part) if isinstance(e, OuterColumn)}
    columns = tuple(all_columns(around)[position] for position in sorted(named))
    names = tuple(f"outer{i}" for i in range(len(columns)))
    values = Distinct(Project(around, columns, names))
    width = len(below.node.schema)
    at = {c.position: Column(width + i, c.type, c.name) for i, c in enumerate(columns)}

    def over_both(part: Expression) -> Expression:
        return at[part.position] if isinstance(part, OuterColumn) else part

    condition = conjoin(rewrite(part, over_both) for part in own)
    return replace(
        below.over(Join(below.node, values, "inner", condition)),
        outer=(*below.outer, *columns),
        functions=(*below.functions, *("is_not_distinct" for _ in columns)),
    )


def _decorrelate_aggregate(node: Aggregate, around: Node) -> Decorrelated:
    """Adds the correlation keys to the groups; the schema stays keys, aggregates, then the new."""
    below = decorrelate(node.input, around)
    if not below.outer:
        return Decorrelated(
            Aggregate(below.node, node.keys, node.aggregates, node.names), (), (), not node.keys
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
    return Decorrelated(moved, below.outer, below.functions, not node.keys)


def _decorrelate_ranked(node: Rank | Over, around: Node) -> Decorrelated:
    """Ranks the rows of each correlation key apart; the keys come last again."""
    below = decorrelate(node.input, around)
    keys = tuple(all_columns(below.node)[k] for k in below.key_positions)
    partition = (*node.partition, *(key for key in keys if key not in node.partition))
    ranked = replace(node, input=below.node, partition=partition)
    width, last = len(below.node.schema) - len(keys), len(below.node.schema)
    order = [*range(width), last, *below.key_positions]
    columns = tuple(all_columns(ranked)[position] for position in order)
    return below.over(Project(ranked, columns, tuple(column.name for column in columns)))


def _correlation(part: Expression) -> tuple[str, Expression, Expression] | None:
    """The inner and the outer side of an equality between the two, and its kind, or None."""
    if isinstance(part, Call) and part.function in ("=", "is_not_distinct"):
        left, right = part.arguments
        for inner, outer in ((left, right), (right, left)):
            if _has_outer(outer) and not columns_used(outer) and not _has_outer(inner):
                return part.function, inner, rewrite(outer, outer_as_column)
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
            f"a subquery may use columns of the outer query only in its WHERE, not in {expression}"
        )


def _refuse_outer(node: Node) -> None:
    for part in node.walk():
        if isinstance(part, Filter):
            _refuse_outer_in(part.predicate)
        if isinstance(part, Project):
            for expression in part.expressions:
                _refuse_outer_in(expression)
