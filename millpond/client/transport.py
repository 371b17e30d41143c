"""Requests to a server, and its refusals as the errors that an engine raises."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from millpond.errors import CqlError, Position, StateError

TIMEOUT_SECONDS = 60.0


class Transport:
    """Connections to one server; may be used by several threads."""

    def __init__(self, url: str, token: str | None) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        try:
            self._client = httpx.Client(
                base_url=url.rstrip("/"), headers=headers, timeout=TIMEOUT_SECONDS
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise StateError(f"{url}: this is no address of a server: {error}") from None
        self._url = url

    def send(self, method: str, path: str, **parts: Any) -> httpx.Response:
        """A request, whatever the answer."""
        try:
            return self._client.request(method, path, **parts)
        except httpx.HTTPError as error:
            raise StateError(f"no answer from {self._url}: {error}") from None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """A request with JSON, answered with JSON."""
        parts = {} if body is None else {"json": body}
        return self.checked(self.send(method, path, **parts)).json()

    def listed(self, path: str) -> Iterator[dict[str, Any]]:
        """The items of a list that is answered in pages."""
        following: str | None = path
        while following is not None:
            response = self.checked(self.send("GET", following))
            yield from response.json()
            following = response.links.get("next", {}).get("url")

    def checked(self, response: httpx.Response) -> httpx.Response:
        """The response, if it is no refusal."""
        if response.is_success:
            return response
        try:
            said = response.json()
        except ValueError:
            said = {}
        message = str(said.get("error", f"the server answers with status {response.status_code}"))
        if "line" in said and "column" in said:
            raise CqlError(message, Position(said["line"], said["column"]))
        raise StateError(message)

    @contextmanager
    def stream(self, path: str, headers: dict[str, str] | None = None) -> Iterator[httpx.Response]:
        """An endless response."""
        timeout = httpx.Timeout(TIMEOUT_SECONDS, read=None)
        with self._client.stream("GET", path, headers=headers, timeout=timeout) as response:
            if not response.is_success:
                response.read()
                self.checked(response)
            yield response

    def close(self) -> None:
        """Ends all connections."""
        self._client.close()
