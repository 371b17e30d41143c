"""Sockets of a process send at once, whatever else it has open."""

from __future__ import annotations

import gc
import socket
from pathlib import Path

from millpond.spark.worker_process import OPEN_FILES, FrozenModules, send_at_once


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


def test_what_was_imported_is_left_out_of_the_search_for_garbage() -> None:
    freeze = FrozenModules()
    try:
        freeze()
        frozen = gc.get_freeze_count()
        assert frozen > 1000
        later = [[] for _ in range(10_000)]
        freeze()
        assert gc.get_freeze_count() <= frozen  # some may be gone, none has come
        assert len(later) == 10_000
    finally:
        gc.unfreeze()
