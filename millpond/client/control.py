"""Entities behind a server, with the face of those of an engine."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from millpond.client.transport import Transport


@dataclass(frozen=True)
class RemoteEntity:
    """One thing that runs on a server, with its control table."""

    transport: Transport
    kind: str
    name: str

    @property
    def _path(self) -> str:
        return f"/api/entities/{quote(self.kind, safe='')}/{quote(self.name, safe='')}"

    def get(self, attribute: str) -> Any:
        """The present value of an attribute."""
        return self.transport.ask("GET", f"{self._path}/{quote(attribute, safe='')}")["value"]

    def set(self, attribute: str, value: Any) -> None:
        """Sets a knob."""
        self.transport.ask("PUT", f"{self._path}/{quote(attribute, safe='')}", {"value": value})

    def attributes(self) -> list[dict[str, Any]]:
        """All attributes: name, type, unit, meaning, whether it is a knob, and the value."""
        found: list[dict[str, Any]] = self.transport.ask("GET", self._path)["attributes"]
        return found

    def values(self) -> dict[str, Any]:
        """All attributes with their present values."""
        return {each["name"]: each["value"] for each in self.attributes()}

    def watch(self, attribute: str, seconds: float = 60.0) -> Iterator[Any]:
        """The value now, and again whenever it has changed, for some time."""
        path = f"{self._path}/{quote(attribute, safe='')}/watch?seconds={seconds}"
        with self.transport.stream(path) as response:
            for line in response.iter_lines():
                if line:
                    yield json.loads(line)["value"]


class RemoteEntities:
    """Everything that runs on a server."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def of_kind(self, kind: str) -> list[RemoteEntity]:
        """All entities of a kind."""
        found = self._transport.listed(f"/api/entities?kind={quote(kind, safe='')}")
        return [RemoteEntity(self._transport, each["kind"], each["name"]) for each in found]

    def get(self, kind: str, name: str) -> RemoteEntity:
        """One entity."""
        entity = RemoteEntity(self._transport, kind, name)
        entity.attributes()
        return entity

    def __iter__(self) -> Iterator[RemoteEntity]:
        for each in self._transport.listed("/api/entities"):
            yield RemoteEntity(self._transport, each["kind"], each["name"])
