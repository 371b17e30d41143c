"""Syntax of ORDER BY, LIMIT and OVER."""

from typing import Any, ClassVar, TypeGuard

from sqlglot import exp

from millpond.cql.algebra import OVER_FUNCTIONS
from millpond.cql.text.places import StatementError

RANKINGS = ("ROW_NUMBER", "RANK", "DENSE_RANK")


class Sorting(exp.Expression):
    """One expression of ORDER BY."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "descending": True, "nulls_first": True}


class Order(exp.Expression):
    """ORDER BY."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Limit(exp.Expression):
    """LIMIT n; with ``ties`` also the rows that no sort key tells from the last one."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "ties": True}


class FrameBound(exp.Expression):
    """Where a frame begins or ends: ``this`` rows or a length away, 0 if it is the row itself, None
    if it is the end of its partition; on a ``side``."""

    arg_types: ClassVar[dict[str, bool]] = {"this": False, "side": True}


class FrameText(exp.Expression):
    """ROWS or RANGE BETWEEN … AND …"""

    arg_types: ClassVar[dict[str, bool]] = {"unit": True, "start": True, "end": True}


class Ranking(exp.Expression):
    """ROW_NUMBER() OVER (PARTITION BY … ORDER BY …), or another function of rows in order."""

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "partition": False,
        "order": False,
        "arguments": False,
        "frame": False,
    }

    @property
    def is_rank(self) -> bool:
        """Whether it gives ranks."""
        return self.args["kind"].upper() in RANKINGS

    @property
    def sorts(self) -> list[Sorting]:
        """What it goes by."""
        order = self.args.get("order")
        return [] if order is None else list(order.expressions)


def is_over(call: Any) -> TypeGuard[exp.Anonymous]:
    """Whether a call is one that OVER may follow."""
    if not isinstance(call, exp.Anonymous):
        return False
    is_rank = call.name.upper() in RANKINGS and not call.expressions
    return is_rank or call.name.lower() in OVER_FUNCTIONS


def filtered(node: exp.Filter) -> exp.Anonymous:
    """A call with FILTER as one of those values alone for which the condition holds."""
    call: exp.Anonymous = node.this.copy()
    given = call.expressions
    if call.name.lower() not in _FILTERED or not given or isinstance(given[0], exp.Distinct):
        raise StatementError("FILTER stands behind an aggregate function", node)
    value = exp.true() if isinstance(given[0], exp.Star) else given[0]
    branch = exp.If(this=node.expression, true=value)
    call.set("expressions", [exp.Case(ifs=[branch]).update_positions(call), *given[1:]])
    return call


_FILTERED = ("count", "sum", "avg", "min", "max")
