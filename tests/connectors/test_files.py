"""Files, pipes and standard input are read once, and what is wrong with them is said."""

import gzip
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millpond.connectors import files
from millpond.errors import InputError
from tests.connectors.declarations import opened, opened_changes, rows
from tests.patience import PATIENCE_SECONDS


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def fed(pipe: Path, *parts: str, pause_seconds: float = 0.0) -> threading.Thread:
    """A thread that writes into a pipe."""

    def feed() -> None:
        with pipe.open("w") as text:
            for part in parts:
                text.write(part)
                text.flush()
                time.sleep(pause_seconds)

    thread = threading.Thread(target=feed)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("connector", "text"), [("csv", "a\n1\n2\n"), ("json", '{"a": 1}\n{"a": 2}\n')]
)
def test_a_named_pipe_is_read_to_its_end(pipe: Path, connector: str, text: str) -> None:
    source = opened("a INT", connector, str(pipe))
    writer = fed(pipe, text)
    assert rows(source) == [(1,), (2,)]
    writer.join()
    assert source.progress().total is None
    assert source.progress().done == len(text)


def test_a_pipe_hands_on_what_has_come(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PAUSE_SECONDS", 0.01)
    pages = opened("a INT", "csv", str(pipe)).pages()
    go_on = threading.Event()

    def feed() -> None:
        with pipe.open("w") as text:
            text.write("a\n1\n2\n3")
            text.flush()
            go_on.wait(PATIENCE_SECONDS)
            text.write("4\n")

    writer = threading.Thread(target=feed)
    writer.start()
    assert [row for page in [next(pages)] for row in page.column(0).to_pylist()] == [1, 2]
    go_on.set()
    assert [page.column(0).to_pylist() for page in pages] == [[34]]
    writer.join()


def test_a_large_pipe_comes_in_large_pages(pipe: Path) -> None:
    source = opened("a INT", "csv", str(pipe), page_rows=60_000)
    writer = fed(pipe, "a\n" + "123456\n" * 200_000)
    sizes = [page.num_rows for page in source.pages()]
    writer.join()
    assert sum(sizes) == 200_000
    assert max(sizes) == 60_000
    assert len(sizes) < 20


def test_a_fault_in_a_pipe_has_its_line(pipe: Path) -> None:
    writer = fed(pipe, "a\n" + "1\n" * 1000 + "x\n")
    with pytest.raises(InputError, match=r"pipe, line 1002, column a: 'x' is not an INT"):
        rows(opened("a INT", "csv", str(pipe)))
    writer.join()


@pytest.mark.parametrize("when", ["5", "1970-01-01 00:00:05"])
def test_changes_in_a_pipe_may_have_times_of_both_kinds(pipe: Path, when: str) -> None:
    writer = fed(pipe, f"ts,op,a\n{when},+,1\n")
    assert rows(opened_changes("a INT", "csv", str(pipe))) == [(5, 1, 1)]
    writer.join()


@contextmanager
def standard_input(text: str, place: Path, is_pipe: bool) -> Iterator[None]:
    """Has standard input hold a text, through a pipe or from a file."""
    before = os.dup(0)
    if is_pipe:
        reading, writing = os.pipe()
        os.write(writing, text.encode())
        os.close(writing)
    else:
        place.write_text(text)
        reading = os.open(place, os.O_RDONLY)
    os.dup2(reading, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reading)


@pytest.mark.parametrize(
    ("connector", "arguments"),
    [
        ("csv", ["-"]),
        ("csv", ["/dev/stdin"]),
        ("stdin", []),
        ("stdin", ["csv"]),
        ("json", ["-"]),
        ("json", ["/dev/stdin"]),
        ("stdin", ["json"]),
    ],
)
@pytest.mark.parametrize("is_pipe", [True, False])
def test_standard_input_is_a_source(
    tmp_path: Path, connector: str, arguments: list[str], is_pipe: bool
) -> None:
    is_json = "json" in [connector, *arguments]
    text = '{"a": 1, "b": "x"}\n' if is_json else "a,b\n1,x\n"
    with standard_input(text, tmp_path / "input", is_pipe):
        source = opened("a INT, b STRING", connector, *arguments)
        assert rows(source) == [(1, "x")]
        assert source.progress().total == (None if is_pipe else len(text))


def test_a_fault_on_standard_input_has_its_line(tmp_path: Path) -> None:
    with (
        standard_input("a\n1\nx\n", tmp_path / "input", True),
        pytest.raises(InputError, match=r"^standard input, line 3, column a: 'x' is not an INT$"),
    ):
        rows(opened("a INT", "stdin"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "S: format is 'csv' or 'json', not 'xml'"),
        (
            {"format": "json", "header": True},
            "S: header, delimiter and null are for format = 'csv'",
        ),
    ],
)
def test_faulty_options_of_stdin_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}$"):
        opened("a INT", "stdin", **options)


# What is wrong with a file.


def links_in_a_circle(place: Path) -> None:
    place.symlink_to(place.with_name("other"))
    place.with_name("other").symlink_to(place)


def not_compressed(place: Path) -> None:
    place.write_text("a\n1\n")


def cut_short(place: Path) -> None:
    place.write_bytes(gzip.compress(os.urandom(1000))[:500])


def unreadable_folder(place: Path) -> None:
    place.mkdir()


@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("x.csv", links_in_a_circle, "Too many levels of symbolic links"),
        ("x.csv", lambda place: place.symlink_to("nowhere"), "No such file or directory"),
        ("x.csv.gz", not_compressed, "by its name it is compressed with gzip"),
        ("x.csv.gz", cut_short, "by its name it is compressed with gzip"),
        ("x", unreadable_folder, "no file ending in .csv or .csv.gz in directory"),
        ("x" * 300, lambda place: None, "File name too long"),
        ("x\0y", lambda place: None, "is not a file name"),
        ("", lambda place: None, "is not a file name"),
        ("~nobody-of-that-name/x", lambda place: None, "begins with the home of nobody here"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, name: str, make: object, message: str
) -> None:
    assert callable(make)
    if "\0" not in name and name:
        make(tmp_path / name)
    with pytest.raises(InputError, match=message) as raised:
        rows(opened("a INT", "csv", name, directory=tmp_path))
    assert repr(name)[1:-1] in str(raised.value)


def test_a_quote_left_open_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BLOCK_BYTES", 10_000)
    monkeypatch.setattr(files, "LONGEST_RECORD_BYTES", 2**20)
    (tmp_path / "x.csv").write_text('a,b\n1,x\n2,"x\n' + "3,y\n" * 300_000)
    with pytest.raises(
        InputError, match=r"x\.csv, line 3: longer than 1 MB; is a quote left open\?"
    ):
        rows(opened("a INT, b STRING", "csv", str(tmp_path / "x.csv")))


def test_parquet_cannot_come_through_a_pipe(pipe: Path) -> None:
    for name in (str(pipe), "-"):
        with pytest.raises(InputError, match="is a pipe; Parquet is read from its end"):
            opened("a INT", "parquet", name)
