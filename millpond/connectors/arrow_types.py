"""The Arrow types of CQL's types, within the engine."""

import pyarrow as pa

from millpond.schema import Type


class _ArrowTypes(dict[Type, pa.DataType]):
    """The Arrow type of each type; those with parameters are made when they are asked for."""

    def __missing__(self, type_: Type) -> pa.DataType:
        if type_.is_nested:
            return pa.binary()
        if not type_.is_decimal:
            raise KeyError(type_)
        return pa.decimal128(type_.precision, type_.scale)


ARROW_TYPES = _ArrowTypes(
    {
        Type.BOOLEAN: pa.bool_(),
        Type.INT: pa.int32(),
        Type.BIGINT: pa.int64(),
        Type.DOUBLE: pa.float64(),
        Type.STRING: pa.string(),
        Type.BINARY: pa.binary(),
        Type.DATE: pa.date32(),
        Type.TIMESTAMP: pa.timestamp("us"),
        Type.NULL: pa.null(),
    }
)
"""TIMESTAMP is in UTC, without a zone of its own; values with others in them are bytes
(``nested.py``)."""
