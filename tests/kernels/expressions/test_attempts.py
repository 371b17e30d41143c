"""attempt is NULL and succeeds false exactly where a call fails, for every function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pytest

from millpond.cql.expressions import Call, Expression, Literal
from millpond.cql.failing import can_fail
from millpond.kernels.expressions import Program, can_lower
from millpond.kernels.expressions.operand import to_array
from millpond.planning.attempts import success, value
from millpond.schema import Type
from tests.kernels.expressions import nasty

TABLE = nasty.table()


def patterns() -> list[Call]:
    """LIKE with patterns that cannot be read, written out."""
    texts = ("\\", "a\\", "\\a", "\\\\\\", "%\\%\\")
    column, mark = nasty.column(Type.STRING), Literal("!", Type.STRING)
    found = [Call("like", (column, Literal(t, Type.STRING)), Type.BOOLEAN) for t in texts]
    return [*found, Call("like", (column, Literal("a!b", Type.STRING), mark), Type.BOOLEAN)]


def calls(failing: bool) -> list[Call]:
    """The calls of all functions that can fail, or that cannot."""
    found = {repr(e): e for e in [*nasty.calls(), *patterns()] if isinstance(e, Call)}
    return [e for e in found.values() if can_fail(e) == failing]


def faults(expressions: Sequence[Expression]) -> list[np.ndarray]:
    """Where each expression fails."""
    none = np.zeros(TABLE.num_rows, np.uint8)
    values = Program(expressions).run(TABLE.columns)
    return [none if v.faults is None else np.broadcast_to(v.faults, len(none)) for v in values]


def test_what_is_said_never_to_fail_never_fails() -> None:
    harmless = [e for e in calls(failing=False) if can_lower(e)]
    assert len(harmless) > 600
    wrong = [str(e) for e, f in zip(harmless, faults(harmless), strict=True) if f.any()]
    assert not wrong


def test_every_function_that_is_said_to_fail_fails_somewhere() -> None:
    failing = calls(failing=True)
    kinds = [(e.function, *(a.type for a in e.arguments)) for e in failing]
    found = {kind for kind, f in zip(kinds, faults(failing), strict=True) if f.any()}
    assert {kind for kind in kinds if not _of_decimals(kind)} <= found <= set(kinds)
    assert {"*", "cast"} <= {function for function, *types in found if _of_decimals(types)}


def _of_decimals(kind: Iterable[object]) -> bool:
    """Whether it is by the digits of types that a call is said to fail: numbers may have fewer."""
    return any(isinstance(each, Type) and each.is_decimal for each in kind)


@pytest.mark.parametrize("call", calls(failing=True), ids=str)
def test_attempts_of_a_call_tell_where_it_fails(call: Call) -> None:
    (fails,) = (f != 0 for f in faults([call]))
    (plain,) = Program([call]).run(TABLE.columns)
    attempted, succeeds = Program([value(call), success(call)]).arrays(
        TABLE.columns, TABLE.num_rows
    )
    assert succeeds.null_count == 0
    assert np.array_equal(np.array(succeeds), ~fails)
    expected = to_array(plain, call.type, TABLE.num_rows).filter(pa.array(~fails))
    assert attempted.filter(pa.array(~fails)).equals(expected)
    assert attempted.filter(pa.array(fails)).null_count == fails.sum()
