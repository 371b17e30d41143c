import io
import json
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from millpond.cli.results import CsvPrinter, JsonPrinter, TablePrinter, make_printer, text_table
from millpond.connectors import to_arrow
from tests.connectors.declarations import schema


def ticks(query: str, ts: int | None) -> Any:
    return ts


def results(*rows: tuple[Any, ...], columns: str = "a INT") -> pa.Table:
    return to_arrow(list(rows), schema(f"ts BIGINT, weight BIGINT, {columns}"))


def test_json_lines_have_query_time_weight_and_row(capsys: pytest.CaptureFixture[str]) -> None:
    printer = JsonPrinter(ticks)
    printer.write("q", results((5, -1, 7), (None, 1, 7), (3, 1, None)))
    assert capsys.readouterr().out.splitlines() == [
        '{"query": "q", "ts": null, "weight": 1, "row": {"a": 7}}',
        '{"query": "q", "ts": 3, "weight": 1, "row": {"a": null}}',
        '{"query": "q", "ts": 5, "weight": -1, "row": {"a": 7}}',
    ]


def test_json_values_are_readable_and_valid(capsys: pytest.CaptureFixture[str]) -> None:
    columns = "t TIMESTAMP, day DATE, d DOUBLE, s STRING, b BOOLEAN"
    row = (1, 1, datetime(2026, 1, 2, 3, 4, 5), date(2026, 1, 2), float("-inf"), 'é"', True)
    JsonPrinter(lambda query, ts: datetime(2026, 1, 1, 0, 0, ts)).write(
        "q", results(row, columns=columns)
    )
    assert json.loads(capsys.readouterr().out) == {
        "query": "q",
        "ts": "2026-01-01T00:00:01",
        "weight": 1,
        "row": {
            "t": "2026-01-02T03:04:05",
            "day": "2026-01-02",
            "d": "-Infinity",
            "s": 'é"',
            "b": True,
        },
    }


def test_columns_of_one_name_stay_apart_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table([[1], [1], [5], [6]], names=["ts", "weight", "x", "x"])
    JsonPrinter(ticks).write("q", table)
    assert json.loads(capsys.readouterr().out)["row"] == {"x": 5, "x_2": 6}


def test_rows_of_one_time_keep_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    JsonPrinter(ticks).write("q", results(*((1, 1, n) for n in range(50))))
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["row"]["a"] for line in lines] == list(range(50))


def test_csv_is_one_table_for_all_queries(capsys: pytest.CaptureFixture[str]) -> None:
    printer = CsvPrinter({"p": ["a"], "q": ["s", "a"]}, ticks)
    printer.write("p", results((None, 1, 7)))
    printer.write("q", results((1, 1, 'x,"y"', None), (2, -1, "", 3), columns="s STRING, a INT"))
    assert capsys.readouterr().out.splitlines() == [
        "query,ts,weight,a,s",
        "p,,1,7,",
        'q,1,1,,"x,""y"""',
        'q,2,-1,3,""',
    ]


def test_tables_are_aligned_under_a_heading_a_query(capsys: pytest.CaptureFixture[str]) -> None:
    printer = TablePrinter(ticks)
    columns = "name STRING, n INT"
    printer.write("p", results((None, 1, "a", 5), (10, -2, "long name", None), columns=columns))
    printer.write("p", results((11, 1, "b", 123), columns=columns))
    printer.write("q", results((11, 1, 1)))
    printer.write("q", results())
    assert capsys.readouterr().out.splitlines() == [
        "p",
        "  time        ±  name          n",
        "  beginning  +1  a             5",
        "  10         -2  long name  NULL",
        "  11         +1  b           123",
        "",
        "q",
        "  time   ±  a",
        "  11    +1  1",
    ]


def test_a_value_never_breaks_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    TablePrinter(ticks).write("q", results((1, 1, "a\nb[red]"), columns="s STRING"))
    assert capsys.readouterr().out.splitlines()[-1] == "  1     +1  a\\nb[red]"


def test_long_rows_are_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    TablePrinter(ticks).write("q", results((1, 1, "x" * 300), columns="s STRING"))
    assert capsys.readouterr().out.splitlines()[-1].endswith("x" * 300)


def test_a_terminal_sees_removals_in_red() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, color_system="standard", width=80)
    TablePrinter(ticks, console).write("q", results((1, -1, 5)))
    file = console.file
    assert isinstance(file, io.StringIO)
    assert "\x1b[31m  1     -1  5" in file.getvalue()


@pytest.mark.parametrize(
    ("kind", "printer"), [("table", TablePrinter), ("jsonl", JsonPrinter), ("csv", CsvPrinter)]
)
def test_printers_are_made_by_name(kind: str, printer: type) -> None:
    assert isinstance(make_printer(kind, {}, ticks), printer)


def test_a_whole_table_is_aligned() -> None:
    table = pa.table({"name": ["tick", "x"], "value": [1, None]})
    assert text_table(table).splitlines() == ["name  value", "tick      1", "x      NULL"]
