"""Checked expressions as plain data, for logs: calls of CQL's own functions, columns, constants."""

from datetime import date, datetime
from typing import Any

from millpond.cql.expressions import Call, Column, Expression, Literal, UserCall, Value
from millpond.errors import MillpondError
from millpond.schema import Type


def to_data(expression: Expression) -> list[Any]:
    """The expression as lists, texts and numbers.

    >>> to_data(Call("<", (Column(0, Type.DATE, "d"), Literal(date(2024, 2, 29), Type.DATE)),
    ...     Type.BOOLEAN))
    ['<', 'BOOLEAN', ['column', 'DATE', 0, 'd'], ['literal', 'DATE', '2024-02-29']]
    """
    match expression:
        case Column():
            return ["column", str(expression.type), expression.position, expression.name]
        case Literal():
            value = expression.value
            told = value.isoformat() if isinstance(value, date) else value
            return ["literal", str(expression.type), told]
        case Call() if not isinstance(expression, UserCall):
            arguments = map(to_data, expression.arguments)
            return [expression.function, str(expression.type), *arguments]
        case _:
            raise MillpondError(f"internal: {expression} is more than calls, columns and constants")


def from_data(data: list[Any]) -> Expression:
    """The same expression again."""
    function, type_ = data[0], Type(data[1])
    if function == "column":
        return Column(data[2], type_, data[3])
    if function == "literal":
        return Literal(_value(data[2], type_), type_)
    return Call(function, tuple(map(from_data, data[2:])), type_)


def _value(told: Any, type_: Type) -> Value:
    if told is None or type_ not in (Type.DATE, Type.TIMESTAMP):
        value: Value = told
        return value
    return date.fromisoformat(told) if type_ is Type.DATE else datetime.fromisoformat(told)
