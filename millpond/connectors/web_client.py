"""How servers are asked by HTTP, by the standard library alone."""

from __future__ import annotations

import socket
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, urlsplit

from millpond.connectors.secrets import Secret, revealed
from millpond.errors import InputError

ANSWER_SECONDS = 30.0
"""How long a server has for an answer."""

FAULTS = (OSError, HTTPException)
"""What is raised while a server does not answer as servers do."""


class Address:
    """A URL, and the token that is sent with each request."""

    def __init__(
        self,
        owner: str,
        url: str | Secret,
        token: str | Secret,
        schemes: tuple[str, ...] = ("http", "https"),
    ) -> None:
        text = revealed(url)
        self._parts = _parted(owner, url, text, schemes)
        if token and not isinstance(token, Secret):
            raise InputError(
                f"{owner}: a token does not stand in a statement, where everybody reads it; "
                "write token = 'env:MILLPOND_SECRET_NAME'"
            )
        self._token = revealed(token)
        if self._token and not self._token.isprintable():
            raise InputError(f"{owner}: {token} holds characters that no token has")
        self.place = str(url) if isinstance(url, Secret) else _shown(self._parts)
        """The URL as errors say it."""

    def connected(self) -> HTTPConnection:
        """A new connection, which notices when the other side is gone."""
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            safe = ssl.create_default_context()
            connection: HTTPConnection
            connection = HTTPSConnection(host, port, timeout=ANSWER_SECONDS, context=safe)
        else:
            connection = HTTPConnection(host, port, timeout=ANSWER_SECONDS)
        connection.connect()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return connection

    @property
    def url(self) -> str:
        """The whole URL."""
        return self._parts.geturl()

    @property
    def target(self) -> str:
        """What is asked for."""
        query = f"?{self._parts.query}" if self._parts.query else ""
        return (self._parts.path or "/") + query

    @property
    def headers(self) -> dict[str, str]:
        """What goes with each request."""
        found = {"User-Agent": "millpond"}
        return found | ({"Authorization": f"Bearer {self._token}"} if self._token else {})


def _parted(owner: str, url: str | Secret, text: Any, schemes: tuple[str, ...]) -> SplitResult:
    """The parts of a URL, which is refused if nobody can be asked by it."""
    try:
        parts = urlsplit(text) if isinstance(text, str) else None
        is_one = parts is not None and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, is_one = None, False
    if parts is None or not is_one or parts.scheme not in schemes:
        kind = "HTTP" if "http" in schemes else "a WebSocket (ws://host/path)"
        raise InputError(f"{owner}: this is no URL of {kind}: {str(url)[:200]!r}")
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InputError(f"{owner}: write the URL in ASCII and without spaces (as %20)")
    if parts.username or parts.password:
        raise InputError(
            f"{owner}: names and passwords do not stand in a URL; write "
            "token = 'env:MILLPOND_SECRET_NAME'"
        )
    return parts


def _shown(parts: SplitResult) -> str:
    """A URL without its query, which may hold keys."""
    return f"{parts.scheme}://{parts.netloc}{parts.path}"
