"""Several values as one: (a, b) = (c, d), (a, b) IN …, count(DISTINCT a, b)."""

from collections.abc import Sequence

from sqlglot import exp

from millpond.cql.check.operators import compare
from millpond.cql.check.walk import Analyser, connect
from millpond.cql.coercion import as_text, cast
from millpond.cql.expressions import Call, Expression, Literal
from millpond.cql.text.places import StatementError
from millpond.schema import Type


def row_parts(node: exp.Expr) -> list[exp.Expr]:
    """The values of (a, b), or none if it is something else."""
    while isinstance(node, exp.Paren):
        node = node.this
    return list(node.expressions) if isinstance(node, exp.Tuple) else []


def rows_equal(analyser: Analyser, left: list[exp.Expr], node: exp.Expr) -> Expression:
    """(a, b) = (c, d): each value equals its partner."""
    right = row_parts(node)
    if len(left) != len(right):
        raise StatementError(f"a row of {len(left)} values is compared with one of as many", node)
    pairs = zip(left, right, strict=True)
    return connect("and", [compare(analyser, "=", a, b) for a, b in pairs])


def combined(values: Sequence[Expression]) -> Expression:
    """A text that is the same for equal values and for no others; NULL if one of them is."""
    return Call("concat", tuple(part for value in values for part in _told(value)), Type.STRING)


def _told(value: Expression) -> tuple[Expression, ...]:
    """A value as text behind its length; 0.0 and -0.0 are equal, so they are told alike."""
    if value.type is Type.DOUBLE:
        value = Call("+", (value, Literal(0.0, Type.DOUBLE)), Type.DOUBLE)
    text = as_text(value)
    length = cast(Call("length", (text,), Type.INT), Type.STRING)
    return (length, Literal(":", Type.STRING), text)
