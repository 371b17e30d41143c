from datetime import date, datetime
from pathlib import Path

import pytest

from millpond.connectors import json_lines
from millpond.errors import InputError
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


def test_keys_match_in_any_case(tmp_path: Path) -> None:
    file = written(tmp_path, '{"Client": 1}\n{"Client": 2}\n')
    assert rows(opened("client INT", "json", file)) == [(1,), (2,)]


def test_a_file_of_many_blocks_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "BLOCK_BYTES", 50)
    file = written(tmp_path, "\n".join(f'{{"i": {n}}}' for n in range(100)))
    assert rows(opened("i INT", "json", file, page_rows=7)) == [(n,) for n in range(100)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"i": "x"}', "column i: 'x' is not an INT"),
        ('{"ts": "soon"}', "column ts: 'soon' is not a TIMESTAMP"),
        ('{"ts": 5}', "column ts: 5 is not a TIMESTAMP"),
        ('{"s": 5}', "column s: 5 is not a STRING"),
        ('{"s": ', "no JSON"),
        ("[1]", "a JSON object is wanted, one a line"),
    ],
)
def test_a_fault_names_file_and_line(
    tmp_path: Path, line: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "BLOCK_BYTES", 20)
    file = written(tmp_path, '{"i": 1}\n\n{"i": 2}\n{"i": 3}\n' + line + "\n")
    with pytest.raises(InputError) as raised:
        rows(opened(ALL, "json", file))
    place, _, rest = str(raised.value).partition(", line 5")
    assert place == file
    assert message in rest
