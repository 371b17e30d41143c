"""A condition in parts: a row that fails one of them is not looked at by those behind it."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa

from millpond.cql.expressions import Expression, UserCall, walk
from millpond.kernels.expressions.faults import first_of, only, raise_first
from millpond.kernels.expressions.operand import Operand, over_rows
from millpond.kernels.expressions.program import Columns, Program
from millpond.kernels.groups import Bools


class Condition:
    """The conjunction of some predicates over the same columns.

    Functions of the user may be dear: a part with one gets the rows that those before it have left.
    """

    def __init__(self, parts: Sequence[Expression]) -> None:
        stages: list[list[Expression]] = []
        for part in parts:
            if not stages or any(isinstance(each, UserCall) for each in walk(part)):
                stages.append([])
            stages[-1].append(part)
        self._stages = [Program(stage) for stage in stages]

    def holds(self, columns: Columns, rows: int) -> Bools | None:
        """Where all parts are true; None if there are none. Raises the first fault met."""
        if not self._stages:
            return None
        if rows == 0:
            return np.zeros(0, dtype=np.bool_)
        kept = _holds(self._stages[0], columns, rows)
        for stage in self._stages[1:]:
            mask, left = pa.array(kept), int(np.count_nonzero(kept))
            if left:
                kept = kept.copy()
                kept[kept] = _holds(stage, [column.filter(mask) for column in columns], left)
        return kept


def _holds(program: Program, columns: Columns, rows: int) -> Bools:
    kept, faults = None, None
    for value in cast("list[Operand]", program.run(columns)):
        faults = first_of(faults, only(kept, value.faults))
        kept = value.true if kept is None else kept & value.true
    raise_first(faults)
    return over_rows(np.ones(1, np.bool_) if kept is None else kept, rows)
