"""The program of a process in which functions of the user run apart (`function_processes.py`)."""

from __future__ import annotations

import os
import sys
from typing import BinaryIO

from millpond.function_processes import read_message, write_message
from millpond.kernels.expressions.user_functions import answered


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answers requests until there are no more."""
    while (request := read_message(requests)) is not None:
        write_message(replies, answered(request))


def main() -> None:
    """Answers what comes on standard input; what functions print goes to standard error."""
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    serve(os.fdopen(requests, "rb"), os.fdopen(replies, "wb"))


if __name__ == "__main__":
    main()
