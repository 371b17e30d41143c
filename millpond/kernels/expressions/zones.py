"""Functions that read the calendar in a time zone."""

from collections.abc import Callable
from typing import Any

import numpy as np

from millpond.cql.expressions import Call, Literal
from millpond.cql.zones import LOCAL_TIME, ZONED_TEXT
from millpond.kernels.expressions.operand import Operand, Text, Value
from millpond.kernels.expressions.reading import time_and_offset
from millpond.kernels.expressions.rows import by_row
from millpond.kernels.expressions.strict import plain
from millpond.time_zones import first_instants, shown


def zoned(call: Call) -> Callable[..., Value]:
    """The function of a call whose last argument names the zone."""
    mark = call.arguments[1]
    zone = str(mark.value) if isinstance(mark, Literal) else ""
    if call.function == ZONED_TEXT:
        return lambda text, _: _read(zone, text)
    apply = plain(
        lambda times: (shown if call.function == LOCAL_TIME else first_instants)(zone, times)
    )
    return lambda times, _: apply(times)


def _read(zone: str, text: Text) -> Operand:
    """Texts as instants: those without an offset show the clocks of the zone."""
    found: list[Any] = by_row(time_and_offset, text)
    is_there = np.array([each is not None for each in found], np.bool_)
    times = np.array([0 if each is None else each[0] for each in found], np.int64)
    is_local = np.array([each is not None and not each[1] for each in found], np.bool_)
    times[is_local] = first_instants(zone, times[is_local])
    return Operand(times, is_there, text.faults)
