"""Results appended by Spark to whatever it writes by the name of a format."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from millpond.connectors.sinks import Results, flat
from millpond.spark.format_source import ERRORS, Format

_UTC = pa.timestamp("us", "UTC")


class FormatSink:
    """Each page of results is appended; one that a kill comes behind may be there twice."""

    def __init__(self, results: Results, form: Format) -> None:
        self._results, self._form = results, form
        self._pages = int(results.resume or 0)

    def mark(self) -> int:
        """How many pages are written."""
        return self._pages

    def write(self, table: pa.Table) -> None:
        """Appends a page."""
        try:
            found = self._results.session().createDataFrame(_with_zones(flat(table, self._results)))
            writer: Any = found.coalesce(1).write.format(self._form.name)
            writer.options(**self._form.options).mode("append").save(self._form.path or None)
        except ERRORS as error:
            raise self._form.fault(error) from None
        self._pages += 1

    def close(self) -> None:
        """All that was written is there."""


def _with_zones(table: pa.Table) -> pa.Table:
    """The rows with times that are moments to Spark, too."""
    fields = [
        each.with_type(_UTC) if pa.types.is_timestamp(each.type) else each for each in table.schema
    ]
    return table.cast(pa.schema(fields))
