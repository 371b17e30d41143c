"""Sockets of TCP and Unix as sources: lines of JSON or CSV, of whom we call or of all who call."""

from __future__ import annotations

import os
import selectors
import socket as sockets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from millpond.connectors.files import Block
from millpond.connectors.lines import (
    LOOK_SECONDS,
    READ_BYTES,
    AwayError,
    BrokenOffError,
    Came,
    Form,
    Lines,
    LineSource,
    cut_off,
)
from millpond.connectors.secrets import revealed
from millpond.connectors.sources import Declaration, is_true
from millpond.connectors.text_files import TextFiles
from millpond.errors import InputError

ANSWER_SECONDS = 30.0
"""How long whoever is called has for an answer."""


def source(
    declaration: Declaration,
    address: str,
    *,
    listen: bool = False,
    format: str = "json",  # noqa: A002 (as CQL has it)
    header: bool | str = "auto",
    delimiter: str = ",",
    null: str = "",
    gaps: bool = False,
) -> LineSource:
    """Reads lines of a connection; with ``listen`` of all connections that come."""
    owner = declaration.name
    found = replace(_address(declaration, revealed(address)), text=str(address))
    is_listening = is_true(owner, "listen", listen)
    feed = Listening(found) if is_listening else Calling(found)
    form = Form(*map(revealed, (format, header, delimiter, null)))
    return LineSource(declaration, feed, form, is_true(owner, "gaps", gaps), not is_listening)


@dataclass(frozen=True)
class Address:
    """Where a socket is: a host and a port, or a file."""

    text: str
    target: tuple[str, int] | str

    @property
    def is_file(self) -> bool:
        """Whether it is a Unix socket."""
        return isinstance(self.target, str)

    @property
    def family(self) -> sockets.AddressFamily:
        """The family of sockets."""
        if isinstance(self.target, str):
            return sockets.AF_UNIX
        return sockets.AF_INET6 if ":" in self.target[0] else sockets.AF_INET


def _address(declaration: Declaration, given: Any) -> Address:
    if isinstance(given, str) and given.startswith("unix:") and len(given) > len("unix:"):
        path = declaration.directory / given.removeprefix("unix:").removeprefix("//")
        return Address(given, str(path.absolute()))
    try:
        parts = urlsplit(given) if isinstance(given, str) else None
        is_one = parts is not None and parts.scheme == "tcp" and parts.hostname and parts.port
    except ValueError:
        is_one = None
    if not is_one or parts is None or parts.path or parts.query or parts.username:
        raise InputError(
            f"{declaration.name}: an address is 'tcp://host:port' or 'unix:/a/path', not {given!r}"
        )
    return Address(given, (parts.hostname or "", parts.port or 0))


class Calling:
    """One connection, to whoever listens."""

    def __init__(self, address: Address) -> None:
        self._address, self.place = address, address.text

    def came(self, text: TextFiles, is_closed: Event) -> Iterator[Came]:
        """Its lines, until the other side has ended."""
        lines = Lines(self.place, text)
        with closing(self._called()) as connection:
            connection.settimeout(LOOK_SECONDS)
            while not is_closed.is_set():
                try:
                    content = connection.recv(READ_BYTES)
                except TimeoutError:
                    continue
                except OSError as error:
                    cut_off(lines)
                    raise BrokenOffError(f"it has broken off ({_said(error)})") from None
                block = lines.add(content) if content else lines.end()
                if block is not None:
                    yield lines, block
                if not content:
                    return

    def _called(self) -> sockets.socket:
        target = self._address.target
        try:
            if not isinstance(target, str):
                connection = sockets.create_connection(target, ANSWER_SECONDS)
                connection.setsockopt(sockets.SOL_SOCKET, sockets.SO_KEEPALIVE, 1)
                return connection
            connection = sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(target)
        except OSError as error:
            raise AwayError(f"nobody answers there ({_said(error)})") from None
        return connection


class Listening:
    """All connections that come, for ever."""

    def __init__(self, address: Address) -> None:
        self._address, self.place = address, address.text

    def came(self, text: TextFiles, is_closed: Event) -> Iterator[Came]:
        """The lines of all connections, in turn."""
        with ExitStack() as stack:
            listener = stack.enter_context(self._listener())
            waiting = stack.enter_context(selectors.DefaultSelector())
            waiting.register(listener, selectors.EVENT_READ)
            stack.callback(self._end, waiting)
            count = 0
            while not is_closed.is_set():
                for key, _ in waiting.select(LOOK_SECONDS):
                    if key.data is None:
                        count += self._accept(listener, waiting, count + 1, text)
                        continue
                    connection, lines = key.data
                    block = self._read(connection, lines, waiting)
                    if block is not None:
                        yield lines, block

    def _accept(
        self,
        listener: sockets.socket,
        waiting: selectors.BaseSelector,
        number: int,
        text: TextFiles,
    ) -> int:
        """How many connections have come: one, unless it has gone already."""
        try:
            connection, who = listener.accept()
        except OSError:
            return 0
        connection.setblocking(False)
        host = f" from {who[0]}:{who[1]}" if isinstance(who, tuple) else ""
        lines = Lines(f"{self.place}, connection {number}{host}", text)
        waiting.register(connection, selectors.EVENT_READ, (connection, lines))
        return 1

    def _read(
        self, connection: sockets.socket, lines: Lines, waiting: selectors.BaseSelector
    ) -> Block | None:
        """The whole lines that a connection has now; at its end the last one."""
        try:
            content = connection.recv(READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            cut_off(lines)
            self._let_go(connection, waiting)
            return None
        if content:
            return lines.add(content)
        self._let_go(connection, waiting)
        return lines.end()

    def _let_go(self, connection: sockets.socket, waiting: selectors.BaseSelector) -> None:
        waiting.unregister(connection)
        connection.close()

    def _end(self, waiting: selectors.BaseSelector) -> None:
        for key in list(waiting.get_map().values()):
            if key.data is not None:
                self._let_go(key.data[0], waiting)
        if isinstance(self._address.target, str):
            with suppress(OSError):
                Path(self._address.target).unlink()

    def _listener(self) -> sockets.socket:
        target, listener = self._address.target, sockets.socket(self._address.family)
        try:
            if isinstance(target, str):
                _remove_stale(target)
            else:
                listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            listener.bind(target)
            listener.listen()
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise AwayError(f"nobody can listen there ({_said(error)})") from None
        return listener


def _remove_stale(path: str) -> None:
    """Removes the file of a Unix socket at which nobody listens any more."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(Path(path).stat().st_mode):
            return
        with closing(sockets.socket(sockets.AF_UNIX)) as asked:
            try:
                asked.connect(path)
            except ConnectionRefusedError:
                Path(path).unlink()


def _said(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__
