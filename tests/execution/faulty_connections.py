"""What lies between a driver and its residents and does not work well."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from dataclasses import replace

from millpond.execution.residents.wire import Invitation

DELAYED, CUT, DROPPED = "delayed", "cut", "dropped"
FAULT_SHARE = 0.02
"""How often a connection breaks, as a share of what comes along it."""


class Proxy:
    """Passes on what is said, late; it cuts connections in the middle of a message, and has some
    go silent: what is said from then on is lost, and neither side is told."""

    def __init__(self, seed: int, delay: float = 0.002, cuts: int = 6, drops: int = 0) -> None:
        self._random, self._delay = random.Random(seed), delay
        self.cuts, self.drops = cuts, drops
        self.done: Counter[str] = Counter()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._target = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def way(self, invitation: Invitation) -> Invitation:
        """The invitation, by this way."""
        self._target = invitation.port
        return replace(invitation, port=self.port)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:  # the driver is gone
                near.close()
                continue
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(4096):
                time.sleep(self._random.random() * self._delay)
                self.done[DELAYED] += 1
                fault = self._fault()
                self.done[fault] += fault != DELAYED
                if fault == CUT:
                    target.sendall(data[: len(data) // 2])
                    break
                if fault == DROPPED:
                    while source.recv(4096):
                        pass
                    break
                target.sendall(data)
        for each in (source, target):
            each.close()

    def _fault(self) -> str:
        """What happens to what has come."""
        if self._random.random() >= FAULT_SHARE:
            return DELAYED
        if self.cuts > 0:
            self.cuts -= 1
            return CUT
        if self.drops > 0:
            self.drops -= 1
            return DROPPED
        return DELAYED

    def close(self) -> None:
        """Nobody comes by this way any more."""
        self._server.close()
