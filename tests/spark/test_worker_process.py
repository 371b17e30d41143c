"""Sockets of a process send at once, whatever else it has open."""

from __future__ import annotations

import socket
from pathlib import Path

from millpond.spark.worker_process import OPEN_FILES, send_at_once


def test_every_socket_of_the_process_sends_at_once(tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        socket.socketpair()[0],
        (tmp_path / "file").open("w"),
    ):
        open_before = len(list(OPEN_FILES.iterdir()))
        assert not client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        send_at_once()
        assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert len(list(OPEN_FILES.iterdir())) == open_before
