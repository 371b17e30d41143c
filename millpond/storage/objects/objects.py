"""The objects below an address: all that a store asks of an object store, in six calls.

Nothing is renamed, appended to or locked. An object is put whole or not at all, and `create` puts
one that nobody else has put. Requests that fail are repeated for a while, by the client; what fails
then says why, and may have happened or not.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from millpond.errors import MachineError, StateError, StoreError

SCHEMES = ("s3", "gs", "abfs", "abfss", "az")
"""What addresses of stores begin with."""

AWAY_SECONDS = 20.0
"""A server that does not answer is asked again for so long."""

RESTORE = "nothing was changed: restore a copy of the objects, or name another address"
"""What to do about damage."""

_CLIENT = {"allow_http": True, "timeout": "30s", "connect_timeout": "5s"}
_REASONS = {
    "NoSuchBucket": "there is no such bucket: create it, or name another one",
    "InvalidAccessKeyId": "the server does not know the access key: look at AWS_ACCESS_KEY_ID",
    "SignatureDoesNotMatch": "the secret key is wrong: look at AWS_SECRET_ACCESS_KEY",
    "AccessDenied": "the credentials may not do that: give them the right to read, write, list and "
    "delete there",
    "InvalidToken": "the session token is wrong: look at AWS_SESSION_TOKEN",
    "ExpiredToken": "the session token has expired: get a new one",
}
_AWAY = "the server cannot be asked (is it there? are there credentials?)"


def is_address(location: str) -> bool:
    """Whether a store is no directory: s3://bucket/name, say, also where a path lost a slash."""
    scheme, colon, rest = location.partition(":")
    return bool(colon) and len(scheme) > 1 and scheme.isalnum() and rest.startswith("/")


class Objects:
    """The objects whose names begin with an address."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        parts = urlsplit(address)
        if parts.scheme not in SCHEMES or not parts.netloc:
            raise StateError(
                f"store {address}: an address is s3://bucket/name (or gs://, abfss://, az://); "
                "what else is a directory that all hosts see"
            )
        self._obstore = _package("obstore")
        self._errors = _package("obstore.exceptions")
        self._store: Any = self._connected()

    def _connected(self) -> Any:
        with self._naming(""):
            return _package("obstore.store").from_url(
                self.address, client_options=_CLIENT, retry_config=_retrying()
            )

    def create(self, name: str, content: bytes) -> bool:
        """Puts an object that is not there yet; whether it was not."""
        with self._naming(name):
            try:
                self._obstore.put(self._store, name, content, mode="create", use_multipart=False)
            except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
                return False
            return True

    def put(self, name: str, content: bytes | Path) -> None:
        """Puts an object, or the content of a file, in the place of what is there."""
        with self._naming(name):
            self._obstore.put(self._store, name, content)

    def get(self, name: str) -> bytes | None:
        """What an object holds; None if there is none."""
        with self._naming(name):
            try:
                return bytes(self._obstore.get(self._store, name).bytes())
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None

    def ranges(self, name: str, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """Some parts of an object, each by its beginning and length; near ones by one request."""
        with self._naming(name):
            starts, lengths = [s for s, _ in spans], [n for _, n in spans]
            found = self._obstore.get_ranges(self._store, name, starts=starts, lengths=lengths)
            return [bytes(each) for each in found]

    def names(self, folder: str = "") -> Iterator[str]:
        """The names of the objects in a folder, or of all."""
        with self._naming(folder):
            for some in self._obstore.list(self._store, folder or None):
                for each in some:
                    yield each["path"]

    def delete(self, names: Sequence[str]) -> None:
        """Deletes objects; one that is gone is deleted."""
        if names:
            with self._naming(names[0]):
                self._obstore.delete(self._store, list(names))

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Has what goes wrong inside name the object, and the way out."""
        try:
            yield
        except (self._errors.BaseError, OSError, ValueError) as error:
            place = f"{self.address}/{name}".rstrip("/")
            raise StoreError(f"store: {place}: {_reason(error)}") from error


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MachineError(
            "a store at an address needs the package obstore; install it with "
            "pip install 'millpond[objects]'"
        ) from error


def _retrying() -> dict[str, Any]:
    backoff = {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=2),
        "base": 2,
    }
    return {
        "max_retries": 1_000,
        "retry_timeout": timedelta(seconds=AWAY_SECONDS),
        "backoff": backoff,
    }


def _reason(error: Exception) -> str:
    """What is wrong, and what to do about it."""
    said = str(error)
    for code, reason in _REASONS.items():
        if f"<Code>{code}</Code>" in said:
            return reason
    first = said.partition("\n")[0].strip()
    return f"{first[:300]}; {_AWAY}: it can be tried again"
