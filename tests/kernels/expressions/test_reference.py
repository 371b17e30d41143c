"""Expressions on Arrow mean what the reference evaluator says, where that is plain Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation, localcontext

import numpy as np
import pytest

from millpond.connectors.nested import outside
from millpond.cql.expressions import Call, Expression, Literal
from millpond.kernels.expressions import Program, can_lower
from millpond.kernels.expressions.operand import to_array
from tests import reference_values as reference
from tests.kernels.expressions import nasty

TABLE = nasty.table().slice(0, 700)
ROUNDED = {"exp", "ln", "power"}
"""Python's are good to the last bit but one."""


def meaning(call: Call, values: tuple[object, ...]) -> object:
    """What the reference says of these arguments; a DECIMAL has the digits of its type."""
    with localcontext(Context(prec=200)):
        found = _meaning(call.function, values)
    if isinstance(found, Decimal):
        return reference.as_decimal(found, str(call.type))
    return found


def _meaning(name: str, values: tuple[object, ...]) -> object:
    if name == "struct":
        return reference.Struct(zip("ab", values, strict=True))
    if name in reference.COMPARE:
        return reference.compare(name, *values)
    if name in ("and", "or"):
        return {"and": reference.all_of, "or": reference.any_of}[name](values)
    if name in ("+", "-", "*", "/", "%"):
        return reference.arithmetic(name, *values)
    if name == "like":
        return reference.like(*values)
    return reference.call(name, values)


KNOWN = {
    *reference.STRICT, *reference.LENIENT, *reference.COMPARE,
    *("and", "or", "+", "-", "*", "/", "%", "like"),
}  # fmt: skip


def calls() -> Iterator[Call]:
    for expression in nasty.calls():
        is_known = isinstance(expression, Call) and expression.function in KNOWN
        if is_known and can_lower(expression) and _is_plain(expression):
            yield expression


def _is_plain(call: Call) -> bool:
    """Whether the reference knows this form of the call."""
    if call.function == "date_trunc":
        unit = call.arguments[0]
        return isinstance(unit, Literal) and unit.value in reference.TRUNCATED
    return not (call.function == "like" and len(call.arguments) > 2)


def is_tame(value: object) -> bool:
    """Whether Python computes with the value as SQL does."""
    if isinstance(value, reference.Array):
        return all(map(is_tame, value))
    if isinstance(value, reference.Named):
        return all(map(is_tame, value.values()))
    if isinstance(value, float):
        return math.isfinite(value) and abs(value) < 1e15
    if isinstance(value, datetime | date):
        return 1000 < value.year < 9000
    return value != -(2**31)  # Spark counts characters in 32 bits


def python_values(expression: Expression) -> list[object]:
    (value,) = Program([expression]).run(TABLE.columns)
    array = outside(to_array(value, expression.type, TABLE.num_rows), expression.type)
    return [_python(array, row) for row in range(len(array))]


def _python(array: object, row: int) -> object:
    try:
        return reference.listed(array[row].as_py(maps_as_pydicts="strict"))  # type: ignore[index]
    except (OverflowError, ValueError):
        return math.inf  # a date that Python lacks


@pytest.mark.parametrize("call", {repr(c): c for c in calls()}.values(), ids=str)
def test_a_value_is_what_the_reference_says(call: Call) -> None:
    (found,) = Program([call]).run(TABLE.columns)
    faults = np.zeros(TABLE.num_rows) if found.faults is None else found.faults
    faults = np.broadcast_to(faults, TABLE.num_rows)
    mine = python_values(call)
    for row, values in enumerate(zip(*map(python_values, call.arguments), strict=True)):
        if not all(map(is_tame, values)) or (call.function == "replace" and values[1] == ""):
            continue
        try:
            wanted = meaning(call, values)
        except reference.NoValueError:
            assert faults[row], values
            continue
        except (OverflowError, ZeroDivisionError, InvalidOperation):
            continue  # Python's own limits
        if not isinstance(wanted, complex):
            assert not faults[row], values
            assert is_same(mine[row], wanted, call.function), (values, mine[row], wanted)


def is_same(mine: object, wanted: object, function: str) -> bool:
    if function in ROUNDED and isinstance(mine, float) and isinstance(wanted, float):
        return math.isclose(mine, wanted, rel_tol=1e-15)
    return mine == wanted
