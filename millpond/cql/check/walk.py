"""The walk over an expression's syntax: one rule a node class, everything else is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from sqlglot import exp

from millpond.cql.check.scope import Scope
from millpond.cql.coercion import cast
from millpond.cql.expressions import AggregateCall, Call, Expression
from millpond.cql.node import Node
from millpond.cql.text.dialect import unsupported
from millpond.cql.text.places import StatementError, offset_of
from millpond.cql.text.ranking import Ranking
from millpond.schema import Type

MAX_DEPTH = 120
"""How deep operators may stand in one another; AND, OR and || count once however long."""

SubqueryRule = Callable[[exp.Expr, Scope], Node]


@dataclass
class Clock:
    """The time of the query's instant, of which conditions may speak.

    ``counts_ticks``: the times of the streams around are numbers; ``offsets``: where it was named.
    """

    tick_microseconds: int
    counts_ticks: bool
    offsets: list[int | None] = field(default_factory=list)


@dataclass
class Analyser:
    """Turns syntax trees into checked expressions over one scope.

    ``clause`` names the place for error messages. ``aggregates`` collects aggregate calls and is
    None where they are not allowed; ``subquery`` is None where subqueries are not allowed.
    ``offsets`` remembers where each column was named first.
    """

    rules: Mapping[type[exp.Expr], Callable[[Analyser, Any], Expression]]
    scope: Scope
    clause: str
    subquery: SubqueryRule | None = None
    aggregates: list[AggregateCall] | None = None
    inside_aggregate: bool = False
    offsets: dict[int, int | None] = field(default_factory=dict)
    depth: int = 0
    clock: Clock | None = None
    """The time of the query's instant; None where it cannot stand."""

    def expression(self, node: exp.Expr) -> Expression:
        """The checked form of a syntax tree."""
        rule = self.rules.get(type(node))
        if rule is None:
            refuse(node)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise StatementError(
                f"operators nested more than {MAX_DEPTH} deep; use CREATE VIEW to name the parts",
                node,
            )
        result = rule(self, node)
        self.depth -= 1
        return result

    def predicate(self, node: exp.Expr, clause: str = "") -> Expression:
        """An expression that must be a condition."""
        expression = self.expression(node)
        if expression.type not in (Type.BOOLEAN, Type.NULL):
            raise StatementError(
                f"{clause or self.clause} needs a condition (BOOLEAN), not {expression.type}", node
            )
        return cast(expression, Type.BOOLEAN)


_REFUSED: dict[type[exp.Expr], str] = {
    exp.Tuple: "a list of values in parentheses",
    exp.Concat: "a string after a string",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseNot: "~",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    exp.Alias: "AS inside an expression",
    exp.Any: "ANY without a comparison before it",
    exp.All: "ALL without a comparison before it",
    Ranking: "a rank or a function OVER inside an expression or condition",
}


def refuse(node: exp.Expr) -> NoReturn:
    """Refuses a node that is not part of CQL, by name."""
    words = _REFUSED.get(type(node)) or type(node).__name__.upper()
    raise unsupported(words, offset_of(node))


def flatten(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """The operands of a chain of one operator, left to right, without recursion."""
    pending = [node]
    while pending:
        part = pending.pop()
        while isinstance(part, exp.Paren) and isinstance(part.this, (exp.Paren, kind)):
            part = part.this
        if isinstance(part, kind):
            pending += (part.args["expression"], part.this)
        else:
            yield part


def connect(word: str, parts: list[Expression]) -> Expression:
    """AND or OR of conditions; long chains become balanced trees, so that none is deep."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) - 1 if len(parts) <= 16 else len(parts) // 2
    left, right = connect(word, parts[:middle]), connect(word, parts[middle:])
    return Call(word, (left, right), Type.BOOLEAN)


def negation(operand: Expression) -> Expression:
    """NOT operand."""
    return Call("not", (operand,), Type.BOOLEAN)
