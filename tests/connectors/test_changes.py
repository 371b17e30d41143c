from pathlib import Path

import pytest

from millpond.connectors.times import EARLIEST, LATEST
from millpond.errors import InputError
from tests.connectors.declarations import opened_changes, rows


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "r.csv").write_text(text)
    return str(tmp_path / "r.csv")


def test_changes_have_ticks_and_weights(tmp_path: Path) -> None:
    file = written(tmp_path, "op,a,ts\n+,1,10\n-,1,12\n")
    assert rows(opened_changes("a INT", "csv", file)) == [(10, 1, 1), (12, -1, 1)]


def test_times_may_be_timestamps(tmp_path: Path) -> None:
    file = written(tmp_path, "ts,op,a\n1970-01-01 00:00:05.9,+,1\n1970-01-01 00:01:00Z,-,1\n")
    assert rows(opened_changes("a INT", "csv", file)) == [(5, 1, 1), (60, -1, 1)]


def test_without_a_header_ts_and_op_come_first(tmp_path: Path) -> None:
    assert rows(opened_changes("a INT", "csv", written(tmp_path, "7,+,1\n"))) == [(7, 1, 1)]


def test_a_declared_ts_column_serves_for_both(tmp_path: Path) -> None:
    file = written(tmp_path, "ts,op,a\n7,+,1\n")
    assert rows(opened_changes("a INT, ts BIGINT", "csv", file)) == [(7, 1, 1, 7)]


def test_no_changes_are_no_rows(tmp_path: Path) -> None:
    assert rows(opened_changes("a INT", "csv", written(tmp_path, "ts,op,a\n"))) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ts,op,a\n1,+,1\n2,x,1\n", "R, row 2: op must be + or -"),
        ("ts,op,a\n1,,1\n", "R, row 1: op must be + or -"),
        ("ts,op,a\n,+,1\n", "r.csv, line 2: column ts is NULL; every tuple needs its time"),
        (f"ts,op,a\n1,+,1\n{2**62},+,1\n", f"between {EARLIEST} and {LATEST} ticks"),
        ("ts,op,a\n1,+,x\n", "line 2, column a: 'x' is not an INT"),
        ("ts,op,a\n2026-01-01,+,x\n", "line 2, column a: 'x' is not an INT"),
        ("ts,op,a\nsoon,+,1\n", "line 2, column ts: 'soon' is not a TIMESTAMP"),
        ("ts,a\n1,1\n", "line 1: no column op; columns here: ts, a"),
    ],
)
def test_faulty_changes_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        rows(opened_changes("a INT", "csv", written(tmp_path, text)))
    assert str(raised.value).endswith(message)
