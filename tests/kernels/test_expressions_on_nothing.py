"""Expressions over no rows at all: constants have no place among them."""

from __future__ import annotations

import pyarrow as pa

from millpond.cql.expressions import Call, Column, Literal
from millpond.kernels.expressions import Condition, Program
from millpond.schema import Type

NOTHING = pa.chunked_array([], pa.string())


def test_a_constant_beside_a_column_without_rows_gives_no_rows() -> None:
    null, column = Literal(None, Type.STRING), Column(0, Type.STRING, "a")
    both = Call("coalesce", (null, Call("nullif", (column, null), Type.STRING)), Type.STRING)
    (found,) = Program([both]).arrays([NOTHING], 0)
    assert (len(found), found.type) == (0, pa.string())
    equal = Call("=", (null, column), Type.BOOLEAN)
    kept = Condition([equal]).holds([NOTHING], 0)
    assert kept is not None
    assert len(kept) == 0
