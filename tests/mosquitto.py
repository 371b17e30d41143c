"""A real broker of MQTT for tests: Debian's mosquitto, installed if that is possible."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.debian import installed, which
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.server.serving import free_port

_SETTINGS = """\
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
max_inflight_messages 0
max_queued_messages 0
message_size_limit {longest}
"""
LONGEST_BYTES = 10_000


@cache
def program() -> str:
    """The broker, installed now if need be."""
    return installed(lambda: which("mosquitto"), "mosquitto")


class Mosquitto:
    """A broker with a folder of its own; it can be ended and started again."""

    def __init__(self) -> None:
        self._program, self.port = program(), free_port()
        self.url = f"mqtt://127.0.0.1:{self.port}"
        self._folder = Path(tempfile.mkdtemp(prefix="millpond-mosquitto-", dir="/tmp"))
        settings = _SETTINGS.format(port=self.port, folder=self._folder, longest=LONGEST_BYTES)
        (self._folder / "conf").write_text(settings)
        if os.geteuid() == 0:
            for each in (self._folder, *self._folder.iterdir()):
                shutil.chown(each, "mosquitto", "mosquitto")
        self.start()

    def start(self) -> None:
        """Starts it and waits until it answers."""
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "-c", self._folder / "conf"], stdout=log, stderr=log
            )
        wait_until(self._answers)

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise AssertionError((self._folder / "log").read_text()[-2_000:])
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def end(self) -> None:
        """Ends it; what it keeps is on its disk."""
        self._process.terminate()
        self._process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        self.end()
        shutil.rmtree(self._folder, ignore_errors=True)
