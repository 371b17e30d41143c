"""Bars make way for results: on the screen stand the results, each on its line, and no bar."""

import io
import re
from contextlib import suppress

import pyarrow as pa
import pytest

from millpond.cli.progress import ProgressDisplay, amount, ended_by_printing
from millpond.connectors import Progress
from tests.patience import wait_until

COMMAND = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """What stands there after everything was written, as a terminal would show it."""
        lines, row, column, text = [""], 0, 0, self.getvalue()
        while text:
            command = COMMAND.match(text)
            if command:
                count = int(command[1] or 1) if command[1].isdigit() or not command[1] else 0
                if command[2] == "A":
                    row = max(0, row - count)
                elif command[2] == "K":
                    lines[row] = ""
                text = text[command.end() :]
                continue
            character, text = text[0], text[1:]
            if character == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif character == "\r":
                column = 0
            else:
                line = lines[row].ljust(column)
                lines[row] = line[:column] + character + line[column + 1 :]
                column += 1
        return [line.rstrip() for line in lines]


class Lines:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def write(self, query: str, table: pa.Table) -> None:
        for row in table.to_pylist():
            self._terminal.write(f"{query} {row['a']}\n")


def looking_at(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal in place of stdout and stderr; from within the test, as pytest sets its own."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return terminal


def test_results_stand_each_on_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looking_at(monkeypatch)
    display = ProgressDisplay()
    write = display.printing(Lines(terminal))
    with display.shown() as report:
        assert report is not None
        for number in range(5):
            report("S", Progress(number, 5, "rows"))
            write("q", pa.table({"a": [2 * number, 2 * number + 1]}))
        assert any("━" in line for line in terminal.screen())
    assert [line for line in terminal.screen() if line] == [f"q {n}" for n in range(10)]


def test_what_is_printed_without_bars_is_printed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looking_at(monkeypatch)
    ProgressDisplay().printing(Lines(terminal))("q", pa.table({"a": [1]}))
    assert terminal.getvalue() == "q 1\n"


class Gone:
    def write(self, query: str, table: pa.Table) -> None:
        raise BrokenPipeError


def test_what_printing_raises_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    write = ProgressDisplay().printing(Gone())

    def go_on_without_the_subscriber() -> None:
        with suppress(Exception):
            write("q", pa.table({"a": [1]}))

    with pytest.raises(BrokenPipeError), ended_by_printing():
        go_on_without_the_subscriber()


def test_no_bars_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with ProgressDisplay().shown() as report:
        assert report is None


def test_waiting_is_said_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looking_at(monkeypatch)
    with ProgressDisplay().waiting_for("Spark"):
        wait_until(lambda: "starting Spark ..." in terminal.getvalue())
    assert "".join(terminal.screen()) == ""


def test_waiting_is_said_beside_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = looking_at(monkeypatch)
    display = ProgressDisplay()
    with display.shown() as report:
        assert report is not None
        report("S", Progress(1, 5, "rows"))
        with display.waiting_for("Spark"):
            report("S", Progress(2, 5, "rows"))
    assert "starting Spark ..." in terminal.getvalue()
    assert "".join(terminal.screen()) == ""


def test_amounts_without_an_end() -> None:
    assert amount(Progress(5, None, "rows")) == "5 rows"
