"""Whatever Spark reads and writes, by the name of its format: ``spark('orc', 'folder')``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from millpond.connectors.locations import located
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sinks import Results
from millpond.connectors.sources import Declaration, is_true
from millpond.errors import InputError, OutputError
from millpond.spark.format_sink import FormatSink
from millpond.spark.format_source import Format, FormatSource

Given = str | Secret

OF_FILES = {"avro", "binaryfile", "csv", "delta", "json", "orc", "parquet", "text", "xml"}
"""Formats of files, whose names start at the directory in which the program runs."""


def source(
    declaration: Declaration,
    format: Given,  # noqa: A002 (as CQL has it)
    path: Given = "",
    *,
    follow: bool = True,
    checkpoint: Given = "",
    **options: Any,
) -> FormatSource:
    """Reads what a format of Spark's has; with ``follow`` by Structured Streaming."""
    owner = declaration.name
    folder = str(revealed(checkpoint))
    if declaration.lasts and not folder:
        raise InputError(
            f"{owner}: to go on after a restart Spark notes what it has read: name a directory for "
            "that, which all hosts see, by checkpoint = 'directory'"
        )
    return FormatSource(
        declaration,
        _format(owner, format, path, options, InputError, declaration.directory),
        declaration.directory / folder if folder else None,
        is_true(owner, "follow", follow),
    )


def sink(
    results: Results,
    format: Given,  # noqa: A002 (as CQL has it)
    path: Given = "",
    **options: Any,
) -> FormatSink:
    """Appends results to what a format of Spark's has."""
    owner = f"query {results.query}"
    return FormatSink(
        results, _format(owner, format, path, options, OutputError, results.directory)
    )


def _format(
    owner: str,
    name: Given,
    path: Given,
    options: dict[str, Any],
    error: type[InputError | OutputError],
    directory: Path,
) -> Format:
    given, where = revealed(name), str(revealed(path))
    if not isinstance(given, str) or not given:
        raise error(f"{owner}: a format is a name that Spark knows, not {given!r}")
    if given.lower() in OF_FILES and where and "://" not in where:
        where = str(located(owner, directory, path).path.absolute())
    texts = {key: revealed(value) for key, value in options.items()}
    texts = {key: str(e).lower() if isinstance(e, bool) else str(e) for key, e in texts.items()}
    return Format(owner, given, where, texts, error)
