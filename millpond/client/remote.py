"""An engine behind HTTP, with the face of `Engine`."""

from __future__ import annotations

import io
import json
import math
import os
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import httpx
import pyarrow as pa

from millpond.client.control import RemoteEntities
from millpond.client.transport import Transport
from millpond.connectors.pandas_there import is_frame
from millpond.connectors.python_values import python_rows, to_pandas
from millpond.cql.text.parameters import with_parameters
from millpond.delivery.latency import Latencies
from millpond.errors import StateError
from millpond.failures import Failure
from millpond.insight.display import Plan

NDJSON, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
AGAIN_SECONDS = 1.0
BEGIN_SECONDS = 10.0
"""How soon a subscriber asks again when a connection is lost."""

Callback = Callable[[pa.Table], None]


def connect(url: str = "http://127.0.0.1:8080", token: str | None = None) -> RemoteEngine:
    """An engine behind a server; the token is that of MILLPOND_TOKEN if none is given."""
    return RemoteEngine(url, token or os.environ.get("MILLPOND_TOKEN"))


class RemoteEngine:
    """Registers queries, feeds streams and relations, reads results, over HTTP.

    The server works by itself, so there is no ``start`` and no ``run_until_idle``.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self._transport = Transport(url, token)
        self._is_closed = threading.Event()
        self._subscribers: list[threading.Thread] = []

    # -- statements ------------------------------------------------------------------------

    def execute(self, script: str, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        """Runs the statements of a script; the answers of SHOW and EXPLAIN, in order.

        ``parameters`` are the values of ``:name`` in it.
        """
        text = with_parameters(script, parameters or {})
        answers = self._transport.ask("POST", "/api/execute", {"text": text})["answers"]
        return [_answer(each) for each in answers]

    def check(self, script: str) -> list[dict[str, Any]]:
        """What is wrong with a script, each with line and column; nothing is executed."""
        problems: list[dict[str, Any]] = self._transport.ask(
            "POST", "/api/check", {"text": script}
        )["problems"]
        return problems

    def ask(self, select: str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """Answers a SELECT once, on relations and windows as they are."""
        text = with_parameters(select, parameters or {})
        return _table(self._transport.ask("POST", "/api/ask", {"text": text}))

    def show(self, kind: str) -> pa.Table:
        """What SHOW answers."""
        table: pa.Table = self.execute(f"SHOW {kind}")[0]
        return table

    def queries(self) -> list[dict[str, Any]]:
        """All registered queries."""
        return list(self._transport.listed("/api/queries"))

    def drop(self, name: str) -> None:
        """Drops a query, stream or relation that nobody uses."""
        for kind in ("queries", "streams", "relations"):
            response = self._transport.send("DELETE", f"/api/{kind}/{quote(name, safe='')}")
            if response.status_code != 404:
                self._transport.checked(response)
                return
        raise StateError(f'nothing is called "{name}"')

    def restart(self, name: str) -> None:
        """Runs a query that has failed again, from now on."""
        self._transport.ask("POST", f"/api/queries/{quote(name, safe='')}/restart")

    def explain(self, name: str, stage: str = "physical") -> Plan:
        """The plan of a registered query."""
        path = f"/api/queries/{quote(name, safe='')}/explain?stage={stage}"
        found = self._transport.ask("GET", path)
        return Plan(found["query"], found["stage"], found["plan"])

    # -- input -----------------------------------------------------------------------------

    def push(self, name: str, rows: Any, key: str | None = None) -> int:
        """Adds tuples to a stream, or rows to a relation at the current time; how many were late.

        ``rows`` are dicts or tuples in schema order, an Arrow table, or a pandas data frame. What
        is pushed again with the same ``key`` counts once.
        """
        content, kind = _body(rows)
        headers = {"content-type": kind} | ({"idempotency-key": key} if key else {})
        quoted = quote(name, safe="")
        path = f"/api/streams/{quoted}/tuples"
        response = self._transport.send("POST", path, content=content, headers=headers)
        if response.status_code == 404:
            path = f"/api/relations/{quoted}/rows"
            response = self._transport.send("POST", path, content=content, headers=headers)
        return int(self._transport.checked(response).json()["late"])

    def advance(self, name: str, timestamp: Any) -> None:
        """A heartbeat: promises that nothing at or before the time will follow."""
        time = timestamp.isoformat() if isinstance(timestamp, date) else timestamp
        path = f"/api/streams/{quote(name, safe='')}/advance"
        self._transport.ask("POST", path, {"time": time})

    def punctuate(
        self,
        stream: str,
        where: str,
        parameters: Mapping[str, Any] | None = None,
        on_violation: str = "stop",
    ) -> None:
        """A punctuation: promises that no tuple that comes later matches ``where``."""
        where = with_parameters(where, parameters or {})
        path = f"/api/streams/{quote(stream, safe='')}/punctuate"
        self._transport.ask("POST", path, {"where": where, "on_violation": on_violation})

    def late(self, stream: str) -> pa.Table:
        """The last tuples of a stream that came too late, as they came."""
        return _table(self._transport.ask("GET", f"/api/streams/{quote(stream, safe='')}/late"))

    def violating(self, stream: str) -> pa.Table:
        """The last tuples of a stream that broke a constraint, as they came, with its name."""
        path = f"/api/streams/{quote(stream, safe='')}/violating"
        return _table(self._transport.ask("GET", path))

    # -- results ---------------------------------------------------------------------------

    def results(self, query: str, form: str = "arrow") -> Any:
        """What a query has put out, as far as it is kept: ``arrow``, ``pandas`` or ``rows``."""
        path = f"/api/queries/{quote(query, safe='')}/results?format=arrow&from=oldest&follow=false"
        response = self._transport.checked(self._transport.send("GET", path))
        table = pa.ipc.open_stream(io.BytesIO(response.content)).read_all()
        match form:
            case "arrow":
                return table
            case "pandas":
                return to_pandas(table)
            case "rows":
                return python_rows(table)
        raise StateError(f'no form "{form}" from a server; known: arrow, pandas, rows')

    def present(self, query: str) -> list[dict[str, Any]]:
        """The content of a query that is a relation, now: rows with their weights and times."""
        found = self._transport.ask("GET", f"/api/queries/{quote(query, safe='')}/present")
        rows: list[dict[str, Any]] = found["rows"]
        return rows

    def tail(self, query: str, start: str = "now", follow: bool = True) -> Iterator[dict[str, Any]]:
        """The results of a query as they come: ``{"ts", "weight", "row"}``, or ``{"gap"}``.

        ``start``: now, oldest, present, or a time.
        """
        given = {"format": "ndjson", "from": start, "follow": "true" if follow else "false"}
        path = f"/api/queries/{quote(query, safe='')}/results?{httpx.QueryParams(given)}"
        with self._transport.stream(path) as response:
            for line in response.iter_lines():
                if line:
                    found = json.loads(line)
                    if "complete_until" not in found:
                        yield found

    def subscribe(self, query: str, callback: Callback) -> None:
        """Calls back, in a thread, with every table of new results; goes on after a lost line."""
        if not callable(callback):
            raise StateError(f"subscribe needs a function of one table, not {callback!r}")
        reader = _Subscription(self._transport, query, callback, self._is_closed)
        thread = threading.Thread(target=reader.run, name=f"millpond-{query}", daemon=True)
        self._subscribers.append(thread)
        thread.start()
        if not reader.has_begun.wait(BEGIN_SECONDS):
            raise StateError(f"no answer from the server within {BEGIN_SECONDS:g} seconds")
        if reader.error is not None:
            raise reader.error

    # -- looking inside --------------------------------------------------------------------

    def entities(self) -> RemoteEntities:
        """Everything that runs, each with its control table."""
        return RemoteEntities(self._transport)

    def failures(self) -> list[Failure]:
        """The queries that have failed, each with its reason."""
        return [
            Failure(
                each["query"],
                each["operator"],
                each["error"],
                int(each["after"]),
                int(each["until"]),
                tuple(each["rows"]),
                each["at_seconds"],
            )
            for each in self._transport.ask("GET", "/api/failures")
        ]

    def status(self) -> dict[str, Any]:
        """How the server is: its version, the bottleneck, who waits, how many have failed."""
        return self._told("/api/status")

    def statistics(self) -> dict[str, Any]:
        """The running plan as it was measured, as plain data."""
        return self._told("/api/statistics")

    def history(self) -> dict[str, Any]:
        """What was measured over the last half hour, a sample a second, and marks of changes."""
        return self._told("/api/history")

    def vocabulary(self) -> dict[str, Any]:
        """The words of the language, and the names that are declared with their columns."""
        return self._told("/api/vocabulary")

    def log(self, lines: int = 100) -> list[str]:
        """The last lines of the server's log."""
        found: list[str] = self._told(f"/api/log?lines={lines}")["lines"]
        return found

    def tables(self, kind: str) -> list[dict[str, Any]]:
        """The entities of a kind, each as its name and the values of its control table."""
        found = self._transport.listed(f"/api/entities?kind={quote(kind, safe='')}")
        return [{"name": each["name"], **each["values"]} for each in found]

    def _told(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self._transport.ask("GET", path)
        return found

    def left_out(self, query: str) -> pa.Table:
        """What a query with ON ERROR SKIP has left out of late."""
        return _table(self._transport.ask("GET", f"/api/queries/{quote(query, safe='')}/left_out"))

    def bad_rows(self, stream: str) -> pa.Table:
        """What the source of a stream with ON BAD ROW SKIP or INTO could not read of late."""
        return _table(self._transport.ask("GET", f"/api/streams/{quote(stream, safe='')}/bad_rows"))

    def bad_row_count(self, stream: str) -> int:
        """How many rows of a stream's source could not be read and were put aside so far."""
        return int(self.entities().get("stream", stream).get("bad_rows"))

    def result_count(self, query: str) -> int:
        """How many elements a query has put out so far, kept or not."""
        return int(self.entities().get("query", query).get("results"))

    def latency(self, query: str) -> Latencies:
        """How long the results of a query took, from the arrival of their tuples."""
        values = self.entities().get("query", query).values()
        mean, p50, p95, p99 = (
            math.nan if (value := values[f"latency_{part}_seconds"]) is None else float(value)
            for part in ("mean", "p50", "p95", "p99")
        )
        return Latencies(int(values["results"]), mean, p50, p95, p99, math.nan, 0)

    def plan(self, form: str = "json") -> Any:
        """The running plan: ``json``, ``xml``, ``svg`` or ``dot``."""
        path = f"/api/plan?format={form}"
        response = self._transport.checked(self._transport.send("GET", path))
        return response.json() if form == "json" else response.text

    def load_plan(self, xml: str, replace: bool = False) -> None:
        """Makes the running plan that of an XML document."""
        path = f"/api/plan?replace={'true' if replace else 'false'}"
        headers = {"content-type": "application/xml"}
        response = self._transport.send("PUT", path, content=xml.encode(), headers=headers)
        self._transport.checked(response)

    # -- end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends subscriptions and connections; the server goes on."""
        self._is_closed.set()
        self._transport.close()

    def __enter__(self) -> RemoteEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Subscription:
    """Reads results from now on, and goes on where it was when a connection is lost."""

    def __init__(
        self, transport: Transport, query: str, callback: Callback, is_over: threading.Event
    ) -> None:
        self._transport, self._callback, self._is_over = transport, callback, is_over
        self._path = f"/api/queries/{quote(query, safe='')}/results?format=arrow"
        self._mark: str | None = None
        self.has_begun = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        """Until the client is closed or the query is dropped."""
        while not self._is_over.is_set():
            try:
                self._read()
                return  # the query is no more
            except (httpx.HTTPError, OSError, pa.ArrowException) as error:
                if not self.has_begun.is_set():
                    self.error = StateError(f"no answer from the server: {error}")
                    break
                self._is_over.wait(AGAIN_SECONDS)
            except StateError as error:
                self.error = error
                break
        self.has_begun.set()

    def _read(self) -> None:
        headers = {"last-event-id": self._mark} if self._mark else {}
        with self._transport.stream(self._path, headers) as response:
            self.has_begun.set()  # the first bytes come with the first result
            reader = pa.ipc.open_stream(_Pieces(response.iter_raw()))
            while True:
                try:
                    batch, metadata = reader.read_next_batch_with_custom_metadata()
                except StopIteration:
                    return
                self._callback(pa.Table.from_batches([batch]))
                if metadata is not None and b"id" in dict(metadata):
                    self._mark = dict(metadata)[b"id"].decode()


class _Pieces(io.RawIOBase):
    """A response as a file that Arrow reads."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces, self._rest = pieces, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._rest += piece
        size = len(self._rest) if size < 0 else size
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken


def _body(rows: Any) -> tuple[bytes, str]:
    """Rows as a body, and what it is."""
    if is_frame(rows):
        rows = pa.Table.from_pandas(rows, preserve_index=False)
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        return sink.getvalue(), ARROW
    lines = [json.dumps(row, default=_json) for row in rows]
    return "\n".join(lines).encode(), NDJSON


def _json(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if hasattr(value, "tolist"):
        return value.tolist()
    raise StateError(f"{value!r} can not be sent")


def _table(found: dict[str, Any]) -> pa.Table:
    names = [column["name"] for column in found["columns"]]
    rows = found["rows"]
    return pa.table({name: [row[name] for row in rows] for name in names})


def _answer(answer: dict[str, Any]) -> Any:
    if "plan" in answer:
        return Plan(answer["query"], answer["stage"], answer["plan"])
    return _table(answer["table"])
