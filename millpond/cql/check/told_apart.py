"""By which columns rows of a relation are told apart: who fixes them meets one row at most."""

from collections.abc import Iterator

from millpond.catalog import Catalog, RelationEntry, StreamEntry
from millpond.cql.algebra import (
    Aggregate,
    Distinct,
    Filter,
    Project,
    RangeWindow,
    RelationScan,
    RowsWindow,
    Sample,
    StreamScan,
    WithTime,
)
from millpond.cql.check.scope import shifted
from millpond.cql.expressions import (
    Call,
    Column,
    Exists,
    Expression,
    InSubquery,
    Quantified,
    ScalarSubquery,
    walk,
)
from millpond.cql.node import Node
from millpond.schema import Type


def keys_of(node: Node, catalog: Catalog) -> Iterator[frozenset[int]]:
    """Sets of columns by which rows of a relation are told apart at every instant."""
    match node:
        case RelationScan():
            entry = catalog.get(node.name)
            if isinstance(entry, RelationEntry) and entry.checks_key:
                yield frozenset(entry.key)
        case StreamScan():
            entry = catalog.get(node.name)
            for each in entry.constraints if isinstance(entry, StreamEntry) else ():
                stays = each.within == 0 and each.on_violation != "widen"
                if each.kind == "unique" and stays:
                    yield frozenset(each.columns)
        case Aggregate():
            yield frozenset(range(len(node.keys)))
        case Distinct():
            yield frozenset(range(len(node.schema)))
        case Project():
            yield from _renamed(keys_of(node.input, catalog), node)
        case Filter() | RangeWindow() | RowsWindow() | Sample() | WithTime():
            yield from keys_of(node.input, catalog)


def _renamed(keys: Iterator[frozenset[int]], node: Project) -> Iterator[frozenset[int]]:
    """Sets of columns under their places in a projection, if all are in it."""
    places = {
        each.position: place
        for place, each in enumerate(node.expressions)
        if isinstance(each, Column)
    }
    for key in keys:
        if key <= places.keys():
            yield frozenset(places[each] for each in key)


def conjuncts(predicate: Expression | None) -> tuple[Expression, ...]:
    """What a condition says, part by part."""
    if predicate is None:
        return ()
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for each in predicate.arguments for part in conjuncts(each))
    return (predicate,)


def fixed_columns(conditions: tuple[Expression, ...], first: int, last: int) -> Iterator[int]:
    """Columns of a side (from ``first`` to before ``last``) that equal something of another."""
    for each in conditions:
        if not isinstance(each, Call) or each.function != "=":
            continue
        for side, other in (each.arguments, each.arguments[::-1]):
            mine = _uncast(side)
            is_other = not any(first <= place < last for place in _columns(other))
            is_own = isinstance(mine, Column) and first <= mine.position < last
            if isinstance(mine, Column) and is_own and is_other and not subqueries_in(other):
                yield mine.position


def _uncast(expression: Expression) -> Expression:
    """A whole number before it was made a longer one, which is another for each."""
    if isinstance(expression, Call) and expression.function == "cast":
        kinds = (expression.arguments[0].type, expression.type)
        return expression.arguments[0] if kinds == (Type.INT, Type.BIGINT) else expression
    return expression


def of_sides(
    conditions: tuple[Expression, ...], width: int
) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    """The conditions that speak of the left side of a join alone, and of the right one."""
    plain = [each for each in conditions if _columns(each) and not subqueries_in(each)]
    left = tuple(each for each in plain if max(_columns(each)) < width)
    right = (each for each in plain if min(_columns(each)) >= width)
    return left, tuple(shifted(each, -width) for each in right)


def _columns(expression: Expression) -> set[int]:
    return {each.position for each in walk(expression) if isinstance(each, Column)}


def own_subqueries(expression: Expression) -> tuple[Node, ...]:
    """The plan of a subquery."""
    if isinstance(expression, Exists | InSubquery | Quantified | ScalarSubquery):
        return (expression.subquery,)
    return ()


def subqueries_in(expression: Expression) -> list[Node]:
    """The plans of the subqueries in an expression."""
    return [node for each in walk(expression) for node in own_subqueries(each)]
