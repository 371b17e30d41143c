"""ARRAYs: made of values, and what is asked of their elements."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from millpond.connectors.arrays import closed, opened
from millpond.cql.expressions import Call
from millpond.kernels.expressions import comparisons, nested
from millpond.kernels.expressions.operand import Operand, Text, Value, of_array, repeated, to_array
from millpond.kernels.expressions.rows import size
from millpond.kernels.expressions.strict import met, valid
from millpond.kernels.groups import Ints


def array(call: Call) -> Callable[..., Text]:
    """How ARRAY[e, …] is applied."""
    element = call.type.element

    def apply(*values: Value) -> Text:
        rows, width = size(values), len(values)
        joined = pa.concat_arrays([to_array(value, element, rows) for value in values])
        order = np.arange(rows)[:, None] + rows * np.arange(width)
        offsets = pa.array(np.arange(rows + 1) * width, pa.int32())
        lists = pa.ListArray.from_arrays(offsets, joined.take(pa.array(order.reshape(-1))))
        return Text(closed(lists, np.ones(rows, np.bool_)), nested.all_faults(*values))

    return apply


def element(call: Call) -> Callable[..., Value]:
    """How a[place] is applied, and m[key]: NULL where there is no such place."""
    type_ = call.arguments[0].type
    if type_.is_map:
        return nested.value_of_key(type_)

    def apply(value: Text, place: Operand) -> Value:
        lists = opened(value.data, type_)
        begins, counts = _bounds(lists)
        at = place.data.astype(np.int64)
        known = (at >= 1) & (at <= counts)
        both = valid(value, place)
        known = known if both is None else known & both
        wanted = pa.array(np.where(known, begins + at - 1, 0), mask=~known)
        found = of_array(lists.values.take(wanted), type_.element)
        return nested.with_faults(found, met(value, place))

    return apply


def cardinality(call: Call) -> Callable[[Text], Operand]:
    """How the number of elements, or entries, is counted."""
    type_ = call.arguments[0].type
    type_ = type_.entries if type_.is_map else type_

    def apply(value: Text) -> Operand:
        _, counts = _bounds(opened(value.data, type_))
        return Operand(counts.astype(np.int32), value.valid, value.faults)

    return apply


def contains(call: Call) -> Callable[..., Operand]:
    """How it is told whether an element equals a value: NULL if none does and one is NULL."""
    type_ = call.arguments[0].type

    def apply(value: Text, wanted: Value) -> Operand:
        rows = size((value, wanted))
        data = value.data if len(value.data) == rows else repeated(value.data, rows)
        lists = opened(data, type_)
        row = np.repeat(np.arange(rows), _bounds(lists)[1])
        partner = to_array(wanted, type_.element, rows).take(pa.array(row))
        elements = of_array(lists.values, type_.element)
        same = comparisons.equal(elements, of_array(partner, type_.element))
        is_found, is_open = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
        is_found[row[same.true]] = True
        if elements.valid is not None:
            is_open[row[~elements.valid]] = True
        known, both = is_found | ~is_open, valid(value, wanted)
        return Operand(is_found, known if both is None else known & both, met(value, wanted))

    return apply


def _bounds(lists: pa.ListArray) -> tuple[Ints, Ints]:
    """Where the elements of each list begin, and how many there are."""
    offsets = np.asarray(lists.offsets).astype(np.int64)
    return offsets[:-1], np.diff(offsets)
