"""Expressions compiled to steps: constants, sharing, and errors only where a row needs them."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from millpond.cql.expressions import Call, Column, Exists, Expression, Literal
from millpond.errors import InputError
from millpond.kernels.expressions import WORDS, Fault, Program, can_lower, lower
from millpond.planning.physical import QueueRead
from millpond.schema import Schema, Type

B = Type.BIGINT
X, Y, T = Column(0, B), Column(1, B), Column(2, Type.BOOLEAN)
ONE = Literal(1, B)
LARGEST = 2**63 - 1


def call(function: str, *arguments: Expression, type_: Type = B) -> Call:
    return Call(function, arguments, type_)


def run(expression: Expression, *columns: list[object]) -> list[object]:
    types = (pa.int64(), pa.int64(), pa.bool_())
    arrays = [pa.chunked_array([c], t) for c, t in zip(columns, types, strict=False)]
    return lower(expression)(arrays, len(columns[0])).to_pylist()


def test_a_constant_has_a_value_in_each_row() -> None:
    assert run(call("+", ONE, ONE), [5, 6, 7]) == [2, 2, 2]
    assert run(Literal("a", Type.STRING), [5, 6]) == ["a", "a"]
    assert run(Literal(None, Type.DATE), [5]) == [None]


def test_nothing_is_computed_from_no_rows() -> None:
    assert run(call("+", X, ONE), []) == []
    assert run(call("+", Literal(LARGEST, B), ONE), []) == []
    assert run(call("concat", Literal("a", Type.STRING), type_=Type.STRING), []) == []


def test_columns_in_pieces_and_slices_are_read_whole() -> None:
    whole = pa.chunked_array([[9, 1, None], [], [3, 4, 9]], pa.int64())
    truths = pa.chunked_array([pa.array([None, True, False] * 6).slice(10, 4)])
    cut = whole.slice(1, 4)
    assert lower(call("+", X, ONE))([cut], 4).to_pylist() == [2, None, 4, 5]
    assert lower(Column(0, Type.BOOLEAN))([truths], 4).to_pylist() == [True, False, None, True]


def test_an_overflow_is_an_error_in_plain_words() -> None:
    with pytest.raises(InputError, match=WORDS[Fault.ARITHMETIC_OVERFLOW]):
        run(call("+", X, Y), [1, LARGEST], [1, 1])


def test_the_error_of_the_first_row_is_raised() -> None:
    narrow = Call("cast", (X,), Type.INT)
    both = call("case", T, call("+", X, X), call("cast", narrow))
    with pytest.raises(InputError, match=WORDS[Fault.CAST_OVERFLOW]):
        run(both, [1, LARGEST, LARGEST], [0, 0, 0], [True, False, True])


def test_a_part_that_no_row_needs_cannot_fail() -> None:
    risky = call("+", X, ONE)
    assert run(call("case", T, ONE, risky), [LARGEST, 1], [0, 0], [True, False]) == [1, 2]
    assert run(call("coalesce", Y, risky), [LARGEST, 1], [7, None]) == [7, 2]
    assert run(call("*", Y, risky), [LARGEST], [None]) == [None]


def test_zeros_of_both_signs_are_two_constants() -> None:
    zero, minus = Literal(0.0, Type.DOUBLE), Literal(-0.0, Type.DOUBLE)
    found = Program([zero, minus]).arrays([], 1)
    assert [str(array[0].as_py()) for array in found] == ["0.0", "-0.0"]


def test_values_may_be_many_where_one_tells_that_none_is_null() -> None:
    """A remainder may be NULL, a constant one is not: it tells so once, for all rows."""
    remainder = call("%", Literal(7, Type.BIGINT), Literal(5, Type.BIGINT))
    number = Call("cast", (call("+", X, remainder),), Type.INT)
    text = Literal("a-b", Type.STRING)
    part = Call("split_part", (text, Literal("-", Type.STRING), number), Type.STRING)
    assert run(part, [-1, 0, 7]) == ["a", "b", ""]


def test_a_program_can_be_sent_to_another_process() -> None:
    program = pickle.loads(pickle.dumps(Program([call("+", X, ONE), X])))
    assert [a.to_pylist() for a in program.arrays([pa.array([1, 2])], 2)] == [[2, 3], [1, 2]]


def test_a_text_that_no_memory_holds_is_refused() -> None:
    text, width = Literal("a", Type.STRING), Literal(2**31 - 1, Type.INT)
    with pytest.raises(InputError, match="give a smaller length"):
        run(Call("lpad", (text, width, text), Type.STRING), [1])


def test_subqueries_and_functions_of_spark_are_not_lowered() -> None:
    number = Column(0, Type.DOUBLE)
    assert can_lower(call("+", X, call("abs", Y)))
    written = Call("cast", (number,), Type.STRING)
    assert not can_lower(Call("length", (written,), Type.INT))
    assert not can_lower(Call("round", (number, Literal(-2, Type.INT)), Type.DOUBLE))
    assert not can_lower(Exists(QueueRead("q", Schema(()), of_stream=False)))
