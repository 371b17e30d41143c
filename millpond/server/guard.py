"""What every request passes before anything looks at it: host, origin, token, rate and size.

A page of another site can make a browser send requests here, or have its name lead here: so hosts
and origins are checked even where no token is needed.
"""

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from h11 import LocalProtocolError
from starlette.requests import ClientDisconnect

from millpond.server.faults import RequestError
from millpond.server.limits import Limits
from millpond.server.logs import tell
from millpond.server.tokens import ROLES, Tokens

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")

POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    b"img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'"
)

HEADERS = [
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]

OPEN = ("/ping", "/ready")
"""What is answered without a token."""

PAGES = ("/", "/docs")
"""Pages, which have nothing in them before they were given a token."""

ADMIN = ("/api/plan",)
"""What only administrators may change."""

ASKING = ("/api/check", "/api/explain", "/api/ask")
"""What is sent by POST and changes nothing."""

FORBIDDEN_IN_PATHS = ("\0", "\\", "..", "\r", "\n")

MOST_ADDRESSES = 10_000
LONGEST_PATH = 4_000


class RateLimit:
    """A bucket of requests for each address, filled steadily."""

    def __init__(self, per_second: float, burst: int) -> None:
        self._per_second, self._burst = per_second, float(burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str, now: float) -> bool:
        """Whether one request more is allowed; it counts."""
        left, last = self._buckets.pop(address, (self._burst, now))
        left = min(self._burst, left + (now - last) * self._per_second)
        self._buckets[address] = (left - 1 if left >= 1 else left, now)
        while len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)
        return left >= 1


class Refused(Exception):  # noqa: N818 (an answer, not a fault)
    """A request is not let in."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class Guard:
    """Lets requests in, or answers them itself."""

    def __init__(
        self, app: App, hosts: tuple[str, ...], tokens: Tokens, limits: Limits, scheme: str = "http"
    ) -> None:
        self._app, self._tokens, self._limits, self._scheme = app, tokens, limits, scheme
        self._hosts = {host.lower() for host in hosts}
        self._rate = RateLimit(limits.requests_per_second, limits.request_burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [h for h in message.get("headers", []) if h[0].lower() != b"server"]
                message["headers"] = [*kept, *HEADERS]
            with suppress(LocalProtocolError):  # the request was no HTTP, and is over already
                await send(message)

        try:
            limit = self._check(scope)
            with suppress(ClientDisconnect):  # whoever has gone needs no answer, and no traceback
                await self._app(scope, _Body(receive, limit), send_guarded)
        except Refused as refused:
            _tell(scope, refused)
            await _answer(send_guarded, refused)

    def _check(self, scope: Scope) -> int:
        """Refuses a request, or says how large its body may be."""
        headers = _headers(scope)
        path, method = scope["path"], scope["method"]
        if len(path) + len(scope.get("query_string", b"")) > LONGEST_PATH:
            raise Refused(414, "the address is too long")
        if any(bad in path for bad in FORBIDDEN_IN_PATHS):
            raise Refused(400, "the path has what no path of ours has")
        self._check_host(headers)
        self._check_origin(headers)
        address = (scope.get("client") or ("", 0))[0]
        if path not in OPEN and not self._rate.allows(address, time.monotonic()):
            raise Refused(429, "too many requests; come back in a while")
        if path not in OPEN and not path.startswith("/static/") and path not in PAGES:
            self._check_token(headers, path, method)
        return self._check_size(headers, path)

    def _check_host(self, headers: dict[str, str]) -> None:
        host = headers.get("host", "")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if name.lower() not in self._hosts:
            raise Refused(421, f"this server is not called {host[:100]!r}")

    def _check_origin(self, headers: dict[str, str]) -> None:
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != headers.get("host", "").lower():
            raise Refused(403, "this comes from a page of another site")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise Refused(403, "this comes from a page of another site")

    def _check_token(self, headers: dict[str, str], path: str, method: str) -> None:
        if not self._tokens.are_needed:
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        role = self._tokens.role(token.strip()) if scheme.lower() == "bearer" else None
        if role is None:
            raise Refused(401, "a token is needed: Authorization: Bearer …")
        needed = "read"
        if method not in ("GET", "HEAD", "OPTIONS") and path not in ASKING:
            needed = "admin" if path in ADMIN else "write"
        if ROLES.index(role) < ROLES.index(needed):
            raise Refused(403, f"this needs the role {needed}; the token has {role}")

    def _check_size(self, headers: dict[str, str], path: str) -> int:
        limit = self._limits.text_bytes
        if path.endswith(("/tuples", "/rows")) or path == "/api/plan":
            limit = self._limits.body_bytes
        length = headers.get("content-length")
        if length is not None:
            if not length.isascii() or not length.isdigit():
                raise Refused(400, "Content-Length is no number")
            if int(length) > limit:
                raise Refused(413, f"a body may have {limit:,} bytes at most")
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "bodies are taken as they are, not compressed")
        return limit


class _Body:
    """A body that may not grow beyond a limit."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._limit, self._bytes = receive, limit, 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._bytes += len(message.get("body", b""))
        if self._bytes > self._limit:
            raise RequestError(413, f"a body may have {self._limit:,} bytes at most")
        return message


def _headers(scope: Scope) -> dict[str, str]:
    """The headers; one that must be unique and comes twice is refused."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name = raw.decode("latin-1").lower()
        if name in found and name in ("host", "content-length", "authorization", "origin"):
            raise Refused(400, f"{name} is given twice")
        found[name] = value.decode("latin-1")
    return found


def _netloc(origin: str) -> str | None:
    """The host and port of an origin; None if it is none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _tell(scope: Scope, refused: Refused) -> None:
    """Says in the log who was not let in."""
    address = (scope.get("client") or ("?", 0))[0]
    words = f"refused {scope['method']} {scope['path'][:100]!r} of {address}: {refused.reason}"
    about = {"client": address, "status": refused.status}
    tell(logging.WARNING, "refused", words, **about)


async def _answer(send: Send, refused: Refused) -> None:
    body = json.dumps({"error": refused.reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
