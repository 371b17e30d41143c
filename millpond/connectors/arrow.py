"""CQL's types in Arrow, and the conversion of columns that come in another type."""

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrow_types import ARROW_TYPES
from millpond.connectors.base64_texts import of_base64_column
from millpond.connectors.nested_columns import column_of_json, nested_column
from millpond.errors import InputError
from millpond.schema import Field, Schema, Type

RowPosition: TypeAlias = Callable[[int], str]
"""Says where the row with a number (from zero) comes from; may be slow, so ask on errors only."""


@lru_cache(maxsize=1024)
def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of tables that hold these columns."""
    return pa.schema([pa.field(field.name, ARROW_TYPES[field.type]) for field in schema.fields])


def conform(
    table: pa.Table, schema: Schema, where: RowPosition, *, read_text: bool = False
) -> pa.Table:
    """The columns of ``schema``, found by name in any case and converted where nothing is lost.

    Text becomes a TIMESTAMP or a DATE; with ``read_text`` it becomes any type, as in a CSV file.
    """
    wanted = arrow_schema(schema)
    if table.schema.equals(wanted) and not schema.has_nested and _is_sound(table):
        return table.replace_schema_metadata()
    columns = [
        _convert(table.column(position), field, where, read_text)
        for field, position in zip(
            schema.fields, positions(table.column_names, schema, where), strict=True
        )
    ]
    return pa.table(columns, schema=wanted)


def _is_sound(table: pa.Table) -> bool:
    """Whether what a table has as text is text; if not, columns one by one say where it is not."""
    try:
        for position, column in enumerate(table.schema.types):
            if is_text(column):
                table.column(position).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def positions(names: list[str], schema: Schema, where: RowPosition) -> list[int]:
    """Where the columns of ``schema`` are among these names."""
    lower = [name.lower() for name in names]
    missing = [field.name for field in schema.fields if field.name.lower() not in lower]
    if missing:
        columns = shortened(", ".join(names)) or "none"
        raise InputError(f"{where(0)}: no column {', '.join(missing)}; columns here: {columns}")
    for name in schema.names:
        if lower.count(name.lower()) > 1:
            raise InputError(f"{where(0)}: there are two columns {name}; which one is meant?", name)
    return [lower.index(name.lower()) for name in schema.names]


def to_ticks(column: pa.ChunkedArray | pa.Array, tick_microseconds: int) -> pa.Array:
    """Times as whole ticks: integers count ticks already, TIMESTAMPs are rounded down."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    microseconds = column.cast(pa.timestamp("us")).cast(pa.int64())
    if tick_microseconds == 1:
        return microseconds
    quotient = pc.divide(microseconds, tick_microseconds)  # rounds towards zero
    too_high = pc.less(microseconds, pc.multiply(quotient, tick_microseconds))
    return pc.subtract(quotient, too_high.cast(pa.int64()))


def _convert(
    column: pa.ChunkedArray, field: Field, where: RowPosition, read_text: bool
) -> pa.Array:
    column = _written_out(column)
    wanted = ARROW_TYPES[field.type]
    if field.type.is_nested and pa.types.is_null(column.type):
        return pa.nulls(len(column), wanted)
    if field.type.is_nested and is_text(column.type):
        return _of_json(column, field, where)
    if field.type.is_nested:
        inner = partial(_convert, read_text=read_text)
        return nested_column(column, field, where, inner)
    if column.type != wanted and not _may_become(column.type, field.type, read_text):
        message = f"{where(0)}, column {field.name}: {column.type} is not {field.type}"
        raise InputError(message, field.name)
    try:
        return _cast(column, wanted)
    except pa.ArrowNotImplementedError:
        message = f"{where(0)}, column {field.name}: {column.type} cannot become {field.type}"
        raise InputError(message, field.name) from None
    except pa.ArrowInvalid:
        row = _first_fault(column, wanted)
        fault = f"{in_words(column[row])} is not {_article(field.type)}"
        message = f"{where(row)}, column {field.name}: {fault}"
        raise InputError(message, field.name) from None


def _of_json(column: pa.ChunkedArray, field: Field, where: RowPosition) -> pa.Array:
    """Values of texts, each in JSON."""
    column.validate(full=True)
    texts = column.to_pylist()

    def refuse(row: int) -> InputError:
        fault = f"{shortened(repr(texts[row]))} is not {_article(field.type)}"
        return InputError(f"{where(row)}, column {field.name}: {fault}", field.name)

    return column_of_json(texts, field.type, refuse)


def _written_out(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without a dictionary, where Arrow can write its values out."""
    if not pa.types.is_dictionary(column.type):
        return column
    if pa.types.is_string_view(column.type.value_type):  # which Arrow does not write out itself
        parts = (part.dictionary.cast(pa.string()).take(part.indices) for part in column.chunks)
        return pa.chunked_array(parts, pa.string())
    try:
        return column.cast(column.type.value_type)
    except pa.ArrowNotImplementedError:
        return column


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if is_text(column.type):
        column.validate(full=True)  # files and programs may hand over what is not UTF-8
    if column.type == wanted:
        return column
    if is_text(column.type) and pa.types.is_binary(wanted):
        return of_base64_column(column)
    if is_text(column.type) and not is_text(wanted):
        return _read(column, wanted)
    if pa.types.is_decimal(wanted):
        return _exact(column, wanted)
    options = pc.CastOptions(
        target_type=wanted,
        allow_time_truncate=True,
        allow_float_truncate=pa.types.is_floating(wanted),  # a BIGINT as DOUBLE may be rounded
    )
    return pc.cast(column, options=options)


def _exact(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """Numbers as DECIMALs: doubles are the numbers that they are written as."""
    if pa.types.is_floating(column.type):
        values = column.cast(pa.float64()).to_pylist()
        exact = [None if value is None else Decimal(repr(value)) for value in values]
        return pa.chunked_array([pa.array(exact, wanted)])
    if pa.types.is_integer(column.type):
        column = column.cast(pa.decimal256(76, wanted.scale))
    return column.cast(wanted)


def _read(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
        return _read_times(trimmed) if pa.types.is_timestamp(wanted) else trimmed.cast(wanted)


def _read_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times with and without zones, and with nanoseconds, which Arrow does not read together."""
    has_zone = pc.match_substring_regex(column, r":\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$")
    shortened = pc.replace_substring_regex(column, r"(\.\d{6})\d+", r"\1")
    without = pc.if_else(has_zone, None, shortened).cast(pa.timestamp("us"))
    within = pc.if_else(has_zone, shortened, None).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(without, within.cast(pa.timestamp("us")))


def _may_become(given: pa.DataType, wanted: Type, read_text: bool) -> bool:
    if pa.types.is_null(given):
        return True
    if is_text(given):
        return read_text or wanted in _OF_TEXT or wanted.is_decimal
    if wanted is Type.BINARY:
        return is_bytes(given)
    if wanted.is_number:
        return any(kind(given) for kind in _NUMBER_KINDS)
    if wanted is Type.TIMESTAMP:
        return any(kind(given) for kind in (pa.types.is_timestamp, pa.types.is_date))
    return wanted is Type.DATE and bool(pa.types.is_date(given))


_OF_TEXT = (Type.STRING, Type.BINARY, Type.TIMESTAMP, Type.DATE)
_NUMBER_KINDS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
_BINARY_KINDS = {each().id for each in (pa.binary, pa.large_binary, pa.binary_view)}
_TEXT_KINDS = {each().id for each in (pa.string, pa.large_string, pa.string_view)}


def is_text(given: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds text."""
    return given.id in _TEXT_KINDS


def is_bytes(given: pa.DataType) -> bool:
    """Whether a column of this Arrow type holds bytes that are no text."""
    return given.id in _BINARY_KINDS or bool(pa.types.is_fixed_size_binary(given))


def _first_fault(column: pa.ChunkedArray, wanted: pa.DataType) -> int:
    """The first row that cannot be cast, by halving: only the first fault is of interest."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            _cast(column.slice(low, middle - low), wanted)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def shortened(text: str) -> str:
    """A text as long as a message can bear.

    >>> len(shortened("x" * 1000))
    121
    """
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


_SHOWN_CHARACTERS = 120


def in_words(value: pa.Scalar) -> str:
    """A value as messages show it, also if Python cannot hold it."""
    try:
        return shortened(repr(value.as_py()))
    except UnicodeDecodeError:
        return shortened(repr(value.as_buffer().to_pybytes()))
    except (ValueError, OverflowError):  # a time outside of Python's range
        return f"{value.value} ({value.type})"


def _article(kind: Any) -> str:
    return f"{'an' if str(kind)[0] in 'AEIOU' else 'a'} {kind}"
