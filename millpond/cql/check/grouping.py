"""GROUP BY: expressions over the grouped row, whose columns are the keys, then the aggregates."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from millpond.cql.algebra import Aggregate
from millpond.cql.check.calls import AGGREGATE_BASE, GROUPING
from millpond.cql.expressions import (
    AggregateCall,
    Call,
    Column,
    Expression,
    Literal,
    OuterColumn,
    children,
    with_children,
)
from millpond.cql.node import Node
from millpond.cql.outer_columns import map_subqueries
from millpond.cql.text.places import StatementError
from millpond.cql.written import Written
from millpond.schema import Type


@dataclass(frozen=True)
class Grouping:
    """The keys and aggregates of a grouped query."""

    keys: tuple[Expression, ...]
    aggregates: list[AggregateCall]
    select_offset: int | None
    absent: frozenset[Expression] = frozenset()
    """Keys of other grouping sets, which are NULL in this one."""

    def plan(self, relation: Node, written: tuple[Written, ...] = ()) -> Node:
        """The aggregation of a relation."""
        names = tuple(map(str, (*self.keys, *self.aggregates)))
        return Aggregate(relation, self.keys, tuple(self.aggregates), names, written)

    def over(self, expression: Expression, offsets: Mapping[int, int | None]) -> Expression:
        """An expression over the input, rewritten as one over the grouped row.

        ``offsets`` tells where each column was named, for the error.
        """
        rewritten = self._rewrite(expression, offsets)
        return map_subqueries(rewritten, self._outer)

    def _rewrite(self, expression: Expression, offsets: Mapping[int, int | None]) -> Expression:
        for position, key in enumerate(self.keys):
            if expression == key:
                return Column(position, key.type, str(key))
        if expression in self.absent:
            return Literal(None, expression.type)
        if isinstance(expression, Call) and expression.function == GROUPING:
            return self._told_absent(expression, offsets)
        if isinstance(expression, Column):
            index = expression.position - AGGREGATE_BASE
            if index < 0:
                raise StatementError(
                    f'"{expression}" must be in GROUP BY or inside an aggregate function',
                    offsets.get(expression.position),
                )
            return Column(len(self.keys) + index, expression.type, expression.name)
        new = tuple(self._rewrite(child, offsets) for child in children(expression))
        return with_children(expression, new)

    def _told_absent(self, call: Call, offsets: Mapping[int, int | None]) -> Literal:
        """grouping(a, b): a bit for each argument, 1 where it is no key of this set."""
        bits = 0
        for each in call.arguments:
            if each not in self.keys and each not in self.absent:
                raise StatementError(
                    f'grouping takes keys of GROUP BY, which "{each}" is not', self.select_offset
                )
            bits = 2 * bits + (each in self.absent)
        return Literal(bits, Type.INT)

    def _outer(self, column: OuterColumn) -> OuterColumn:
        for position, key in enumerate(self.keys):
            if isinstance(key, Column) and key.position == column.position:
                return replace(column, position=position)
        raise StatementError(
            f'a subquery names "{column.name}" of this query, which must then be in GROUP BY',
            self.select_offset,
        )
