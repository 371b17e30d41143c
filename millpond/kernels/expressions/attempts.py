"""attempt and succeeds of a call that can fail: its faults become NULLs, or an answer."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.kernels.expressions.operand import Operand, Text, Value, both


def attempt(value: Value) -> Value:
    """The value, NULL where it failed."""
    if value.faults is None:
        return value
    fine = value.faults == 0
    if isinstance(value, Text):
        return Text(pc.if_else(pa.array(np.broadcast_to(fine, len(value.data))), value.data, None))
    return Operand(value.data, both(value.valid, fine))


def succeeds(value: Value) -> Operand:
    """Whether the value did not fail."""
    if value.faults is None:
        return Operand(np.ones(len(value.data), np.bool_))
    return Operand(value.faults == 0)
