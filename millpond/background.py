"""Threads that a process does not wait for when it ends: what they do may never be over."""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

Work = Callable[[], None]


class BackgroundThreads:
    """Runs functions beside whoever submits them, so many at once at most."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)
        self._wanted: queue.SimpleQueue[tuple[Future[None], Work] | None] = queue.SimpleQueue()

    def submit(self, work: Work) -> Future[None]:
        """Runs ``work`` soon; what it raises is in the answer."""
        future: Future[None] = Future()
        self._wanted.put((future, work))
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._most:
            name = f"{self._name}_{len(self._threads)}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return future

    def _run(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            future, work = wanted
            if future.set_running_or_notify_cancel():
                try:
                    work()
                except BaseException as error:  # noqa: BLE001 (whoever waits is told)
                    future.set_exception(error)
                else:
                    future.set_result(None)
            self._idle.release()

    def close(self, until: float) -> bool:
        """Begins nothing more and waits until a moment of the clock; whether all have ended."""
        with suppress(queue.Empty):
            while (wanted := self._wanted.get_nowait()) is not None:
                wanted[0].cancel()
        for _ in self._threads:
            self._wanted.put(None)
        others = [each for each in self._threads if each is not threading.current_thread()]
        for thread in others:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in others)
