"""Syntax of ORDER BY, LIMIT and OVER."""

from typing import Any, ClassVar, TypeGuard

from sqlglot import exp

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


class Ranking(exp.Expression):
    """ROW_NUMBER() OVER (PARTITION BY … ORDER BY …), or another rank."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "partition": False, "order": True}


def is_ranking(call: Any) -> TypeGuard[exp.Anonymous]:
    """Whether a call is one of a rank."""
    is_call = isinstance(call, exp.Anonymous) and not call.expressions
    return is_call and call.name.upper() in RANKINGS
