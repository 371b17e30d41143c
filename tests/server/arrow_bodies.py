"""Arrow streams and files for tests: whole ones, and such with bytes of every part changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa

NASTY = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)


def _written(table: pa.Table, compression: str | None, is_file: bool) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    opened = pa.ipc.new_file if is_file else pa.ipc.new_stream
    with opened(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def stream_of(table: pa.Table, compression: str | None = None) -> bytes:
    """The table as a stream."""
    return _written(table, compression, is_file=False)


def file_of(table: pa.Table, compression: str | None = None) -> bytes:
    """The table as a file."""
    return _written(table, compression, is_file=True)


def originals() -> list[bytes]:
    """Streams and files, compressed or not, of tables with columns of many kinds."""
    text = pa.array(["a", None, "long enough to be no part of a view", ""] * 5)
    columns = {
        "t": pa.array(range(20), pa.int64()),
        "a": pa.array([1, None] * 10, pa.int32()),
        "s": text,
        "l": text.cast(pa.large_string()),
        "v": text.cast(pa.string_view()),
        "d": text.dictionary_encode(),
        "n": pa.array([[1, 2], None] * 10),
        "b": pa.array([True, False] * 10),
        "r": pa.RunEndEncodedArray.from_arrays([5, 20], ["x", "y"]),
    }
    table = pa.table(columns)
    forms = ((False, None), (True, None), (False, "lz4"), (True, "zstd"))
    return [_written(table, compression, is_file) for is_file, compression in forms]


def damaged(draw: random.Random, count: int) -> Iterator[bytes]:
    """Bodies with bytes changed, cut off, doubled or swapped, at places all over them."""
    bodies = originals()
    for number in range(count):
        body = bytearray(draw.choice(bodies))
        place = len(body) * number // count
        match draw.randrange(5):
            case 0:
                body[place] = draw.choice(NASTY)
            case 1:
                for _ in range(draw.randrange(1, 6)):
                    body[draw.randrange(len(body))] = draw.choice(NASTY)
            case 2:
                body[place : place + 8] = draw.randbytes(8)
            case 3:
                del body[place:]
            case 4:
                body[place : place + 4] = draw.choice(
                    (b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\xff\xff\xff\xff", b"\x00" * 4)
                )
        yield bytes(body)
