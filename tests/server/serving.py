"""Servers for tests: in a thread, on a port of their own, gone when the test is over."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from millpond.server.limits import Limits
from millpond.server.serve import ServeOptions, make_server, make_service
from millpond.server.service import Service
from millpond.settings import Settings
from tests.patience import PATIENCE_SECONDS, wait_until

SCRIPT = """
CREATE STREAM S (t BIGINT, a INT) TIMESTAMP BY t;
CREATE RELATION R (a INT PRIMARY KEY, name STRING);
CREATE QUERY counts AS SELECT a, COUNT(*) AS n FROM S [RANGE 1000000] GROUP BY a;
CREATE QUERY big AS SELECT a FROM S WHERE a > 1;
"""


@dataclass
class Running:
    """A server that answers."""

    url: str
    service: Service
    http: httpx.Client

    def push(self, *rows: tuple[int, int]) -> None:
        """Tuples of S, and a later one, so that these are complete."""
        self.service.engine.push("S", [{"t": t, "a": a} for t, a in rows])

    def wait(self, is_so: Callable[[], Any]) -> Any:
        """Waits until something is so."""
        return wait_until(is_so)

    def lines(self, path: str) -> list[str]:
        """The lines of a response that ends."""
        return self.http.get(path).text.splitlines()


PORTS = range(20_000, 30_000)
"""No connection that goes out gets one of them, as it may of those that a system hands out."""


def free_port() -> int:
    """A port for a server that takes it later."""
    while not _is_free(port := random.SystemRandom().choice(PORTS)):
        pass
    return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def plain_client(url: str, headers: dict[str, str] | None = None) -> httpx.Client:
    """A client of an address without TLS, which reads no certificates: that takes longer than most
    tests. Each request has a connection of its own: one that waited may just be closed by the
    server when it is used again."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(
        base_url=url, timeout=PATIENCE_SECONDS, headers=headers, limits=limits, verify=False
    )


def is_ready(client: httpx.Client) -> bool:
    """Whether a server answers that it is ready."""
    try:
        return client.get("/ready").status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def running(
    script: str = SCRIPT,
    settings: Settings | None = None,
    limits: Limits | None = None,
    roots: tuple[Path, ...] = (),
    tokens: Path | None = None,
    plan: Path | None = None,
    token: str | None = None,
    spark: Any = None,
    port: int = 0,
) -> Iterator[Running]:
    listening = socket.create_server(("127.0.0.1", port))
    port = listening.getsockname()[1]
    options = ServeOptions(
        port=port, limits=limits or Limits(), roots=roots, tokens=tokens, plan=plan
    )
    service = make_service(settings or Settings(spark_master="local[2]"), options, spark)
    service.engine.execute(script)
    server = make_server(service, options)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{port}"
    headers = {"authorization": f"Bearer {token}"} if token else {}
    with plain_client(url, headers) as http:
        made = Running(url, service, http)
        made.wait(lambda: server.started)
        made.wait(lambda: is_ready(http))
        yield made
    server.handle_exit(15, None)
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
