"""Rows of a file of a lake as they are declared, and the bad ones among them."""

import json
from collections.abc import Sequence

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema, conform
from millpond.connectors.bad_rows import BadRow, salvaged, told_apart
from millpond.connectors.sources import Declaration
from millpond.connectors.times import check_times
from millpond.errors import InputError


def as_declared(
    rows: pa.Table, declaration: Declaration, file: str, first: int
) -> tuple[pa.Table, list[BadRow], list[int]]:
    """Rows behind the first ones of a file as they are declared, the bad ones among them, and the
    number of each good one."""

    def where(row: int) -> str:
        return f"{file}, row {first + row + 1}"

    def checked(part: Sequence[int]) -> pa.Table:
        begin = part[0] if part else 0

        def at(row: int) -> str:
            return where(begin + row)

        table = conform(rows.slice(begin, len(part)), declaration.schema, at)
        check_times(table, declaration, at)
        return table

    def bad(row: int, error: InputError) -> BadRow:
        values = rows.slice(row, 1).to_pylist()[0]
        raw = json.dumps(values, default=str, ensure_ascii=False).encode()
        return BadRow(where(row), str(error), raw)

    if not declaration.skips_bad_rows:
        return checked(range(rows.num_rows)), [], list(range(rows.num_rows))
    checked(range(0))  # columns of other types are refused, not their rows one by one
    found = salvaged(range(rows.num_rows), checked, bad)
    return told_apart(found, arrow_schema(declaration.schema).empty_table())
