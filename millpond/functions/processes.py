"""Processes in which functions of the user run apart, so that none of them ends the engine's.

They are started as programs of their own: a copy of the running process would have its locks but
not its threads, and `multiprocessing` would run the user's main module again in each. A process
answers one call at a time, so who has ended it is known.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO

import pyarrow as pa

from millpond.errors import InputError
from millpond.functions.calls import (
    Answers,
    FunctionCode,
    answers,
    answers_in,
    read_message,
    request_of,
    write_message,
)

WORKER = "millpond.functions.calls"
"""The program: it answers requests on its standard input until that ends."""


class FunctionEndedError(InputError):
    """A function has ended its process; which row made it do so is not known."""


class FunctionProcesses:
    """The processes of one engine, as many as there were calls at once.

    They serve the driver only: in Spark's workers, where these are none, functions are apart.
    """

    def __init__(self) -> None:
        self.are_wanted = False
        """Whether functions are to run apart."""
        self._lock = threading.Lock()
        self._idle: list[subprocess.Popen[bytes]] = []
        self._busy: set[subprocess.Popen[bytes]] = set()
        self._is_closed = False

    def __reduce__(self) -> tuple[type[FunctionProcesses], tuple[()]]:
        return FunctionProcesses, ()

    def answers(self, function: FunctionCode, columns: list[pa.Array]) -> Answers:
        """What a function gives, here or apart."""
        if not self.are_wanted or not len(columns[0]):
            return answers(function, columns)
        return answers_in(self.call(function.name, request_of(function, columns)))

    def call(self, name: str, request: bytes) -> bytes:
        """Has a process answer a request that calls a function; says how it ended if it did."""
        process = self._taken()
        try:
            write_message(_pipe(process.stdin), request)
            answer = read_message(_pipe(process.stdout))
        except BrokenPipeError:
            answer = None
        except BaseException:  # interrupted: what it answers now nobody would know
            self._end(process)
            raise
        if answer is None:
            code = self._end(process, is_killed=False)
            how = self._how(code)
            raise FunctionEndedError(f"function {name} has ended the process it ran in: {how}")
        with self._lock:
            self._busy.discard(process)
            self._idle.append(process)
        return answer

    def _how(self, code: int) -> str:
        if self._is_closed:
            return "the engine was closed"
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def _taken(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise InputError("the engine is closed: its functions run no more")
            process = self._idle.pop() if self._idle else _started()
            self._busy.add(process)
            return process

    def _end(self, process: subprocess.Popen[bytes], is_killed: bool = True) -> int:
        with self._lock:
            self._busy.discard(process)
        if is_killed:
            process.kill()
        return _ended(process)

    def interrupt(self) -> None:
        """Ends those that are at work: nobody wants the answers any more."""
        with self._lock:
            for process in self._busy:
                process.kill()

    def close(self) -> None:
        """Ends all of them, whatever they do."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        self.interrupt()
        for process in idle:
            process.kill()
            _ended(process)


def _started() -> subprocess.Popen[bytes]:
    """A process that finds modules where this one does; Ctrl-C is not meant for it."""
    path = os.pathsep.join(each for each in sys.path if each)
    return subprocess.Popen(
        [sys.executable, "-m", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
    )


def _ended(process: subprocess.Popen[bytes]) -> int:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    return process.wait()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise InputError("internal: a process without pipes")
    return pipe
