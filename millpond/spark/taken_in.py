"""Calls that Python makes, with those of their arguments that may fail.

Spark has Python make a call for all rows, also for those of an untaken CASE branch. So what may
fail is no argument, where it would be an error for rows that do not need it: it is computed within
the call, and what fails is part of the answer.
"""

from dataclasses import replace

from millpond.cql.expressions import Call, Column, Expression, Literal, UserCall
from millpond.cql.failing import can_fail
from millpond.cql.functions import REGULAR
from millpond.errors import MillpondError
from millpond.kernels.expressions.table import function_of
from millpond.planning.attempts import may_fail, value
from millpond.schema import Type
from millpond.spark.by_kernel import is_by_kernel


def has_to_take_in(call: Call) -> bool:
    """Whether it is such a call, and has such arguments."""
    is_by_python = isinstance(call, UserCall) or call.function in REGULAR or is_by_kernel(call)
    return is_by_python and any(map(may_fail, call.arguments))


def taken_in(call: Call) -> tuple[Call, list[Expression]]:
    """The call over columns, and what these are, which never fails."""
    sent: list[Expression] = []
    return _over(call, sent), sent


def _over(call: Call, sent: list[Expression]) -> Call:
    return replace(call, arguments=tuple(_part(each, sent) for each in call.arguments))


def _part(expression: Expression, sent: list[Expression]) -> Expression:
    if isinstance(expression, Literal):
        return expression
    if not isinstance(expression, Call) or not may_fail(expression):
        return _column(expression, sent)
    return _beside(expression, sent) if function_of(expression) is None else _over(expression, sent)


def _beside(call: Call, sent: list[Expression]) -> Expression:
    """What only Spark has, with the faults of its arguments: of a NULL it is NULL."""
    if can_fail(call):
        raise MillpondError(f"internal: {call} fails on Spark only")
    parts: list[Expression] = []
    for argument in call.arguments:
        if not isinstance(argument, Literal):
            is_null = Call("is_null", (_part(argument, sent),), Type.BOOLEAN)
            parts += (is_null, Literal(None, call.type))
    return Call("case", (*parts, _column(value(call), sent)), call.type)


def _column(expression: Expression, sent: list[Expression]) -> Expression:
    if not isinstance(expression, Column) or expression not in sent:
        sent.append(expression)
        return Column(len(sent) - 1, expression.type)
    return Column(sent.index(expression), expression.type)
