"""A condition in parts: a row that fails one of them is not looked at by those behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from millpond.cql.expressions import Expression
from millpond.kernels.expressions.faults import first_of, only, raise_first
from millpond.kernels.expressions.operand import Operand, over_rows
from millpond.kernels.expressions.program import Columns, Program
from millpond.kernels.groups import Bools


class Condition:
    """The conjunction of some predicates over the same columns."""

    def __init__(self, parts: Sequence[Expression]) -> None:
        self._program = Program(parts)
        self._is_empty = not parts

    def holds(self, columns: Columns, rows: int) -> Bools | None:
        """Where all parts are true; None if there are none. Raises the first fault met."""
        if self._is_empty:
            return None
        if rows == 0:
            return np.zeros(0, dtype=np.bool_)
        kept, faults = None, None
        for value in cast("list[Operand]", self._program.run(columns)):
            faults = first_of(faults, only(kept, value.faults))
            kept = value.true if kept is None else kept & value.true
        raise_first(faults)
        return None if kept is None else over_rows(kept, rows)
