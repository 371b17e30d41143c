"""Arrow from outside: how much it unpacks to is known before anything is unpacked, and every offset
in it is checked before anybody reads along it.

A file is a stream between a mark and a footer. It is read as that stream, so that no offset of the
footer is ever followed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millpond.connectors.arrow import is_bytes, is_text
from millpond.connectors.nested_columns import is_list
from millpond.errors import InputError
from millpond.schema import Schema
from millpond.server.faults import RequestError

FILE_MARK = b"ARROW1\0\0"
VALUE_BYTES = 8
"""What a value of a declared column takes at least, whatever stands for it in the body."""


def arrow_table(body: bytes, schema: Schema, most_bytes: int) -> pa.Table:
    """The rows of a body; refused with 413 if they take more than ``most_bytes`` unpacked."""
    stream = pa.py_buffer(body)
    if body.startswith(FILE_MARK):
        stream = stream.slice(len(FILE_MARK))
    try:
        _refuse_large(_announced_bytes(stream, len(schema)), most_bytes)
        table = pa.ipc.open_stream(pa.BufferReader(stream)).read_all()
        table.validate(full=True)
        _ = str(table.schema)  # names that are no text are found here
    except (pa.ArrowException, ValueError, OSError, OverflowError, struct.error) as error:
        raise InputError(f"this is no Arrow stream: {error}") from None
    _refuse_large(sum(map(_text_bytes, table.columns)), most_bytes)
    return table


def _refuse_large(unpacked_bytes: int, most_bytes: int) -> None:
    if unpacked_bytes > most_bytes:
        raise RequestError(
            413,
            f"the body unpacks to {unpacked_bytes:,} bytes; {most_bytes:,} are the most "
            "(`millpond serve --unpacked-bytes`), so send it in several",
        )


def _announced_bytes(stream: pa.Buffer, columns: int) -> int:
    """What the messages of a stream say that they unpack to; nothing is unpacked for this."""
    total = rows = 0
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(stream)):
        if message.type in ("record batch", "dictionary"):
            batch = _batch(message)
            total += sum(_unpacked(batch, message.body)) if message.body is not None else 0
            rows += batch.whole(0, "<q") if message.type == "record batch" else 0
    return max(total, rows * columns * VALUE_BYTES)


def _text_bytes(column: pa.ChunkedArray) -> int:
    """What the texts or BINARYs of a column take once each value is written out by itself."""
    return sum(int(pc.sum(_lengths(chunk)).as_py() or 0) for chunk in column.chunks)


def _lengths(chunk: pa.Array) -> pa.Array:
    """How many bytes each value of a column has that may say a text once for many rows."""
    if isinstance(chunk, pa.DictionaryArray):
        lengths = _lengths(chunk.dictionary)
        return lengths.take(chunk.indices) if len(lengths) else lengths
    if pa.types.is_string_view(chunk.type) or pa.types.is_binary_view(chunk.type):
        views = np.frombuffer(chunk.buffers()[1], np.int32).reshape(-1, 4)
        found = views[chunk.offset : chunk.offset + len(chunk), 0]
        return pc.if_else(chunk.is_valid(), pa.array(found.astype(np.int64)), 0)
    if pa.types.is_fixed_size_binary(chunk.type):
        return pa.repeat(chunk.type.byte_width, len(chunk)).cast(pa.int64())
    if is_text(chunk.type) or is_bytes(chunk.type):
        return pc.binary_length(chunk).cast(pa.int64())
    if is_list(chunk.type):
        return _list_lengths(chunk)
    if pa.types.is_map(chunk.type):
        kinds = [("key", chunk.type.key_type), ("value", chunk.type.item_type)]
        return _list_lengths(chunk.cast(pa.list_(pa.struct(kinds))))
    if pa.types.is_struct(chunk.type):
        return _struct_lengths(chunk)
    return pa.array([0])[:0]


def _list_lengths(chunk: pa.Array) -> pa.Array:
    counts = pc.fill_null(pc.list_value_length(chunk), 0).to_numpy(zero_copy_only=False)
    ends = np.concatenate(([0], np.cumsum(counts.astype(np.int64))))
    values = _lengths(chunk.flatten())
    sizes = np.full(int(ends[-1]), VALUE_BYTES, np.int64)
    if len(values):
        sizes += pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    totals = np.concatenate(([0], np.cumsum(sizes)))
    return pa.array(np.diff(totals[ends]))


def _struct_lengths(chunk: pa.Array) -> pa.Array:
    total = np.full(len(chunk), VALUE_BYTES * chunk.type.num_fields, np.int64)
    for at in range(chunk.type.num_fields):
        lengths = _lengths(chunk.field(at))
        if len(lengths):
            total += pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return pa.array(total)


# -- the little of Arrow's metadata that is needed here ---------------------------------------


class _Table:
    """A table of a flatbuffer: fields are found by their number, and may be absent."""

    def __init__(self, data: memoryview, place: int) -> None:
        self._data, self.place = data, place
        self._vtable = place - self._read("<i", place)
        (self._vtable_bytes,) = struct.unpack_from("<H", data, self._at(self._vtable))

    def whole(self, field: int, form: str) -> int:
        """A number; zero where it is absent."""
        place = self._field(field)
        return 0 if place is None else self._read(form, place)

    def table(self, field: int) -> _Table | None:
        """A table within."""
        place = self._field(field)
        return None if place is None else _Table(self._data, self._followed(place))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """A vector of structs of two numbers."""
        place = self._field(field)
        if place is not None:
            start = self._followed(place)
            count = self._read("<I", start)
            first = self._at(start + 4)
            if first + 16 * count > len(self._data):
                raise ValueError("a vector is longer than its message")
            yield from struct.iter_unpack("<qq", self._data[first : first + 16 * count])

    def _field(self, number: int) -> int | None:
        slot = 4 + 2 * number
        if slot + 2 > self._vtable_bytes:
            return None
        offset = self._read("<H", self._vtable + slot)
        return self.place + offset if offset else None

    def _followed(self, place: int) -> int:
        return place + self._read("<I", place)

    def _read(self, form: str, place: int) -> int:
        (found,) = struct.unpack_from(form, self._data, self._at(place))
        return int(found)

    def _at(self, place: int) -> int:
        if place < 0:
            raise ValueError("an offset leads out of its message")
        return place


def _batch(message: pa.Message) -> _Table:
    """The record batch of a message, or that of the dictionary in it."""
    data = memoryview(message.metadata)
    (root,) = struct.unpack_from("<I", data, 0)
    header = _Table(data, root).table(2)
    batch = header.table(1) if header is not None and message.type == "dictionary" else header
    if batch is None:
        raise ValueError("a message has no content")
    return batch


def _unpacked(batch: _Table, body: pa.Buffer) -> Iterator[int]:
    """How large each buffer of a batch is; one that is compressed begins with that."""
    is_compressed = batch.table(3) is not None
    data = memoryview(body)
    for offset, length in batch.pairs(2):
        if is_compressed and length >= 8:
            (size,) = struct.unpack_from("<q", data, _within(offset, len(data)))
            yield length if size == -1 else _within(size, 2**63)
        else:
            yield length


def _within(number: int, bound: int) -> int:
    if not 0 <= number < bound:
        raise ValueError("an offset or a length is out of range")
    return number
