"""WebSockets as sources: messages of JSON or CSV; ``websockets`` is installed apart."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event
from typing import Any

from millpond.connectors.files import LONGEST_RECORD_BYTES
from millpond.connectors.lines import (
    LOOK_SECONDS,
    AwayError,
    BrokenOffError,
    Came,
    Form,
    Lines,
    LineSource,
)
from millpond.connectors.secrets import Secret, revealed
from millpond.connectors.sources import Declaration, is_true
from millpond.connectors.text_files import TextFiles
from millpond.connectors.web_client import ANSWER_SECONDS, Address
from millpond.errors import InputError


def source(
    declaration: Declaration,
    url: str | Secret,
    *,
    token: str | Secret = "",
    subscribe: str | Secret = "",
    format: str = "json",  # noqa: A002 (as CQL has it)
    header: bool | str = "auto",
    delimiter: str = ",",
    null: str = "",
    gaps: bool = False,
) -> LineSource:
    """Reads the messages of a WebSocket; ``subscribe`` is what is sent first."""
    address = Address(declaration.name, url, token, ("ws", "wss"))
    feed = WebSocket(address, str(revealed(subscribe)))
    form = Form(*map(revealed, (format, header, delimiter, null)))
    return LineSource(declaration, feed, form, is_true(declaration.name, "gaps", gaps), True)


class WebSocket:
    """One connection; each message is whole lines."""

    def __init__(self, address: Address, subscribe: str) -> None:
        self._client = _package("websockets.sync.client")
        self._faults = _package("websockets.exceptions")
        self._address, self._subscribe, self.place = address, subscribe, address.place

    def came(self, text: TextFiles, is_closed: Event) -> Iterator[Came]:
        """The lines of its messages, until the other side has closed it."""
        lines = Lines(self.place, text)
        with ExitStack() as stack:
            connection = self._called(stack)
            try:
                if self._subscribe:
                    connection.send(self._subscribe)
                yield from self._received(connection, lines, is_closed)
            except self._faults.ConnectionClosedOK:
                last = lines.end()  # of CSV: a quote that was left open
                if last is not None:
                    yield lines, last
            except self._faults.ConnectionClosed as error:
                raise BrokenOffError(f"it has broken off ({error})") from None

    def _received(self, connection: Any, lines: Lines, is_closed: Event) -> Iterator[Came]:
        while not is_closed.is_set():
            try:
                message = connection.recv(LOOK_SECONDS)
            except TimeoutError:
                continue
            block = lines.add(_whole_lines(message))
            if block is not None:
                yield lines, block

    def _called(self, stack: ExitStack) -> Any:
        headers = dict(self._address.headers)
        agent = headers.pop("User-Agent")
        try:
            return stack.enter_context(
                self._client.connect(
                    self._address.url,
                    additional_headers=headers,
                    user_agent_header=agent,
                    open_timeout=ANSWER_SECONDS,
                    max_size=LONGEST_RECORD_BYTES,
                    ping_timeout=None,  # while we hold it back nobody reads the answer
                    proxy=None,
                )
            )
        except (OSError, self._faults.WebSocketException) as error:
            raise AwayError(f"nobody answers there ({type(error).__name__}: {error})") from None


def _whole_lines(message: str | bytes) -> bytes:
    content = message.encode() if isinstance(message, str) else message
    return content if content.endswith(b"\n") else content + b"\n"


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            "websocket needs the package websockets; install it with pip install "
            "'millpond[websocket]'"
        ) from None
