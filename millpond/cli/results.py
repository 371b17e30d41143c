"""Results as text: aligned tables, JSON lines or one CSV table, written as they come."""

import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from millpond.connectors.json_values import json_nested, json_value
from millpond.connectors.python_values import python_values
from millpond.connectors.sinks import unique_names
from millpond.schema import BEGINNING

FormatTime: TypeAlias = Callable[[str, int | None], Any]
"""What a query's time in ticks reads like: None at the beginning, a number or ISO text."""


class Printer(Protocol):
    """Takes the results of all queries, batch by batch."""

    def write(self, query: str, table: pa.Table) -> None:
        """Prints results of one query: columns ts, weight and the query's own."""


def make_printer(
    kind: str, queries: Mapping[str, Sequence[str]], format_time: FormatTime
) -> Printer:
    """A printer of the kind ``table``, ``jsonl`` or ``csv``; ``queries`` has each one's columns."""
    if kind == "jsonl":
        return JsonPrinter(format_time)
    if kind == "csv":
        return CsvPrinter(queries, format_time)
    return TablePrinter(format_time)


def result_rows(
    query: str, table: pa.Table, format_time: FormatTime
) -> Iterator[tuple[Any, int, tuple[Any, ...]]]:
    """Time, weight and values of each result, in order of time; at one time removals first."""
    instants = pc.fill_null(table.column(0), BEGINNING).to_numpy()
    is_added = pc.greater(table.column(1), 0).to_numpy()
    ordered = table.take(np.lexsort((is_added, instants)))
    ticks = ordered.column(0).to_pylist()
    times = {tick: format_time(query, tick) for tick in set(ticks)}
    columns = [python_values(column) for column in ordered.columns[1:]]
    for tick, weight, *values in zip(ticks, *columns, strict=True):
        yield times[tick], weight, tuple(values)


class JsonPrinter:
    """One object a line: query, ts, weight, row."""

    def __init__(self, format_time: FormatTime) -> None:
        self._format_time = format_time

    def write(self, query: str, table: pa.Table) -> None:
        """Prints results."""
        names = unique_names(table.column_names[2:])
        lines = []
        for ts, weight, values in result_rows(query, table, self._format_time):
            row = dict(zip(names, map(json_value, values), strict=True))
            result = {"query": query, "ts": json_value(ts), "weight": weight, "row": row}
            lines.append(json.dumps(result, ensure_ascii=False) + "\n")
        _print("".join(lines))


class CsvPrinter:
    """One table for all queries: query, ts, weight, then every column that any of them has."""

    def __init__(self, queries: Mapping[str, Sequence[str]], format_time: FormatTime) -> None:
        self._format_time = format_time
        own = {query: unique_names(list(names)) for query, names in queries.items()}
        self._names = list(dict.fromkeys(name for names in own.values() for name in names))
        _print(",".join(map(csv_cell, ["query", "ts", "weight", *self._names])) + "\n")

    def write(self, query: str, table: pa.Table) -> None:
        """Prints results."""
        own = unique_names(table.column_names[2:])
        places = [own.index(name) if name in own else None for name in self._names]
        lines = []
        for ts, weight, values in result_rows(query, table, self._format_time):
            cells = [None if place is None else values[place] for place in places]
            lines.append(",".join(map(csv_cell, [query, ts, weight, *cells])) + "\n")
        _print("".join(lines))


def csv_cell(value: Any) -> str:
    """A value as a cell: NULL is empty and an empty string quoted, as the source reads them.

    >>> csv_cell(None), csv_cell(""), csv_cell('a"b'), csv_cell(1.5), csv_cell(b"ab")
    ('', '""', '"a""b"', '1.5', 'YWI=')
    """
    if value is None:
        return ""
    if isinstance(value, bytes):
        value = b64encode(value).decode()
    if isinstance(value, list | dict):
        value = json_nested(value)
    text = shown(value)
    if isinstance(value, str) and (not text or any(mark in text for mark in ',"\r\n')):
        return '"' + text.replace('"', '""') + '"'
    return text


def shown(value: Any) -> str:
    """A value as people read it.

    >>> shown(True), shown(datetime(2026, 1, 2, 3)), shown(None), shown(b"ab"), shown([{"a": None}])
    ('true', '2026-01-02 03:00:00', 'NULL', "X'6162'", '[{a: NULL}]')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return f"X'{value.hex().upper()}'"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(key)}: {shown(each)}" for key, each in value.items()) + "}"
    return value.isoformat() if isinstance(value, date) else str(value)


class TablePrinter:
    """Aligned columns; a heading whenever another query has its turn."""

    def __init__(self, format_time: FormatTime, console: Console | None = None) -> None:
        self._format_time = format_time
        self._console = console
        self._last_query: str | None = None
        self._widths: dict[str, list[int]] = {}

    def write(self, query: str, table: pa.Table) -> None:
        """Prints results."""
        header = ["time", "±", *table.column_names[2:]]
        rows = [
            [_time(ts), f"{weight:+d}", *map(_one_line, values)]
            for ts, weight, values in result_rows(query, table, self._format_time)
        ]
        if not rows:
            return
        widths = self._widened(query, [header, *rows])
        numeric = [False, True, *map(_is_number, table.schema.types[2:])]
        console = self._console or Console(file=sys.stdout, highlight=False, soft_wrap=True)
        if query != self._last_query:
            _line(console, "" if self._last_query is None else "\n", query, "bold cyan")
            _line(console, "  ", _aligned(header, widths, numeric), "bold")
            self._last_query = query
        for row in rows:
            style = "red" if row[1].startswith("-") else ""
            _line(console, "  ", _aligned(row, widths, numeric), style)

    def _widened(self, query: str, rows: list[list[str]]) -> list[int]:
        before = self._widths.get(query, [0] * len(rows[0]))
        columns = zip(before, *([cell_len(cell) for cell in row] for row in rows), strict=True)
        self._widths[query] = [max(column) for column in columns]
        return self._widths[query]


def text_table(table: pa.Table) -> str:
    """A whole table, aligned.

    >>> print(text_table(pa.table({"name": ["a"], "count": [10]})))
    name  count
    a        10
    """
    rows = list(
        zip(*([_one_line(v) for v in python_values(c)] for c in table.columns), strict=True)
    )
    cells = [list(table.column_names), *map(list, rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    numeric = [_is_number(kind) for kind in table.schema.types]
    return "\n".join(_aligned(row, widths, numeric) for row in cells)


def _line(console: Console, indent: str, text: str, style: str) -> None:
    console.print(indent + text if not style else Text(indent + text, style=style), markup=False)


def _aligned(cells: list[str], widths: list[int], numeric: list[bool]) -> str:
    padded = []
    for cell, width, right in zip(cells, widths, numeric, strict=True):
        blanks = " " * (width - cell_len(cell))
        padded.append(blanks + cell if right else cell + blanks)
    return "  ".join(padded).rstrip()


def _time(ts: Any) -> str:
    return "beginning" if ts is None else shown(ts)


def _one_line(value: Any) -> str:
    return shown(value).replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
