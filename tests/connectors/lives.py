"""Lives of an engine, each ended by a kill: before or after what it commits, or at any time."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

Moment = tuple[type, str] | None
"""The class and the method that commits; None: at any time."""


def killed_lives(
    live: Callable[[], None],
    commits: Sequence[Moment],
    seed: int,
    kills: int,
    doomed: Callable[[], None] | None = None,
) -> int:
    """Forks a life for each kill and one that comes to its end; says how many were killed.

    ``doomed``: how those live that are to be killed, if it has to be otherwise: so that they commit
    until they are, however long that takes.
    """
    rng, killed, lives = random.Random(seed), 0, 0
    moments = [(when, each) for each in commits for when in ("before", "after")] + [("", None)]
    while True:
        when, commit = moments[lives % len(moments)]
        count, seconds = rng.randint(2, 6), rng.uniform(0.05, 1.0)
        child = os.fork()
        if child == 0:
            if killed == kills:
                live()
            else:
                _die_at(when, commit, count, seconds)
                (doomed or live)()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        lives += 1
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            killed += 1
            continue
        assert os.waitstatus_to_exitcode(status) == 0
        return killed


def _die_at(when: str, commit: Moment, count: int, seconds: float) -> None:
    """Has this process be killed at a moment."""
    if commit is None:
        threading.Thread(target=lambda: (time.sleep(seconds), _die()), daemon=True).start()
        return
    owner, name = commit
    known, left = getattr(owner, name), iter(range(count - 1, -1, -1))

    def watched(*arguments: Any) -> Any:
        mine = next(left, None)  # each call has its number, whichever threads commit at once
        if mine == 0 and when == "before":
            _die()
        answer = known(*arguments)
        if mine == 0:
            _die()
        return answer

    setattr(owner, name, watched)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
