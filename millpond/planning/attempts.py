"""Expressions that fail, in terms of some that never do.

Beside a value or NULL, an expression may have no value: it fails. ``value`` is the expression, or
NULL where it fails; ``success`` says where it has a value, and is never NULL. Both are made of
ordinary functions and of two forms around a single call: ``attempt(f(x))`` is NULL where f fails,
``succeeds(f(x))`` is false there. So rewrites and execution need no rule for failure.
"""

from collections.abc import Iterable
from dataclasses import replace

from millpond.cql.expressions import (
    Call,
    Expression,
    InSubquery,
    Literal,
    Quantified,
    UserCall,
    children,
)
from millpond.cql.failing import can_fail
from millpond.schema import Type

TRUE = Literal(True, Type.BOOLEAN)
FALSE = Literal(False, Type.BOOLEAN)
FORMS = ("attempt", "succeeds")

# Functions that are not always NULL when an argument is; AND, OR and IN are treated by themselves.
_LENIENT = (
    "is_null", "is_not_distinct", "case", "coalesce", "nullif", "greatest", "least", "array",
    "struct", "map",
)  # fmt: skip


def may_fail(expression: Expression) -> bool:
    """Whether the expression fails on some rows, subqueries aside."""
    if isinstance(expression, Call) and expression.function in FORMS:
        return any(map(may_fail, children(expression.arguments[0])))
    fails = isinstance(expression, Call) and can_fail(expression)
    return fails or any(map(may_fail, children(expression)))


def sizes(expression: Expression) -> tuple[int, int]:
    """About how large ``value`` and ``success`` of an expression are; 0 if it cannot fail."""
    below = [sizes(child) for child in children(expression)]
    of_value, of_success = 1 + sum(v for v, _ in below), sum(s for _, s in below)
    fails = isinstance(expression, Call) and can_fail(expression)
    if not (fails or of_success) or not isinstance(expression, Call):
        return of_value, of_success
    if expression.function in _LENIENT or isinstance(expression, UserCall):
        return of_success + 2 * of_value, of_success + of_value
    if fails or expression.function in ("and", "or", "in"):
        return of_value, of_success + of_value
    return of_value, of_success


def value(expression: Expression) -> Expression:
    """The expression, or NULL where it fails."""
    if not may_fail(expression):
        return expression
    if isinstance(expression, (InSubquery, Quantified)):
        inner = replace(expression, value=value(expression.value))
        return _where(success(expression.value), inner)
    if not isinstance(expression, Call):
        return expression
    call = _over_values(expression)
    made = Call("attempt", (call,), call.type) if can_fail(call) else call
    return _where(success(expression), made) if _hides_failure(expression) else made


def _over_values(call: Call) -> Call:
    return replace(call, arguments=tuple(map(value, call.arguments)))


def _hides_failure(call: Call) -> bool:
    """Whether a NULL in the place of an argument that fails can give something else than NULL."""
    if call.function == "case":
        return any(may_fail(condition) for condition in call.arguments[:-1:2])
    if call.function == "coalesce":
        return any(map(may_fail, call.arguments[:-1]))
    if isinstance(call, UserCall):
        return any(map(may_fail, call.arguments))
    return call.function in _LENIENT


def success(expression: Expression) -> Expression:
    """Whether the expression has a value; itself never fails and is never NULL."""
    if not may_fail(expression):
        return TRUE
    if isinstance(expression, (InSubquery, Quantified)):
        return success(expression.value)
    if not isinstance(expression, Call):
        return TRUE
    match expression.function:
        case "and":
            return _decided(expression, by=FALSE)
        case "or" | "in":
            return _decided(expression, by=TRUE)
        case "case":
            return _case_succeeds(expression.arguments)
        case "coalesce":
            return _coalesce_succeeds(expression.arguments)
    call = _over_values(expression)
    own = Call("succeeds", (call,), Type.BOOLEAN) if can_fail(call) else TRUE
    return all_of([*map(success, expression.arguments), own])


def _decided(call: Call, by: Literal) -> Expression:
    """AND has a value if it is false, OR if it is true; else if all operands have one."""
    is_decided = Call("is_not_distinct", (_over_values(call), by), Type.BOOLEAN)
    return _or([is_decided, all_of(map(success, call.arguments))])


def _case_succeeds(arguments: tuple[Expression, ...]) -> Expression:
    """Conditions are looked at one by one, then the value of the first true one."""
    parts: list[Expression] = []
    pairs = len(arguments) // 2
    for condition, result in zip(arguments[: 2 * pairs : 2], arguments[1::2], strict=True):
        if may_fail(condition):
            parts += (negation(success(condition)), FALSE)
        parts += (value(condition), success(result))
    otherwise = success(arguments[-1]) if len(arguments) % 2 else TRUE
    return Call("case", (*parts, otherwise), Type.BOOLEAN)


def _coalesce_succeeds(arguments: tuple[Expression, ...]) -> Expression:
    """Arguments are looked at up to the first that is not NULL."""
    *before, last = arguments
    result = success(last)
    for argument in reversed(before):
        present = negation(Call("is_null", (value(argument),), Type.BOOLEAN))
        result = all_of([success(argument), _or([present, result])])
    return result


def failure(expressions: Iterable[Expression]) -> Expression:
    """Whether one of the expressions fails, in conjuncts if it can be."""
    return _not(all_of(map(success, expressions)))


def _not(condition: Expression) -> Expression:
    if isinstance(condition, Call) and condition.function == "or":
        return all_of(map(_not, condition.arguments))
    return negation(condition)


def truth(condition: Expression) -> Expression:
    """A condition that is true where the given one is, and never fails.

    Where it is not true it may be FALSE or NULL, so conjuncts stay apart and IN stays IN.
    """
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        return replace(condition, arguments=tuple(map(truth, condition.arguments)))
    if isinstance(condition, InSubquery):
        return replace(condition, value=value(condition.value))
    return value(condition)


def negation(operand: Expression) -> Expression:
    """NOT operand."""
    return Call("not", (operand,), Type.BOOLEAN)


def all_of(parts: Iterable[Expression]) -> Expression:
    """AND of conditions that are never NULL."""
    rest = [part for part in dict.fromkeys(parts) if part != TRUE]
    result: Expression = rest[0] if rest else TRUE
    for part in rest[1:]:
        result = Call("and", (result, part), Type.BOOLEAN)
    return result


def _or(parts: list[Expression]) -> Expression:
    if TRUE in parts:
        return TRUE
    return Call("or", tuple(parts), Type.BOOLEAN)


def _where(condition: Expression, result: Expression) -> Expression:
    return Call("case", (condition, result), result.type)
