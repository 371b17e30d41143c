"""What conditions and measures of a match have of its slots: columns before the first one of the
input, until it is known how many columns the input has and which slots are told."""

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from millpond.cql.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    UserCall,
    children,
    walk,
    with_children,
)
from millpond.cql.row_patterns import Slot
from millpond.cql.text.places import StatementError
from millpond.schema import Type


def slot_column(slot: Slot, number: int) -> Column:
    """The column that stands for the slot of a number."""
    return Column(-1 - number, slot.type, str(slot))


def told_slots(values: list[Expression]) -> tuple[int, ...]:
    """The numbers of the slots that measures need."""
    columns = [part for value in values for part in walk(value) if isinstance(part, Column)]
    return tuple(sorted({-1 - each.position for each in columns if each.position < 0}))


def behind(expression: Expression, width: int) -> Expression:
    """A condition over the columns of the input and, behind them, the slots."""
    return _moved(expression, lambda slot: width + slot)


def told(expression: Expression, slots: tuple[int, ...], width: int) -> Expression:
    """A measure over the keys of a match and, behind them, the slots that are told."""
    return _moved(expression, lambda slot: width + slots.index(slot))


def _moved(expression: Expression, place: Callable[[int], int]) -> Expression:
    """The expression with each slot at the place that is said of its number."""
    if isinstance(expression, Column) and expression.position < 0:
        return replace(expression, position=place(-1 - expression.position))
    return with_children(expression, tuple(_moved(c, place) for c in children(expression)))


def check_near(value: Expression, node: exp.Expr) -> None:
    """Refuses what cannot be computed while rows are matched."""
    for part in walk(value):
        if isinstance(part, UserCall):
            raise StatementError(
                f"{part.function} stands in a condition that speaks of other rows too; have it as "
                "a column of a view, and name that",
                node,
            )
        if isinstance(part, Call) and _is_far(part):
            raise StatementError(
                "a DOUBLE becomes text, or is rounded to whole digits, in a condition that speaks "
                "of other rows too; compare the numbers",
                node,
            )


def _is_far(call: Call) -> bool:
    if call.arguments and call.arguments[0].type is not Type.DOUBLE:
        return False
    if call.function == "round" and len(call.arguments) > 1:
        digits = call.arguments[1]
        return isinstance(digits, Literal) and isinstance(digits.value, int) and digits.value < 0
    return call.function == "cast" and call.type is Type.STRING
