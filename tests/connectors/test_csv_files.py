import gzip
from datetime import datetime
from pathlib import Path

import pytest

from millpond.connectors import files
from millpond.connectors.csv_files import CsvSource
from millpond.errors import InputError
from tests.connectors.declarations import opened, rows


def written(tmp_path: Path, text: str, name: str = "requests.csv") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def test_a_header_names_the_columns_in_any_order(tmp_path: Path) -> None:
    file = written(tmp_path, "ts,Client_ID,more\n2026-01-01 00:00:01,7,x\n")
    source = opened("client_id INT, ts TIMESTAMP", "csv", file)
    assert rows(source) == [(7, datetime(2026, 1, 1, 0, 0, 1))]


def test_without_a_header_columns_go_by_position(tmp_path: Path) -> None:
    file = written(tmp_path, "7,x\n8,y\n")
    assert rows(opened("a INT, b STRING", "csv", file)) == [(7, "x"), (8, "y")]


def test_header_false_reads_a_first_line_that_looks_like_one(tmp_path: Path) -> None:
    file = written(tmp_path, "a,b\n")
    assert rows(opened("a STRING, b STRING", "csv", file, header=False)) == [("a", "b")]
    assert rows(opened("a STRING, b STRING", "csv", file)) == []


def test_an_empty_cell_is_null_and_a_quoted_one_is_empty(tmp_path: Path) -> None:
    file = written(tmp_path, 'a,b\n,\n1,""\n')
    assert rows(opened("a INT, b STRING", "csv", file)) == [(None, None), (1, "")]


def test_delimiter_and_null_text_can_be_chosen(tmp_path: Path) -> None:
    file = written(tmp_path, "1;NA\nNA;\n")
    source = opened("a INT, b STRING", "csv", file, delimiter=";", null="NA")
    assert rows(source) == [(1, None), (None, "")]


def test_quotes_spaces_and_line_breaks_are_understood(tmp_path: Path) -> None:
    file = written(tmp_path, 'a,b\n 1,"x, ""y""\nz"\n')
    assert rows(opened("a INT, b STRING", "csv", file)) == [(1, 'x, "y"\nz')]


def test_pages_have_the_asked_number_of_rows(tmp_path: Path) -> None:
    file = written(tmp_path, "a\n" + "".join(f"{n}\n" for n in range(25)))
    pages = list(opened("a INT", "csv", file, page_rows=10).pages())
    assert [page.num_rows for page in pages] == [10, 10, 5]


def test_lines_are_counted_only_when_something_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(row: int) -> str:
        raise AssertionError(f"asked for row {row}")

    monkeypatch.setattr(CsvSource, "_where", lambda *_: refuse)
    assert rows(opened("a INT", "csv", written(tmp_path, "a\n1\n"))) == [(1,)]


def test_directories_and_patterns_read_all_their_files(tmp_path: Path) -> None:
    written(tmp_path, "a\n1\n", "x1.csv")
    written(tmp_path, "a\n2\n", "x2.csv")
    written(tmp_path, "a\n3\n", "_hidden.csv")
    assert rows(opened("a INT", "csv", str(tmp_path))) == [(1,), (2,)]
    assert rows(opened("a INT", "csv", "x*.csv", directory=tmp_path)) == [(1,), (2,)]


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wt") as text:
        text.write("a\n5\n")
    assert rows(opened("a INT", "csv", str(tmp_path / "a.csv.gz"))) == [(5,)]


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    assert rows(opened("a INT", "csv", written(tmp_path, ""))) == []


def test_progress_counts_bytes(tmp_path: Path) -> None:
    source = opened("a INT", "csv", written(tmp_path, "a\n1\n"))
    assert (source.progress().done, source.progress().total) == (0, 4)
    rows(source)
    assert (source.progress().done, source.progress().total) == (4, 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,ts\n1,2026-01-01\n2,abc\n", "line 3, column ts: 'abc' is not a TIMESTAMP"),
        ('a,ts\n"1",\n"x\ny",\n', "line 4, column a: 'x\\ny' is not an INT"),
        ("a,ts\n\n1.5,\n", "line 3, column a: '1.5' is not an INT"),
        ("a,ts\n3000000000,\n", "line 2, column a: '3000000000' is not an INT"),
        ("a,ts\n1,\n1\n", "line 3: 1 columns instead of 2"),
        ("a,b\n1,2\n", "line 1: no column ts; columns here: a, b"),
        ("1\n", "line 1: 1 columns, but S has 2: (a INT, ts TIMESTAMP)"),
        ("a,ts,A\n1,,2\n", "line 1: there are two columns a; which one is meant?"),
        ("\n\na,ts\n1,\n1,2,3\n", "line 5: 3 columns instead of 2"),
    ],
)
def test_a_fault_names_file_line_and_column(tmp_path: Path, text: str, message: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(InputError) as raised:
        rows(opened("a INT, ts TIMESTAMP", "csv", file))
    assert str(raised.value) == f"{file}, {message}"


@pytest.mark.parametrize("faulty", [0, 1, 499, 998, 999])
def test_a_fault_is_found_anywhere_in_a_page(tmp_path: Path, faulty: int) -> None:
    cells = ["x" if n in (faulty, 999) else str(n) for n in range(1000)]
    file = written(tmp_path, "a\n" + "\n".join(cells))
    with pytest.raises(InputError, match=f"line {faulty + 2}, column a: 'x' is not an INT"):
        rows(opened("a INT", "csv", file))


def test_a_fault_after_many_blocks_has_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 30)
    lines = [f'{n},"x\n{n}"' for n in range(20)]
    file = written(tmp_path, "a,s\n" + "\n".join(lines) + "\nno,\n")
    with pytest.raises(InputError, match=r"line 42, column a: 'no' is not an INT"):
        rows(opened("a INT, s STRING", "csv", file))


def test_undeclared_columns_may_repeat(tmp_path: Path) -> None:
    file = written(tmp_path, "x,a,x\n1,2,3\n")
    assert rows(opened("a INT", "csv", file)) == [(2,)]


def test_text_that_is_not_utf8_names_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "latin.csv"
    file.write_bytes("a,name\n1,x\n2,café\n".encode("latin-1"))
    with pytest.raises(InputError) as raised:
        rows(opened("a INT, name STRING", "csv", str(file)))
    assert str(raised.value) == (
        f"{file}, line 3, column name: b'caf\\xe9' is not UTF-8; "
        "as Latin-1 it is 'café' (see iconv)"
    )


def test_utf16_is_recognised(tmp_path: Path) -> None:
    file = tmp_path / "wide.csv"
    file.write_bytes("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"wide\.csv, line 1: this is UTF-16, not UTF-8"):
        rows(opened("a INT, b INT", "csv", str(file)))


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfa\n1\n")
    assert rows(opened("a INT", "csv", str(tmp_path / "a.csv"))) == [(1,)]


@pytest.mark.parametrize("text", ["a\r\n1\r\n2\r\n", "a\r1\r2\r", "a\n1\n2"])
def test_lines_may_end_in_every_way(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_bytes(text.encode())
    assert rows(opened("a INT", "csv", str(tmp_path / "a.csv"))) == [(1,), (2,)]


def test_a_tuple_without_a_usable_time_names_its_line(tmp_path: Path) -> None:
    for text, message in (
        ("a,ts\n1,5\n2,\n", "line 3: column ts is NULL; every tuple needs its time"),
        (f"a,ts\n1,5\n2,{2**61}\n", f"line 3, column ts: the time {2**61} is out of range; times"),
    ):
        file = written(tmp_path, text)
        with pytest.raises(InputError) as raised:
            rows(opened("a INT, ts BIGINT", "csv", file, time="ts"))
        assert str(raised.value).startswith(f"{file}, {message}")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^S: no file nowhere\.csv$"):
        opened("a INT", "csv", "nowhere.csv", directory=tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ";;"}, "S: delimiter ';;' is not one character"),
        ({"delimiter": "§"}, "S: '§' cannot be a delimiter"),
        ({"delimiter": '"'}, "S: '\"' cannot be a delimiter"),
        ({"header": "maybe"}, "S: header is true, false or 'auto', not 'maybe'"),
        ({"delimeter": ";"}, 'csv: no option delimeter; did you mean "delimiter"?'),
    ],
)
def test_faulty_options_are_refused(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as raised:
        opened("a INT", "csv", written(tmp_path, "a\n"), **options)
    assert str(raised.value).startswith(message)
