"""Conjunctions are taken apart and put together, however long they are."""

from __future__ import annotations

import pytest

from millpond.cql.expressions import Call, Column
from millpond.planning.predicates import conjoin, conjuncts
from millpond.schema import Type


def depth(expression: object) -> int:
    below = expression.arguments if isinstance(expression, Call) else ()
    return 1 + max(map(depth, below), default=0)


@pytest.mark.parametrize("count", [0, 1, 2, 16, 17, 600, 5_000])
def test_a_conjunction_has_its_parts_in_order_and_is_not_deep(count: int) -> None:
    parts = [Column(i, Type.BOOLEAN, f"c{i}") for i in range(count)]
    whole = conjoin(parts)
    assert conjuncts(whole) == parts
    assert whole is None or depth(whole) < 40
