"""Work that does something to the process; a module of its own, for that reads it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import pyarrow as pa

from millpond.execution.work import NOTHING, Destination
from tests.patience import PATIENCE_SECONDS


@dataclass(frozen=True)
class Doing:
    """Work that does something to the process."""

    action: str
    path: str = ""

    schema = pa.schema([])
    destination = Destination("", "", "")

    def run(self, rows, bucket, attempt):
        if self.action == "end":
            os._exit(1)
        if self.action == "end once" and not os.path.exists(self.path):  # noqa: PTH110
            open(self.path, "w").close()  # noqa: PTH123
            os._exit(1)
        if self.action == "sleep":
            time.sleep(PATIENCE_SECONDS)
        if self.action == "raise":
            raise ZeroDivisionError("by nought")
        return {"pid": os.getpid()}, NOTHING


class CannotBeReadError(Exception):
    """What is raised where a task is read."""


def _refuse():
    raise CannotBeReadError


class Unreadable(Doing):
    """Work that cannot be read where it arrives."""

    def __init__(self):
        super().__init__("")

    def __reduce__(self):
        return _refuse, ()
