"""ARRAYs, STRUCTs and MAPs, which are lists, structs and maps of Arrow outside of the engine and
bytes within it."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrays import closed, opened, opened_lists
from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.connectors.cells import Bools
from millpond.connectors.maps import closed_maps, opened_maps
from millpond.connectors.structs import closed_structs, opened_structs
from millpond.schema import Type

Array: TypeAlias = pa.Array | pa.ChunkedArray


def is_nested(type_: pa.DataType) -> bool:
    """Whether it is a type of values outside of the engine that are bytes within it."""
    kinds = (pa.types.is_list, pa.types.is_struct, pa.types.is_map)
    return any(kind(type_) for kind in kinds)


def outside_type(type_: Type) -> pa.DataType:
    """The Arrow type that values of a type have outside of the engine.

    >>> outside_type(Type.array(Type.map(Type.STRING, Type.INT)))
    ListType(list<item: map<string, int32>>)
    """
    if type_.is_array:
        return pa.list_(outside_type(type_.element))
    if type_.is_map:
        return pa.map_(outside_type(type_.key), outside_type(type_.element))
    if type_.is_struct:
        return pa.struct([(field.name, outside_type(field.type)) for field in type_.fields])
    return ARROW_TYPES[type_]


def inside(column: Array) -> pa.Array:
    """A column as it is within the engine."""
    column = _whole(column)
    if pa.types.is_map(column.type):
        return _inside_maps(column)
    if pa.types.is_list(column.type):
        lists = opened_lists(column)
        return closed(pa.ListArray.from_arrays(lists.offsets, inside(lists.values)), _valid(column))
    if pa.types.is_struct(column.type):
        fields = [inside(column.field(at)) for at in range(column.type.num_fields)]
        return closed_structs(fields, _valid(column))
    return column


def _inside_maps(column: pa.Array) -> pa.Array:
    kinds = [("key", column.type.key_type), ("value", column.type.item_type)]
    lists = opened_lists(column.cast(pa.list_(pa.struct(kinds))))
    keys, values = (inside(lists.values.field(at)) for at in range(2))
    return closed_maps(lists.offsets, keys, values, _valid(column))


def outside(column: Array, type_: Type) -> pa.Array:
    """The same column as it is outside of the engine."""
    column = _whole(column)
    missing = pc.is_null(column)
    if type_.is_array:
        lists = opened(column, type_)
        values = outside(lists.values, type_.element)
        return pa.ListArray.from_arrays(lists.offsets, values, mask=missing)
    if type_.is_struct:
        pairs = zip(opened_structs(column, type_), type_.fields, strict=True)
        parts = [outside(values, field.type) for values, field in pairs]
        return pa.StructArray.from_arrays(parts, fields=list(outside_type(type_)), mask=missing)
    if type_.is_map:
        offsets, keys, values = opened_maps(column, type_)
        keys, values = outside(keys, type_.key), outside(values, type_.element)
        return pa.MapArray.from_arrays(offsets, keys, values, mask=missing)
    return column


def inside_table(table: pa.Table) -> pa.Table:
    """A table as it is within the engine."""
    for at, field in enumerate(table.schema):
        if is_nested(field.type):
            table = table.set_column(at, field.name, inside(table.column(at)))
    return table


def outside_table(table: pa.Table, types: Sequence[Type], first: int = 0) -> pa.Table:
    """A table as it is outside, whose columns from a number on are of these types."""
    for at, type_ in enumerate(types, start=first):
        if type_.is_nested:
            column = outside(table.column(at), type_)
            table = table.set_column(at, table.field(at).name, column)
    return table


def outside_row(row: Sequence[Any], types: Sequence[Type]) -> tuple[Any, ...]:
    """The values of a row within the engine as people know them, for messages."""
    return tuple(
        python_nested(outside(pa.array([value], pa.binary()), type_))[0]
        if type_.is_nested
        else value
        for value, type_ in zip(row, types, strict=True)
    )


def python_nested(column: Array) -> list[Any]:
    """The values of a column as lists and dicts."""
    found: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    return found


def _whole(column: Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _valid(column: pa.Array) -> Bools:
    return np.asarray(column.is_valid()).astype(np.bool_)
