"""Arrow from outside: as good as any, never larger than allowed, and never followed blindly."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from millpond.connectors import to_arrow
from millpond.errors import InputError
from millpond.schema import Field, Schema, Type
from millpond.server.arrow_body import arrow_table
from millpond.server.faults import RequestError
from tests.server.arrow_bodies import damaged, file_of, stream_of

MOST = 4 * 2**20
ROOT = Path(__file__).parents[2]
SCHEMA = Schema((Field("t", Type.BIGINT), Field("s", Type.STRING)))
ROWS = pa.table({"t": [1, 2, 3], "s": ["a", None, "ccc"]})


def read(body: bytes, most: int = MOST) -> pa.Table:
    return arrow_table(body, SCHEMA, most)


@pytest.mark.parametrize("write", [stream_of, file_of])
@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_what_is_well_formed_is_read(write: object, compression: str | None, kind: object) -> None:
    table = pa.table({"t": ROWS["t"], "s": ROWS["s"].cast(kind)})
    assert read(write(table, compression)).equals(table)  # type: ignore[operator]


def test_dictionaries_are_read_from_streams_and_files() -> None:
    table = pa.table({"t": ROWS["t"], "s": ROWS["s"].combine_chunks().dictionary_encode()})
    for body in (stream_of(table), file_of(table), stream_of(table, "zstd")):
        assert read(body)["s"].to_pylist() == ["a", None, "ccc"]


def large_bodies() -> Iterator[tuple[str, bytes]]:
    """Small bodies that unpack to much more than MOST."""
    zeros = pa.table({"t": pa.array([0] * 2_000_000, pa.int64())})
    yield "zstd", stream_of(zeros, "zstd")
    yield "zstd in a file", file_of(zeros, "zstd")
    yield (
        "a compressed dictionary",
        stream_of(pa.table({"s": pa.DictionaryArray.from_arrays([0], ["x" * 10_000_000])}), "zstd"),
    )
    many = pa.array([0] * 10_000, pa.int16())
    yield (
        "a dictionary",
        stream_of(pa.table({"s": pa.DictionaryArray.from_arrays(many, ["x" * 10_000])})),
    )
    view = struct.pack("<i4sii", 10_000, b"xxxx", 0, 0) * 10_000
    buffers = [None, pa.py_buffer(view), pa.py_buffer(b"x" * 10_000)]
    views = pa.Array.from_buffers(pa.string_view(), 10_000, buffers)
    yield "views of one text", stream_of(pa.table({"s": views}))
    nulls = pa.Array.from_buffers(pa.null(), 2**31 - 1, [None])
    yield "rows of nothing", stream_of(pa.table({"t": nulls, "s": nulls}))


@pytest.mark.parametrize(("name", "body"), list(large_bodies()), ids=lambda value: str(value)[:24])
def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(name: str, body: bytes) -> None:
    assert len(body) < 400_000
    before = pa.total_allocated_bytes()
    with pytest.raises(RequestError, match="unpacks to") as refused:
        read(body)
    assert refused.value.status == 413
    assert pa.total_allocated_bytes() - before < MOST


@pytest.mark.parametrize("size", [2**62, -5, -(2**63)])
def test_a_length_that_lies_is_refused(size: int) -> None:
    body = stream_of(pa.table({"t": pa.array([7] * 1_000, pa.int64())}), "zstd")
    announced = struct.pack("<q", 8_000)
    assert body.count(announced) == 1
    with pytest.raises((RequestError, InputError)):
        read(body.replace(announced, struct.pack("<q", size)))


def test_the_footer_of_a_file_leads_nowhere() -> None:
    body = bytearray(file_of(ROWS))
    (length,) = struct.unpack_from("<i", body, len(body) - 10)
    for place in range(len(body) - 10 - length, len(body) - 10):
        body[place] = 0xFF
    assert read(bytes(body)).equals(ROWS)


def test_text_whose_offsets_are_wrong_is_refused() -> None:
    table = pa.table({"t": [1, 2, 3], "s": ["abc", "defg", "hijkl"]})
    right = struct.pack("<iiii", 0, 3, 7, 12)
    for write in (stream_of, file_of):
        for wrong in ((0, 1_000_000_000, 5, 12), (0, 3, 7, 2_000_000_000), (0, -9, 7, 12)):
            body = write(table)
            assert body.count(right) == 1
            with pytest.raises(InputError, match="no Arrow stream"):
                read(body.replace(right, struct.pack("<iiii", *wrong)))


@pytest.mark.slow
def test_damage_never_ends_the_process() -> None:
    """In a process of its own: what it would do to a server it does to that."""
    code = f"import sys; from {__name__} import broken; sys.exit(broken(1_000))"
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def broken(count: int) -> int:
    """0 if every damaged body was read or refused in the two ways there are."""
    draw = random.Random(19)
    for body in damaged(draw, count):
        try:
            table = read(body)
            for name in table.column_names:
                kind = draw.choice([Type.STRING, Type.BIGINT, Type.TIMESTAMP, Type.DOUBLE])
                to_arrow(table.select([name]), Schema((Field(name, kind),)), "S")
        except (InputError, RequestError):
            continue
        except BaseException:  # noqa: BLE001 (anything else is what is looked for)
            traceback.print_exc()
            return 1
    return 0
