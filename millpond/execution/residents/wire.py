"""How the driver and a resident talk: messages with a length, after each has proved who it is.

Nothing is unpickled before that. The secret itself never passes the connection.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import threading
from dataclasses import dataclass
from enum import IntEnum

from millpond.execution.residents.encryption import EncryptedSocket, Plain, trusting

_HEAD = struct.Struct(">BQ")
_NONCE_BYTES = 32
_PROOF_BYTES = 32
_LONGEST_NAME = 200
GREETING_SECONDS = 20.0
"""So long either side waits for the other's greeting."""


class Kind(IntEnum):
    """What a message is."""

    TASK = 1
    ANSWER = 2
    BEAT = 3
    END = 4


class RefusedError(ConnectionError):
    """The other side is not who it should be, or is not wanted."""


@dataclass(frozen=True)
class Invitation:
    """What a resident must know to come: it is sent with its Spark task, and nowhere else."""

    host: str
    port: int
    name: str
    secret: bytes
    certificate: str = ""
    """The public part of the driver's, if they talk in secret."""

    def connect(self) -> Connection:
        """Connects to the driver, once it has proved that it knows the secret."""
        plain: Plain = self._encrypted(
            socket.create_connection((self.host, self.port), timeout=GREETING_SECONDS)
        )
        try:
            connection = Connection(plain)
            connection.present(self.name, self.secret)
        except BaseException:
            plain.close()
            raise
        return connection

    def _encrypted(self, plain: socket.socket) -> Plain:
        if not self.certificate:
            return plain
        return EncryptedSocket(trusting(self.certificate).wrap_socket(plain))


class Connection:
    """A connection whose messages arrive whole; several threads may send."""

    def __init__(self, sock: Plain) -> None:
        self._socket = sock
        self._sending = threading.Lock()
        sock.settimeout(GREETING_SECONDS)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # -- who is there ----------------------------------------------------------------------

    def present(self, name: str, secret: bytes) -> None:
        """Says who this is, and has the driver prove that it is the one."""
        theirs, mine = self._exactly(_NONCE_BYTES), secrets.token_bytes(_NONCE_BYTES)
        spoken = name.encode()
        proof = _proof(secret, b"resident", theirs, mine, spoken)
        self._socket.sendall(struct.pack(">H", len(spoken)) + spoken + mine + proof)
        answer = self._exactly(_PROOF_BYTES)
        if not hmac.compare_digest(answer, _proof(secret, b"driver", mine, theirs, spoken)):
            raise RefusedError(f"the driver does not know resident {name}")

    def presented(self, secret: bytes) -> str:
        """Who has come; raises RefusedError if they do not know the secret."""
        mine = secrets.token_bytes(_NONCE_BYTES)
        self._socket.sendall(mine)
        (length,) = struct.unpack(">H", self._exactly(2))
        if length > _LONGEST_NAME:
            raise RefusedError("a name that is too long")
        spoken, theirs = self._exactly(length), self._exactly(_NONCE_BYTES)
        proof = _proof(secret, b"resident", mine, theirs, spoken)
        if not hmac.compare_digest(self._exactly(_PROOF_BYTES), proof):
            raise RefusedError("somebody who does not know the secret of this session")
        self._accept = _proof(secret, b"driver", theirs, mine, spoken)
        return spoken.decode()

    def accept(self) -> None:
        """Tells who was presented that they are expected."""
        self._socket.sendall(self._accept)

    # -- messages --------------------------------------------------------------------------

    def expect_within(self, seconds: float | None) -> None:
        """Has reading fail after so long a silence."""
        self._socket.settimeout(seconds)

    def send(self, kind: Kind, payload: bytes = b"") -> None:
        """Sends one message."""
        with self._sending:
            if len(payload) < _SMALL_BYTES:
                self._socket.sendall(_HEAD.pack(kind, len(payload)) + payload)
            else:
                self._socket.sendall(_HEAD.pack(kind, len(payload)))
                self._socket.sendall(payload)

    def receive(self) -> tuple[Kind, bytes]:
        """The next message; raises EOFError at the end, and OSError after too long a silence."""
        kind, length = _HEAD.unpack(self._exactly(_HEAD.size))
        return Kind(kind), self._exactly(length)

    def close(self) -> None:
        """Ends it, for whoever reads too."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _exactly(self, count: int) -> bytes:
        buffer = bytearray(count)
        view, got = memoryview(buffer), 0
        while got < count:
            read = self._socket.recv_into(view[got:])
            if not read:
                raise EOFError
            got += read
        return bytes(buffer)


_SMALL_BYTES = 1 << 16


def _proof(secret: bytes, role: bytes, *parts: bytes) -> bytes:
    return hmac.digest(secret, b"\0".join((role, *parts)), "sha256")
