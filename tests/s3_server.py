"""A server that speaks S3 for tests: moto's, as a process of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import httpx

from millpond.storage.objects.objects import Objects
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.serving import free_port

PACKAGES = ("moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5")
CACHE = Path(__file__).parents[1] / ".pytest_cache"


class UnreachableError(Exception):
    """The server could not be fetched."""


def fetched() -> Path:
    """The folder with the server's packages, apart from ours: they ask for other versions."""
    CACHE.mkdir(exist_ok=True)
    place = CACHE / "moto-5.2.5"
    with (CACHE / "moto.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.is_dir():
            beside = CACHE / "moto.new"
            command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(beside)]
            done = subprocess.run([*command, *PACKAGES], capture_output=True, check=False)
            if done.returncode:
                raise UnreachableError(done.stderr.decode()[-500:])
            beside.rename(place)
    return place


class S3Server:
    """A server with objects in its memory; it can be paused, and ended with all it has."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(fetched())},
        )
        wait_until(self._answers)

    def _answers(self) -> bool:
        assert self._process.poll() is None, "the server does not start"
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(self.url, timeout=5).is_success
        return False

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find it."""
        return {
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "something",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
        }

    def new_address(self) -> str:
        """An address in a bucket of its own, where nothing is."""
        bucket = f"b{uuid.uuid4().hex}"
        httpx.put(f"{self.url}/{bucket}", timeout=PATIENCE_SECONDS).raise_for_status()
        return f"s3://{bucket}/some/store"

    def asks_for_credentials(self) -> None:
        """Nobody may do anything without credentials that it knows, and it knows none."""
        url = f"{self.url}/moto-api/reset-auth"
        httpx.post(url, content="0", timeout=PATIENCE_SECONDS).raise_for_status()

    def asks_for_none(self) -> None:
        """Everybody may do everything again."""
        url = f"{self.url}/moto-api/reset-auth"
        httpx.post(url, content="1000000000", timeout=PATIENCE_SECONDS).raise_for_status()

    def pause(self) -> None:
        """It answers nobody any more."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """It answers all who have asked meanwhile."""
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def serving() -> Iterator[S3Server]:
    """A server that this process finds."""
    server, before = S3Server(), dict(os.environ)
    os.environ.update(server.environment)
    try:
        yield server
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.close()


def objects_at(address: str) -> dict[str, bytes]:
    """All objects of a store."""
    objects = Objects(address)
    return {name: objects.get(name) or b"" for name in objects.names()}
