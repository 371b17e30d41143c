"""By which values an operator divides its rows, and where these are in what it puts out.

Rows with equal keys are worked on in one place. Where the next operator divides what it reads by
the same values, it can do its work in that place too.
"""

from millpond.cql.expressions import Column, Expression
from millpond.planning.branches import branches
from millpond.planning.join_keys import join_keys
from millpond.planning.physical import (
    AggregateOperator,
    ArrivalsOperator,
    CountOperator,
    DifferenceOperator,
    JoinOperator,
    LinearOperator,
    MatchOperator,
    MomentsOperator,
    Operator,
    OutputOperator,
    OverOperator,
    RankOperator,
    RowPatternOperator,
    RowsWindowOperator,
    SessionOperator,
    TimeFilterOperator,
    TotalsOperator,
)
from millpond.planning.predicates import all_columns, substitute
from millpond.schema import Type

_KEEPING = (
    AggregateOperator,
    CountOperator,
    OverOperator,
    RankOperator,
    RowPatternOperator,
    RowsWindowOperator,
    SessionOperator,
)
"""What keeps state by its keys."""


def keys_of(operator: Operator) -> tuple[Expression, ...] | None:
    """The values by which an operator of one input divides its rows; () if it need not.

    None: it reads several, or all of it in one place.
    """
    match operator:
        case AggregateOperator():
            return operator.keys or None
        case RowsWindowOperator() | SessionOperator() | RankOperator() | OverOperator():
            return operator.partition or None
        case RowPatternOperator():
            return operator.partition or None
        case CountOperator(right=None) | DifferenceOperator() | MomentsOperator():
            return all_columns(operator.inputs[0])
        case OutputOperator():
            return all_columns(operator.inputs[0]) if operator.is_summed else ()
        case LinearOperator() | TimeFilterOperator() | MatchOperator():
            return ()
        case ArrivalsOperator() | TotalsOperator():
            return ()
    return None


def key_positions(operator: Operator) -> tuple[int, ...] | None:
    """Where the output has the values by which rows were divided; None if it has not."""
    match operator:
        case AggregateOperator():
            return tuple(range(len(operator.keys)))
        case RowsWindowOperator() | SessionOperator() | RankOperator() | OverOperator():
            return tuple(column.position for column in operator.partition)
        case RowPatternOperator():
            return tuple(range(len(operator.partition)))
        case JoinOperator():
            keys = join_keys(operator.condition, len(operator.left.schema)).left
            (post,) = branches(operator.post)
            is_there = all(key in post.expressions for key in keys)
            return tuple(post.expressions.index(key) for key in keys) if is_there else None
        case CountOperator() | DifferenceOperator() | MomentsOperator():
            return tuple(range(len(operator.schema)))
        case OutputOperator(is_summed=True):
            return tuple(range(len(operator.schema)))
    return None


def stays_divided(producer: Operator, reader: Operator) -> bool:
    """Whether the only reader of an operator can work where that has put its rows out.

    What keeps state by keys must be divided by just these keys, as its state is. What only sums up
    equal rows may be divided by some of their columns.
    """
    keys, positions = keys_of(reader), key_positions(producer)
    if keys == ():
        return True
    if keys is None or positions is None:
        return False
    keeps_state = isinstance(reader, _KEEPING)
    for branch in branches(reader.inputs[0]):
        found = [_position(substitute(key, branch.expressions)) for key in keys]
        if found != list(positions) if keeps_state else not set(positions) <= set(found):
            return False
    return True


def _position(expression: Expression) -> int | None:
    """The column that an expression is; doubles that are equal may differ in their bits."""
    if isinstance(expression, Column) and expression.type is not Type.DOUBLE:
        return expression.position
    return None
