"""ROLLUP, CUBE and GROUPING SETS: the lists of keys that they stand for."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import ClassVar

from sqlglot import exp

MOST_SETS = 64


class GroupingSets(exp.Expression):
    """ROLLUP, CUBE or GROUPING (SETS) with its items: expressions, tuples of them, or the like."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "expressions": True}


def all_sets(elements: Sequence[exp.Expr]) -> list[exp.Tuple]:
    """The grouping sets of a GROUP BY: each of one element with each of the others."""
    found = [_sets(each) if isinstance(each, GroupingSets) else [[each]] for each in elements]
    return [
        exp.Tuple(expressions=[key.copy() for part in parts for key in part])
        for parts in product(*found)
    ]


def _sets(element: GroupingSets) -> list[list[exp.Expr]]:
    items = element.expressions
    if element.args["kind"] == "GROUPING":
        return [keys for each in items for keys in _sets_of_item(each)]
    parts = [_keys(each) for each in items]
    if element.args["kind"] == "ROLLUP":
        return [_joined(parts[:length]) for length in range(len(parts), -1, -1)]
    lengths = range(len(parts), -1, -1)
    return [_joined(chosen) for length in lengths for chosen in combinations(parts, length)]


def _sets_of_item(item: exp.Expr) -> list[list[exp.Expr]]:
    return _sets(item) if isinstance(item, GroupingSets) else [_keys(item)]


def _keys(item: exp.Expr) -> list[exp.Expr]:
    return list(item.expressions) if isinstance(item, exp.Tuple) else [item]


def _joined(parts: Sequence[list[exp.Expr]]) -> list[exp.Expr]:
    return [key for part in parts for key in part]
