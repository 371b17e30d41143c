from datetime import date, datetime
from pathlib import Path

import pytest

from millpond.connectors import files
from millpond.connectors.files import Block
from millpond.connectors.json_lines import JsonLines, _Object
from millpond.connectors.rows import rows_to_arrow
from millpond.errors import InputError
from millpond.schema import Field, Schema, Type
from tests.connectors.declarations import opened, rows

ALL = "b BOOLEAN, i INT, d DOUBLE, s STRING, day DATE, ts TIMESTAMP"
NULLS = (None,) * 6


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "a.jsonl").write_text(text)
    return str(tmp_path / "a.jsonl")


def test_objects_become_rows(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        '{"b": true, "i": 1, "d": 2, "s": "x", "day": "2026-01-02", "ts": "2026-01-02T03:04:05Z"}\n'
        '\n{"more": [1], "s": null}\n',
    )
    full = (True, 1, 2.0, "x", date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5))
    assert rows(opened(ALL, "json", file)) == [full, NULLS]


def test_values_that_arrow_refuses_are_read_one_by_one(tmp_path: Path) -> None:
    file = written(tmp_path, '{"i": 1.0}\n{"i": 2}\n')
    assert rows(opened("i INT", "json", file)) == [(1,), (2,)]


@pytest.mark.parametrize("before", ["", '{"i": 1}\n'])
def test_null_in_place_of_an_object_is_refused(tmp_path: Path, before: str) -> None:
    """Arrow alone takes it for an empty object, and as the first line it ends the process."""
    file = written(tmp_path, before + "null\n")
    line = 1 + before.count("\n")
    with pytest.raises(
        InputError, match=f"line {line}: a JSON object is wanted, one a line, not null"
    ):
        rows(opened("i INT", "json", file))


def test_text_that_is_not_utf8_names_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "latin.jsonl"
    file.write_bytes('{"i": 1, "s": "x"}\n{"i": 2, "s": "café"}\n'.encode("latin-1"))
    with pytest.raises(InputError) as raised:
        rows(opened("i INT, s STRING", "json", str(file)))
    assert str(raised.value) == (
        f"{file}, line 2, column s: b'caf\\xe9' is not UTF-8; as Latin-1 it is 'café' (see iconv)"
    )


def test_what_is_skipped_may_be_odd(tmp_path: Path) -> None:
    file = written(tmp_path, '{"i": 1.0, "more": {"x": 1, "x": 2}}\n')
    assert rows(opened("i INT", "json", file)) == [(1,)]


def test_utf16_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "wide.jsonl").write_bytes('{"i": 1}\n'.encode("utf-16"))
    with pytest.raises(InputError, match=r"wide\.jsonl, line 1: this is UTF-16, not UTF-8"):
        rows(opened("i INT", "json", str(tmp_path / "wide.jsonl")))


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"i": 1}\n')
    assert rows(opened("i INT", "json", str(tmp_path / "a.jsonl"))) == [(1,)]


def test_keys_may_be_written_otherwise_on_each_line(tmp_path: Path) -> None:
    file = written(tmp_path, '{"I": 1}\n{"i": 2}\n{"i" : null}\n')
    assert rows(opened("i INT", "json", file)) == [(1,), (2,), (None,)]


def test_keys_match_in_any_case(tmp_path: Path) -> None:
    file = written(tmp_path, '{"Client": 1}\n{"Client": 2}\n')
    assert rows(opened("client INT", "json", file)) == [(1,), (2,)]


def test_a_file_of_many_blocks_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 50)
    file = written(tmp_path, "\n".join(f'{{"i": {n}}}' for n in range(100)))
    assert rows(opened("i INT", "json", file, page_rows=7)) == [(n,) for n in range(100)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"i": "x"}', "column i: 'x' is not an INT"),
        ('{"ts": "soon"}', "column ts: 'soon' is not a TIMESTAMP"),
        ('{"ts": 5}', "column ts: 5 is not a TIMESTAMP"),
        ('{"s": 5}', "column s: 5 is not a STRING"),
        ('{"s": ', ", character 7: no JSON: Expecting value"),
        ("[1]", "a JSON object is wanted, one a line, not an array"),
        ("null", "a JSON object is wanted, one a line, not null"),
        ("5", "a JSON object is wanted, one a line, not 5"),
        ('{"i": 1} {"i": 2}', ", character 10: no JSON: Extra data"),
        (
            '{"s": "\\ud800"}',
            "column s: '\\ud800' is not a STRING (it holds half of a surrogate pair)",
        ),
        (
            '{"i": ' + "[" * 100_000 + "]" * 100_000 + "}",
            ": arrays or objects too deep in each other",
        ),
        ('{"i": 1, "i": 2}', ": the key i is there twice"),
    ],
)
def test_a_fault_names_file_and_line(
    tmp_path: Path, line: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 20)
    file = written(tmp_path, '{"i": 1}\n\n{"i": 2}\n{"i": 3}\n' + line + "\n")
    with pytest.raises(InputError) as raised:
        rows(opened(ALL, "json", file))
    place, _, rest = str(raised.value).partition(", line 5")
    assert place == file
    assert message in rest


def test_the_position_of_a_fault_is_looked_for_once() -> None:
    """Looking for it goes through the lines before, so once for each row would be quadratic."""
    asked: list[int] = []

    def where(row: int) -> str:
        asked.append(row)
        return f"row {row}"

    schema = Schema((Field("a", Type.INT),))
    objects = [_Object([("A", 1)]) for _ in range(100)] + [_Object([("A", "x")])]
    with pytest.raises(InputError, match="row 100, column a"):
        rows_to_arrow(objects, schema, where, lenient=True)
    assert asked == [100]
    content = b'{"a": 1}\n' * 100 + b'{"A": 2.0}\n'  # which is read line by line
    assert JsonLines(schema).table(Block("f", content, 0), where).num_rows == 101
    assert asked == [100]
