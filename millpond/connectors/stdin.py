"""Standard input as a source: `cat x.csv | millpond run q.cql` with `FROM stdin()`."""

from millpond.connectors import csv_files, json_lines
from millpond.connectors.sources import Declaration, Source
from millpond.errors import InputError


def source(
    declaration: Declaration,
    format: str = "csv",  # noqa: A002, the word users know it by
    *,
    header: bool | str = "auto",
    delimiter: str = ",",
    null: str = "",
) -> Source:
    """Reads CSV or, with ``format = 'json'``, one JSON object a line."""
    if format == "csv":
        return csv_files.source(declaration, "-", header=header, delimiter=delimiter, null=null)
    if format != "json":
        raise InputError(f"{declaration.name}: format is 'csv' or 'json', not {format!r}")
    if (header, delimiter, null) != ("auto", ",", ""):
        raise InputError(f"{declaration.name}: header, delimiter and null are for format = 'csv'")
    return json_lines.source(declaration, "-")
