"""Records are found where Arrow finds them, and text is cut between them only."""

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millpond.connectors.csv_records import end_of_records, records
from millpond.connectors.files import Blocks

PIECES = st.lists(st.sampled_from(['"', '""', ",", "\n", "x", "é", " ", "\r\n"]), max_size=40)


def read_by_arrow(text: bytes) -> list[list[str]] | None:
    """The cells that are not empty, record by record; None where Arrow refuses the text."""
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(text),
            pyarrow.csv.ReadOptions(column_names=["0", "1"]),
            pyarrow.csv.ParseOptions(newlines_in_values=True),
            pyarrow.csv.ConvertOptions(column_types=dict.fromkeys("01", pa.string())),
        )
    except pa.ArrowInvalid:
        return None
    return [list(row.values()) for row in table.to_pylist()]


@given(PIECES)
def test_records_are_those_that_arrow_reads(pieces: list[str]) -> None:
    text = "".join(pieces).encode()
    expected = read_by_arrow(text)
    if expected is not None:
        assert [[cell.decode() for cell in r.cells] for r in records(text, b",")] == expected


@given(PIECES, st.integers(1, 12))
def test_blocks_cut_anywhere_hold_the_same_records(pieces: list[str], size: int) -> None:
    text = "".join(pieces).encode()
    chunks = iter([text[i : i + size] for i in range(0, len(text), size)])
    blocks = Blocks([], lambda block: end_of_records(block, b","))
    found = [r.cells for part in blocks._whole_records("x", chunks) for r in records(part, b",")]
    assert found == [record.cells for record in records(text, b",")]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (b"", 0),
        (b"1,2\n3", 4),
        (b'1,"x\n', 0),
        (b'1\n2,"x\ny"\n3,"z', 10),
        (b'5" pipe\n"a\nb"\n', 14),
        (b'5" pipe\n"a\nb', 8),
        (b'"a""\n"\n"b', 7),
    ],
)
def test_text_is_cut_after_its_last_whole_record(text: bytes, whole: int) -> None:
    assert end_of_records(text, b",") == whole


def test_records_know_their_lines() -> None:
    found = list(records(b'\na,"b\nc"\n\nd,e', b","))
    assert [(r.line, r.last_line, r.cells) for r in found] == [
        (2, 3, [b"a", b"b\nc"]),
        (5, 5, [b"d", b"e"]),
    ]
