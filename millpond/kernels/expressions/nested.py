"""STRUCTs and MAPs: made of values, and what is asked of them."""

from collections.abc import Callable
from functools import reduce

import numpy as np
import pyarrow as pa

from millpond.connectors.arrays import closed
from millpond.connectors.maps import closed_maps, opened_maps
from millpond.connectors.structs import closed_structs, opened_structs
from millpond.cql.expressions import Call, Literal
from millpond.kernels.expressions import comparisons
from millpond.kernels.expressions.faults import Faults, first_of
from millpond.kernels.expressions.operand import Operand, Text, Value, of_array, repeated, to_array
from millpond.kernels.expressions.rows import size
from millpond.kernels.expressions.strict import met, valid
from millpond.kernels.groups import Bools
from millpond.schema import Type


def struct(call: Call) -> Callable[..., Text]:
    """How STRUCT(e AS a, …) is applied."""
    types = [field.type for field in call.type.fields]

    def apply(*values: Value) -> Text:
        rows = size(values)
        parts = [to_array(v, type_, rows) for v, type_ in zip(values, types, strict=True)]
        return Text(closed_structs(parts, np.ones(rows, np.bool_)), all_faults(*values))

    return apply


def field(call: Call) -> Callable[..., Value]:
    """How s.a is applied."""
    value, name = call.arguments
    wanted = name.value if isinstance(name, Literal) else None
    names = [each.name for each in value.type.fields]
    at = names.index(str(wanted))

    def apply(value: Text, name: Value) -> Value:
        found = opened_structs(value.data, call.arguments[0].type)[at]
        return with_faults(of_array(found, call.type), value.faults)

    return apply


def map_of(call: Call) -> Callable[..., Text]:
    """How MAP[k, v, …] is applied: NULL if a key is NULL."""
    key, element = call.type.key, call.type.element

    def apply(*values: Value) -> Text:
        rows, width = size(values), len(values) // 2
        order = (np.arange(rows)[:, None] + rows * np.arange(width)).reshape(-1)
        keys, others = (
            pa.concat_arrays([to_array(each, type_, rows) for each in part]).take(pa.array(order))
            for part, type_ in ((values[::2], key), (values[1::2], element))
        )
        lacks = np.asarray(keys.is_null()).astype(np.int64).reshape(rows, width).sum(axis=1)
        has_all: Bools = lacks == 0
        offsets = pa.array(np.concatenate(([0], np.cumsum(has_all * width))), pa.int32())
        kept = pa.array(np.flatnonzero(np.repeat(has_all, width)))
        made = closed_maps(offsets, keys.take(kept), others.take(kept), has_all)
        return Text(made, all_faults(*values))

    return apply


def value_of_key(type_: Type) -> Callable[..., Value]:
    """How m[key] is applied: NULL where there is no such key."""

    def apply(value: Text, wanted: Value) -> Value:
        rows = size((value, wanted))
        data = value.data if len(value.data) == rows else repeated(value.data, rows)
        offsets, keys, elements = opened_maps(data, type_)
        row = np.repeat(np.arange(rows), np.diff(np.asarray(offsets)))
        partner = to_array(wanted, type_.key, rows).take(pa.array(row))
        same = comparisons.equal(of_array(keys, type_.key), of_array(partner, type_.key))
        at, known = np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
        places = np.flatnonzero(same.true)
        at[row[places]], known[row[places]] = places, True
        both = valid(value, wanted)
        known = known if both is None else known & both
        found = of_array(elements.take(pa.array(at, mask=~known)), type_.element)
        return with_faults(found, met(value, wanted))

    return apply


def map_keys(call: Call) -> Callable[[Text], Text]:
    """How the keys of a MAP are listed."""
    return lambda value: _listed(value, call.arguments[0].type, 1)


def map_values(call: Call) -> Callable[[Text], Text]:
    """How the values of a MAP are listed."""
    return lambda value: _listed(value, call.arguments[0].type, 2)


def _listed(value: Text, type_: Type, part: int) -> Text:
    opened = opened_maps(value.data, type_)
    lists = pa.ListArray.from_arrays(opened[0], opened[part])
    return Text(closed(lists, there(value)), value.faults)


def there(value: Text) -> Bools:
    """Where a value is not NULL."""
    return np.asarray(value.data.is_valid()).astype(np.bool_)


def all_faults(*values: Value) -> Faults | None:
    """The first fault of each row."""
    return reduce(first_of, (value.faults for value in values))


def with_faults(found: Value, faults: Faults | None) -> Value:
    """A value with these faults."""
    if isinstance(found, Text):
        return Text(found.data, faults)
    return Operand(found.data, found.valid, faults)
