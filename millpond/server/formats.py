"""Results on the wire: JSON lines, server-sent events, XML as in the STREAM paper, Arrow."""

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa

from millpond.connectors.json_values import json_value
from millpond.connectors.python_values import python_values
from millpond.connectors.sinks import unique_names

FormatTime = Callable[[int | None], Any]


def json_rows(table: pa.Table, format_time: FormatTime) -> Iterator[dict[str, Any]]:
    """One object a result: its time as people read it, its weight and the row."""
    names = unique_names(table.column_names[2:])
    ticks = python_values(table.column(0))
    times = {tick: format_time(tick) for tick in set(ticks)}
    columns = [map(json_value, python_values(column)) for column in table.columns[1:]]
    for tick, weight, *values in zip(ticks, *columns, strict=True):
        row = dict(zip(names, values, strict=True))
        yield {"ts": times[tick], "weight": weight, "row": row}


def dumps(value: Any) -> str:
    """JSON in one line, without numbers that JSON lacks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Heading:
    """What is known before the first result."""

    query: str
    schema: pa.Schema
    format_time: FormatTime


class ResultFormat:
    """How an endless response is written; ``mark`` is the id of what was sent last."""

    media_type: str

    def begin(self, heading: Heading) -> bytes:
        """What comes first."""
        return b""

    def results(self, heading: Heading, table: pa.Table, mark: str) -> bytes:
        """Some results."""
        raise NotImplementedError

    def gap(self, heading: Heading, elements: int, mark: str) -> bytes:
        """So many results were let go before the reader came for them."""
        raise NotImplementedError

    def alive(self, complete_until: Any) -> bytes:
        """Nothing is new."""
        return b""

    def end(self) -> bytes:
        """The query is no more, or all that was asked for is told."""
        return b""


class JsonLines(ResultFormat):
    """One object a line."""

    media_type = "application/x-ndjson"

    def results(self, heading: Heading, table: pa.Table, mark: str) -> bytes:
        lines = [dumps(row) + "\n" for row in json_rows(table, heading.format_time)]
        return "".join(lines).encode()

    def gap(self, heading: Heading, elements: int, mark: str) -> bytes:
        return f'{{"gap":{elements}}}\n'.encode()

    def alive(self, complete_until: Any) -> bytes:
        return (dumps({"complete_until": complete_until}) + "\n").encode()


class ServerSentEvents(ResultFormat):
    """Events with ids; one that comes back says the last id it has seen."""

    media_type = "text/event-stream"

    def begin(self, heading: Heading) -> bytes:
        return b"retry: 1000\n\n"

    def results(self, heading: Heading, table: pa.Table, mark: str) -> bytes:
        rows = dumps(list(json_rows(table, heading.format_time)))
        return f"id: {mark}\nevent: results\ndata: {rows}\n\n".encode()

    def gap(self, heading: Heading, elements: int, mark: str) -> bytes:
        return f'id: {mark}\nevent: gap\ndata: {{"gap":{elements}}}\n\n'.encode()

    def alive(self, complete_until: Any) -> bytes:
        return f"event: alive\ndata: {dumps({'complete_until': complete_until})}\n\n".encode()

    def end(self) -> bytes:
        return b"event: end\ndata: {}\n\n"


class Xml(ResultFormat):
    """One element a result, inside one that ends when the query does."""

    media_type = "application/xml"

    def begin(self, heading: Heading) -> bytes:
        start = '<?xml version="1.0" encoding="UTF-8"?>\n'
        return f"{start}<results query={quoteattr(heading.query)}>\n".encode()

    def results(self, heading: Heading, table: pa.Table, mark: str) -> bytes:
        lines = []
        for result in json_rows(table, heading.format_time):
            columns = "".join(_column(name, value) for name, value in result["row"].items())
            ts = "" if result["ts"] is None else f" ts={quoteattr(str(result['ts']))}"
            lines.append(f'<result{ts} weight="{result["weight"]}">{columns}</result>\n')
        return "".join(lines).encode()

    def gap(self, heading: Heading, elements: int, mark: str) -> bytes:
        return f'<gap elements="{elements}"/>\n'.encode()

    def alive(self, complete_until: Any) -> bytes:
        return f"<alive complete_until={quoteattr(str(complete_until))}/>\n".encode()

    def end(self) -> bytes:
        return b"</results>\n"


def _column(name: str, value: Any) -> str:
    if value is None:
        return f'<column name={quoteattr(name)} null="true"/>'
    return f"<column name={quoteattr(name)}>{escape(xml_text(value))}</column>"


def xml_text(value: Any) -> str:
    """A value as XML can hold it: characters that XML forbids become question marks.

    >>> xml_text("a\\x00b"), xml_text(True), xml_text([1, None])
    ('a?b', 'true', '[1,null]')
    """
    if isinstance(value, list | dict):
        value = dumps(value)
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return "".join(c if c in "\t\n\r" or " " <= c < "\ufffe" or c > "\uffff" else "?" for c in text)


class ArrowStream(ResultFormat):
    """Arrow's own stream; a gap is said in the metadata of the batch behind it."""

    media_type = "application/vnd.apache.arrow.stream"

    def __init__(self) -> None:
        self._gap = 0
        self._buffer = io.BytesIO()
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None

    def begin(self, heading: Heading) -> bytes:
        self._writer = pa.ipc.new_stream(self._buffer, heading.schema)
        return self._taken()

    def results(self, heading: Heading, table: pa.Table, mark: str) -> bytes:
        if self._writer is None:
            return b""
        metadata = {"id": mark} | ({"gap": str(self._gap)} if self._gap else {})
        self._gap = 0
        for batch in table.cast(heading.schema).combine_chunks().to_batches():
            self._writer.write_batch(batch, custom_metadata=metadata)
            metadata = {"id": mark}
        return self._taken()

    def gap(self, heading: Heading, elements: int, mark: str) -> bytes:
        self._gap += elements
        return b""

    def end(self) -> bytes:
        if self._writer is not None:
            self._writer.close()
        return self._taken()

    def _taken(self) -> bytes:
        data = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        return data


FORMATS: dict[str, Callable[[], ResultFormat]] = {
    "ndjson": JsonLines,
    "sse": ServerSentEvents,
    "xml": Xml,
    "arrow": ArrowStream,
}

SHARED = ("ndjson", "sse", "xml")
"""The formats in which all readers are told the same bytes."""

_ACCEPTED = {
    "text/event-stream": "sse",
    "application/xml": "xml",
    "text/xml": "xml",
    "application/vnd.apache.arrow.stream": "arrow",
}


def format_name(asked: str | None, accept: str) -> str:
    """Which format a request wants: the one it names, or what its Accept header says."""
    if asked is not None:
        return asked
    for part in accept.split(","):
        found = _ACCEPTED.get(part.split(";")[0].strip().lower())
        if found:
            return found
    return "ndjson"
