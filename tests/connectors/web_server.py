"""A server of HTTP for tests: it takes posts, and answers with rows that go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.patience import wait_until


class WebServer:
    """What was posted by keys, and the rows that are answered with."""

    def __init__(self) -> None:
        self.posted: dict[str, Any] = {}
        self.posts: list[str] = []
        """The key of each request that was taken."""
        self.headers: list[dict[str, str]] = []
        self.refuses: Callable[[int], int | None] = lambda number: None
        """What is said to the post of a number instead of 200; 0 breaks off after it was taken."""
        self.rows: list[bytes] = []
        self.has_ended = False
        self.is_events, self.has_ids = True, True
        self.breaks_after = 1_000_000
        """So many rows are in a response, which then breaks off."""
        self.asked: list[str | None] = []
        """The last id of each request."""
        self._count = 0

    def post(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        number, self._count = self._count, self._count + 1
        status = self.refuses(number)
        self.headers.append(dict(handler.headers))
        if status in (None, 0):
            key = handler.headers["Idempotency-Key"]
            self.posts.append(key)
            assert self.posted.setdefault(key, body) == body
        if status == 0:
            handler.close_connection = True
            return
        handler.send_response(status or 200)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    def get(self, handler: BaseHTTPRequestHandler) -> None:
        last = handler.headers["Last-Event-ID"]
        self.asked.append(last)
        self.headers.append(dict(handler.headers))
        handler.send_response(200)
        kind = "text/event-stream; charset=utf-8" if self.is_events else "application/x-ndjson"
        handler.send_header("Content-Type", kind)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        at = 0 if last is None else int(last) + 1
        end = at + self.breaks_after
        while at < end:
            wait_until(lambda: len(self.rows) > at or self.has_ended)  # noqa: B023
            if len(self.rows) <= at:
                handler.wfile.write(b"0\r\n\r\n")
                return
            _write(handler, self._text(at))
            at += 1
        handler.close_connection = True

    def _text(self, at: int) -> bytes:
        if not self.is_events:
            return self.rows[at] + b"\n"
        told = b"id: %d\r\n" % at if self.has_ids else b": nothing\r\n"
        lines = self.rows[at].split(b"\n")
        return told + b"".join(b"data: " + line + b"\r\n" for line in lines) + b"\r\n"


def _write(handler: BaseHTTPRequestHandler, text: bytes) -> None:
    """In two chunks, so that a row comes in pieces."""
    for part in filter(None, (text[: len(text) // 2], text[len(text) // 2 :])):
        handler.wfile.write(b"%x\r\n" % len(part) + part + b"\r\n")
    handler.wfile.flush()


@contextmanager
def serving() -> Iterator[tuple[WebServer, str]]:
    """A server and its URL."""
    server = WebServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            server.post(self)

        def do_GET(self) -> None:
            server.get(self)

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads, http.block_on_close = True, False
    threading.Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield server, f"http://127.0.0.1:{http.server_port}/here?k=1"
    finally:
        server.has_ended = True
        http.shutdown()
        http.server_close()
