"""Results as requests of HTTP, each with a key by which whoever gets it twice knows it again."""

from __future__ import annotations

import json
import logging
import threading
import time
import uuid
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from millpond.connectors.json_text import json_results
from millpond.connectors.secrets import Secret
from millpond.connectors.sinks import Results
from millpond.connectors.web_client import FAULTS, Address
from millpond.errors import OutputError

logger = logging.getLogger("millpond")

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 10.0
LONGEST_TRY_SECONDS = 30
PASSING = (408, 425, 429)
"""What a server says that may take the same request later, beside all from 500 on."""


def sink(
    results: Results,
    url: str | Secret,
    *,
    token: str | Secret = "",
    batch: int = 1,
    tries_seconds: float = LONGEST_TRY_SECONDS,
) -> WebhookSink:
    """Posts each result, or with ``batch`` so many at a time as an array."""
    return WebhookSink(results, url, token, batch, tries_seconds)


class WebhookSink:
    """Posts results in their order, each until it is taken."""

    is_remote = True

    def __init__(
        self, results: Results, url: str | Secret, token: str | Secret, batch: Any, tries: Any
    ) -> None:
        owner = f"query {results.query}"
        self._results, self._address = results, Address(owner, url, token)
        if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
            raise self._fault(f"batch is a number of results from 1 on, not {batch!r}")
        if isinstance(tries, bool) or not isinstance(tries, int | float) or tries < 0:
            raise self._fault(f"tries_seconds is a number of seconds from 0 on, not {tries!r}")
        self._batch, self._tries_seconds = batch, tries
        self._run: str = results.resume[0] if results.resume else uuid.uuid4().hex
        self._next: int = results.resume[1] if results.resume else 0
        self._connection: HTTPConnection | None = None
        self._is_given_up = threading.Event()

    def mark(self) -> list[str | int]:
        """What tells this declaration from others, and the number of the next page."""
        return [self._run, self._next]

    def write(self, table: pa.Table) -> None:
        """Posts results as the next page."""
        self.write_numbered(table, self._next)

    def write_numbered(self, table: pa.Table, number: int) -> None:
        """Posts the results of a page; what was taken of it before has the same keys again."""
        if number < self._next:
            return
        results = list(json_results(table))
        for first in range(0, len(results), self._batch):
            some = results[first : first + self._batch]
            body: Any = some[0] if self._batch == 1 else some
            key = f"{self._run}.{quote(self._results.query)}.{some[0]['ts']}.{number}.{first}"
            self._deliver(json.dumps(body, ensure_ascii=False).encode(), key)
        self._next = number + 1

    def give_up(self) -> None:
        """Tries no more."""
        self._is_given_up.set()

    def close(self) -> None:
        """Lets the server go."""
        self._disconnect()

    def _fault(self, said: str) -> OutputError:
        return OutputError(f"query {self._results.query}: {self._address.place}: {said}")

    def _deliver(self, body: bytes, key: str) -> None:
        """Posts a request until it is taken, ever more slowly."""
        until, pause = time.monotonic() + self._tries_seconds, FIRST_PAUSE_SECONDS
        while (said := self._refused(body, key)) is not None:
            why, wanted = said
            wait = min(LONGEST_PAUSE_SECONDS, max(pause, wanted))
            if time.monotonic() + wait > until or self._is_given_up.is_set():
                retry = f"ALTER QUERY {self._results.query} ACTIVATE"
                raise self._fault(f"{why}; see that it can be posted, then {retry}")
            logger.warning("query %s: %s; it is tried again", self._results.query, why)
            self._is_given_up.wait(wait)
            pause *= 2

    def _refused(self, body: bytes, key: str) -> tuple[str, float] | None:
        """Why a request was not taken and how long to wait; None: it was."""
        try:
            answer = self._posted(body, key)
        except FAULTS as error:
            self._disconnect()
            return f"{type(error).__name__}: {error}", 0.0
        if 200 <= answer.status < 300:
            return None
        said = f"the server says {answer.status} {answer.reason}".rstrip()
        if answer.status < 500 and answer.status not in PASSING:
            retry = f"ALTER QUERY {self._results.query} ACTIVATE"
            raise self._fault(f"{said} to the request {key}; mend that, then {retry}")
        wanted = answer.getheader("Retry-After", "")
        return said, float(wanted) if wanted.isdecimal() else 0.0

    def _posted(self, body: bytes, key: str) -> HTTPResponse:
        if self._connection is None:
            self._connection = self._address.connected()
        told = {"Content-Type": "application/json", "Idempotency-Key": key}
        headers = self._address.headers | told
        self._connection.request("POST", self._address.target, body, headers)
        answer = self._connection.getresponse()
        answer.read()
        if answer.will_close:
            self._disconnect()
        return answer

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
