"""Endless responses of HTTP as sources: JSON lines, or events as servers send them (SSE)."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pyarrow as pa

from millpond.connectors.arrow import arrow_schema
from millpond.connectors.bad_rows import BadRow, salvaged, told_apart
from millpond.connectors.files import Block
from millpond.connectors.http_events import Event, Events
from millpond.connectors.json_lines import JsonLines, one_line
from millpond.connectors.secrets import Secret
from millpond.connectors.sources import Declaration, Progress, SourcePage, is_true
from millpond.connectors.times import check_times
from millpond.connectors.web_client import FAULTS, Address
from millpond.errors import InputError

logger = logging.getLogger("millpond")

READ_BYTES = 2**18
AGAIN_SECONDS = 1.0
"""So long after a response has broken off the next one is asked for."""

EVENTS = "text/event-stream"


def source(
    declaration: Declaration,
    url: str | Secret,
    *,
    token: str | Secret = "",
    gaps: bool = False,
) -> HttpSource:
    """Reads a response row by row, as it comes."""
    takes_gaps = is_true(declaration.name, "gaps", gaps)
    return HttpSource(declaration, Address(declaration.name, url, token), takes_gaps)


class HttpSource:
    """The rows of a response; where they have ids, of those that follow it too."""

    ends = False
    is_live = True

    def __init__(self, declaration: Declaration, address: Address, takes_gaps: bool) -> None:
        self._declaration, self._address, self._takes_gaps = declaration, address, takes_gaps
        self._is_closed = threading.Event()
        self._connection: HTTPConnection | None = None
        self._done = 0

    def pages(self) -> Iterator[SourcePage]:
        """The rows from what the server begins with."""
        return self._waiting(None, goes_on=False)

    def pages_from(self, position: dict[str, Any]) -> Iterator[SourcePage]:
        """The rows behind the last id, where rows have ids."""
        return self._waiting(position["id"], goes_on=True)

    def progress(self) -> Progress:
        """Rows read."""
        return Progress(self._done, None, "rows")

    def close(self) -> None:
        """Nobody waits for a row any more."""
        self._is_closed.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    # -- responses -------------------------------------------------------------------------

    def _waiting(self, last_id: str | None, goes_on: bool) -> Iterator[SourcePage]:
        """One response after the other, as long as each goes on behind the one before."""
        has_answered = False
        while not self._is_closed.is_set():
            self._refuse_gap(last_id, goes_on)
            try:
                for page, behind in self._response(last_id):
                    has_answered, goes_on, last_id = True, True, behind
                    yield page
                if last_id is None and not self._takes_gaps:
                    return  # it has ended as it ought to
            except FAULTS as error:
                if self._is_closed.is_set():
                    return
                if not has_answered:
                    raise self._fault(f"{type(error).__name__}: {error}") from None
                logger.warning("%s: %s; it is asked again", self._declaration.name, error)
            self._is_closed.wait(AGAIN_SECONDS)

    def _refuse_gap(self, last_id: str | None, goes_on: bool) -> None:
        if goes_on and last_id is None and not self._takes_gaps:
            raise self._fault(
                "the response has broken off, or the last run ended in it, and its rows have no "
                "ids to go on from: rows may be lost; have the server send ids (SSE), or say "
                "gaps = true if that may be"
            )

    def _fault(self, said: str) -> InputError:
        return InputError(f"{self._declaration.name} FROM {self._address.place}: {said}")

    def _response(self, last_id: str | None) -> Iterator[tuple[SourcePage, str | None]]:
        """Pages of a response, each with the last id in it."""
        self._connection = connection = self._address.connected()
        try:
            answer = self._asked(connection, last_id)
            kind = (answer.getheader("Content-Type") or "").partition(";")[0].strip().lower()
            connection.sock.settimeout(None)  # it may be silent for long
            events = Events(kind == EVENTS, last_id)
            while data := answer.read1(READ_BYTES):
                found = events.add(data)
                for first in range(0, len(found), self._declaration.settings.page_rows):
                    some = found[first : first + self._declaration.settings.page_rows]
                    yield self._page(some, last_id), some[-1].id
                    last_id = some[-1].id
            if answer.length or (answer.length is None and not answer.chunked):
                raise ConnectionError("the response has broken off")
            if kind != EVENTS and not events.is_whole:  # the last line may lack its end
                yield self._page(events.add(b"\n"), last_id), None
        finally:
            connection.close()

    def _asked(self, connection: HTTPConnection, last_id: str | None) -> HTTPResponse:
        headers = self._address.headers | {"Accept": f"{EVENTS}, application/x-ndjson, */*;q=0.5"}
        headers |= {} if last_id is None else {"Last-Event-ID": last_id}
        connection.request("GET", self._address.target, headers=headers)
        answer = connection.getresponse()
        if answer.status >= 500:
            raise ConnectionError(f"the server says {answer.status} {answer.reason}".rstrip())
        if answer.status != 200:
            raise self._fault(f"the server says {answer.status} {answer.reason}".rstrip())
        return answer

    # -- rows ------------------------------------------------------------------------------

    def _page(self, events: list[Event], first_id: str | None) -> SourcePage:
        """The rows of events, with the ids behind each of them."""
        rows, bad, places = self._rows(events)
        self._done += len(events)

        def position_after(count: int) -> dict[str, Any]:
            if count == len(places):
                return {"id": events[-1].id}
            return {"id": events[places[count - 1]].id if count else first_id}

        return SourcePage(rows, tuple(bad), position_after)

    def _rows(self, events: list[Event]) -> tuple[pa.Table, list[BadRow], list[int]]:
        everything = range(len(events))
        if not self._declaration.skips_bad_rows:
            return self._table(events, everything), [], list(everything)
        found = salvaged(
            everything,
            lambda part: self._table(events, part),
            lambda at, error: BadRow(self._place(events[at]), str(error), events[at].data),
        )
        return told_apart(found, arrow_schema(self._declaration.schema).empty_table())

    def _place(self, event: Event) -> str:
        known = "" if event.id is None else f" (id {event.id})"
        return f"{self._address.place}, event {event.number + 1}{known}"

    def _table(self, events: list[Event], part: Sequence[int]) -> pa.Table:
        def where(row: int) -> str:
            return self._place(events[part[row]])

        lines = [one_line(events[at].data, row, where) for row, at in enumerate(part)]
        block = Block(self._address.place, b"\n".join(lines), 0)
        table = JsonLines(self._declaration.schema).table(block, where)
        check_times(table, self._declaration, where)
        return table
