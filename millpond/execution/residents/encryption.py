"""Encryption between the driver and residents: TLS with a certificate made for the session."""

from __future__ import annotations

import datetime as dt
import math
import selectors
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from millpond.errors import MillpondError

_NAME = "millpond"
LOOK_SECONDS = 0.5
"""So often somebody who waits looks whether the connection was closed."""

_DAYS = 3650
"""Longer than any session; nobody but its own residents trusts the certificate."""


@dataclass(frozen=True)
class Certificate:
    """What the driver proves itself with, as PEM: residents know the public part of it."""

    public: str
    key: bytes

    def context(self) -> ssl.SSLContext:
        """How the driver lets residents in."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        with tempfile.TemporaryDirectory(prefix="millpond-") as directory:  # for its owner only
            public, key = Path(directory, "public"), Path(directory, "key")
            public.write_text(self.public, encoding="ascii")
            key.write_bytes(self.key)
            context.load_cert_chain(public, key)
        return context


def made_certificate() -> Certificate:
    """Makes a certificate for one session."""
    try:
        from cryptography import x509  # noqa: PLC0415 (an extra)
        from cryptography.hazmat.primitives import (  # noqa: PLC0415 (an extra)
            hashes,
            serialization,
        )
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MillpondError(
            "encrypted residents need the package cryptography: pip install 'millpond[tls]'"
        ) from error
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, _NAME)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return Certificate(
        certificate.public_bytes(pem).decode("ascii"),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def trusting(public: str) -> ssl.SSLContext:
    """How a resident connects: to whoever has this certificate, by whatever address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.load_verify_locations(cadata=public)
    return context


class EncryptedSocket:
    """A socket under TLS that one thread reads while another writes: OpenSSL lets in one at a time,
    so nobody waits inside."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket = sock
        self._inside = threading.Lock()
        self._seconds: float | None = None
        self._is_closed = False
        self.family = sock.family
        sock.setblocking(False)

    def settimeout(self, seconds: float | None) -> None:
        """Has reading and writing fail after so long a silence."""
        self._seconds = seconds

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Sets an option of the connection below."""
        self._socket.setsockopt(level, option, value)

    def recv_into(self, view: memoryview) -> int:
        """Reads some bytes; 0 at the end."""
        return self._done(partial(self._socket.recv_into, view))

    def sendall(self, data: bytes) -> None:
        """Sends all of it."""
        view = memoryview(data)
        while view:
            view = view[self._done(partial(self._socket.send, view)) :]

    def shutdown(self, how: int) -> None:
        """Ends it, for whoever waits too; what comes is still read as TLS."""
        socket.socket.shutdown(self._socket, how)

    def close(self) -> None:
        """Closes the connection below; whoever waits is told soon."""
        self._is_closed = True
        self._socket.close()

    def _done(self, action: Callable[[], int]) -> int:
        while True:
            with self._inside:
                try:
                    return action()
                except ssl.SSLWantReadError:
                    wanted = selectors.EVENT_READ
                except ssl.SSLWantWriteError:
                    wanted = selectors.EVENT_WRITE
            self._wait(wanted)

    def _wait(self, wanted: int) -> None:
        """Waits for the connection below; one that is closed meanwhile wakes nobody by itself."""
        until = math.inf if self._seconds is None else time.monotonic() + self._seconds
        with selectors.DefaultSelector() as selector:
            try:
                selector.register(self._socket, wanted)
            except ValueError:
                raise ConnectionAbortedError from None
            while not selector.select(min(LOOK_SECONDS, max(0.0, until - time.monotonic()))):
                if self._is_closed:
                    raise ConnectionAbortedError
                if time.monotonic() >= until:
                    raise TimeoutError


Plain = socket.socket | EncryptedSocket
"""What a connection is made of."""
