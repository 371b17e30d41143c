"""Lists, structs, maps and texts of JSON that come in columns, as ARRAYs, STRUCTs and MAPs."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from millpond.connectors.arrays import closed, opened_lists
from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.connectors.cells import Bools
from millpond.connectors.conversions import NOT_NESTED, nested_of_text
from millpond.connectors.maps import closed_maps
from millpond.connectors.nested import inside, outside_type
from millpond.connectors.structs import closed_structs
from millpond.errors import InputError
from millpond.schema import Field, Type

RowPosition: TypeAlias = Callable[[int], str]
Convert: TypeAlias = Callable[[pa.ChunkedArray, Field, RowPosition], pa.Array]
"""Converts a column of another type, and refuses what is lost."""


def is_list(given: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds lists."""
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(kind(given) for kind in kinds)


def nested_column(
    column: pa.ChunkedArray, field: Field, where: RowPosition, convert: Convert
) -> pa.Array:
    """The column as one of an ARRAY, STRUCT or MAP, whose parts are converted one by one."""
    type_ = field.type
    if type_.is_array and is_list(column.type):
        whole = column.cast(pa.list_(column.type.value_type)).combine_chunks()
        lists = opened_lists(whole)
        inner = Field(field.name, type_.element)
        values = _part(lists.values, inner, _row_of(lists, where), convert)
        return closed(pa.ListArray.from_arrays(lists.offsets, values), _valid(whole))
    if type_.is_struct and pa.types.is_struct(column.type):
        return _struct(column.combine_chunks(), field, where, convert)
    if type_.is_map and pa.types.is_map(column.type):
        return _map(column.combine_chunks(), field, where, convert)
    message = f"{where(0)}, column {field.name}: {column.type} is not {type_}"
    raise InputError(message, field.name)


def _struct(column: pa.Array, field: Field, where: RowPosition, convert: Convert) -> pa.Array:
    """Fields are found by name in any case; one that is not there is NULL, others are left out."""
    names, columns = [each.name.lower() for each in column.type], column.flatten()
    parts = []
    for each in field.type.fields:
        if each.name.lower() in names:
            inner = Field(f"{field.name}.{each.name}", each.type)
            given = columns[names.index(each.name.lower())]
            parts.append(_part(given, inner, where, convert))
        else:
            parts.append(pa.nulls(len(column), ARROW_TYPES[each.type]))
    return closed_structs(parts, _valid(column))


def _map(column: pa.Array, field: Field, where: RowPosition, convert: Convert) -> pa.Array:
    kinds = [("key", column.type.key_type), ("value", column.type.item_type)]
    lists = opened_lists(column.cast(pa.list_(pa.struct(kinds))))
    row_of = _row_of(lists, where)
    keys, values = (
        _part(lists.values.field(at), Field(field.name, type_), row_of, convert)
        for at, type_ in enumerate((field.type.key, field.type.element))
    )
    return closed_maps(lists.offsets, keys, values, _valid(column))


def _part(values: pa.Array, field: Field, where: RowPosition, convert: Convert) -> pa.Array:
    made = convert(pa.chunked_array([values]), field, where)
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def _row_of(lists: pa.ListArray, where: RowPosition) -> RowPosition:
    """Where the row comes from to which an element belongs."""

    def row_of(element: int) -> str:
        behind = np.searchsorted(np.asarray(lists.offsets), element, side="right")
        return where(int(behind) - 1)

    return row_of


def _valid(column: pa.Array) -> Bools:
    return np.asarray(column.is_valid()).astype(np.bool_)


def column_of_json(
    texts: Sequence[str | None], type_: Type, refuse: Callable[[int], InputError]
) -> pa.Array:
    """Values of a type, each of a text of JSON."""
    found = list[Any]()
    for row, text in enumerate(texts):
        try:
            found.append(None if text is None else nested_of_text(text, type_))
        except NOT_NESTED:
            raise refuse(row) from None
    return inside(pa.array(found, outside_type(type_)))
