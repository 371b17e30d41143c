"""IN with many constants looks them up; the answer is that of comparing with each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from millpond.kernels.expressions import comparisons
from millpond.kernels.expressions.logic import any_of
from millpond.kernels.expressions.operand import Operand, Text

RANDOM = np.random.default_rng(1)
NUMBERS = {
    np.int32: [-(2**31), -1, 0, 7, 2**31 - 1, 12],
    np.int64: [-(2**63), 5, 2**63 - 1, 0, 2**40],
    np.float64: [-0.0, 1.5, np.nan, np.inf, -np.inf, 5e-324],
    np.bool_: [True, False, True, True],
}


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("has_null", [False, True])
def test_numbers(dtype, has_null):
    values = np.array([*NUMBERS[dtype], *NUMBERS[dtype], 0, 1], dtype)
    valid = RANDOM.random(len(values)) < 0.7 if has_null else None
    for count in range(1, len(NUMBERS[dtype]) + 1):
        constants = [Operand(np.array([each], dtype)) for each in NUMBERS[dtype][:count]]
        _agree(Operand(values, valid), constants)


def test_a_list_with_null_is_compared_one_by_one():
    constants = [Operand(np.array([each])) for each in range(5)]
    constants.append(Operand(np.zeros(1, np.int64), np.zeros(1, np.bool_)))
    _agree(Operand(np.arange(9)), constants)


def test_texts():
    texts = ["", "a", "A", "ä", "aa", "\0", None, "b"]
    constants = [Text(pa.array([each])) for each in texts if each is not None]
    for count in range(1, len(constants) + 1):
        _agree(Text(pa.array([*texts, "c"])), constants[:count])
    _agree(Text(pa.array(["a"])), constants)


def _agree(value, constants):
    found = comparisons.one_of(value, *constants)
    wanted = any_of(*(comparisons.equal(value, each) for each in constants))
    known = np.broadcast_to(True if wanted.valid is None else wanted.valid, found.data.shape)
    mine = np.broadcast_to(True if found.valid is None else found.valid, found.data.shape)
    assert mine.tolist() == known.tolist()
    assert found.data[known].tolist() == wanted.data[known].tolist()
