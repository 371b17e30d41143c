"""What an endless response holds: JSON lines, or events as servers send them (SSE)."""

from __future__ import annotations

from dataclasses import dataclass

from millpond.connectors.files import LONGEST_RECORD_BYTES
from millpond.errors import InputError


@dataclass(frozen=True)
class Event:
    """A row, and the id that the server has for it, or the last one that it said."""

    number: int
    """How many came before in this response."""
    id: str | None
    data: bytes


class Events:
    """Cuts a response into events as it comes; what is not whole waits."""

    def __init__(self, is_stream: bool, last_id: str | None) -> None:
        self._is_stream, self.last_id = is_stream, last_id
        self._rest, self._lines = b"", list[bytes]()
        self._count, self._is_first = 0, True

    @property
    def is_whole(self) -> bool:
        """Whether nothing waits for its rest."""
        return not (self._rest or self._lines)

    def add(self, data: bytes) -> list[Event]:
        """What is whole now."""
        text = self._rest + data
        if self._is_first and self._is_stream and text:
            text, self._is_first = text.removeprefix(b"\xef\xbb\xbf"), False
        if self._is_stream:  # lines end with CR LF, LF or CR; the last CR may be half an end
            held = b"\r" if text.endswith(b"\r") else b""
            text = text[: len(text) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            text += held
        *lines, self._rest = text.split(b"\n")
        if len(self._rest) + sum(map(len, self._lines)) > LONGEST_RECORD_BYTES:
            raise InputError(f"event {self._count + 1}: longer than 64 MB")
        found = [self._of_line(line) for line in lines]
        return [each for each in found if each is not None]

    def _of_line(self, line: bytes) -> Event | None:
        if not self._is_stream:
            return self._event(line) if line.strip() else None
        if line:
            self._field(line)
            return None
        lines, self._lines = self._lines, []
        return self._event(b"\n".join(lines)) if lines else None

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._lines.append(value)
        elif name == b"id" and b"\0" not in value:
            self.last_id = value.decode(errors="replace")

    def _event(self, data: bytes) -> Event:
        self._count += 1
        return Event(self._count - 1, self.last_id, data)
